package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-dev/coppice/server/internal/lines"
)

// Lines returns a transport with one message per line, for example on standard input and
// output. A line that is not a message is answered with an error, as JSON-RPC requires, and
// the next one is read; the SDK alone would end the connection. The end of the input is the
// end of the connection when every request has its answer, so that a script can send its
// requests and close the stream.
func Lines(in io.Reader, out io.Writer) sdk.Transport {
	m := &messages{in: lines.New(in, maxLine), out: out, open: map[any]bool{}}
	m.answered.L = &m.mu
	return &sdk.IOTransport{Reader: m, Writer: m, MaxLineLength: -1}
}

// maxLine is the maximum length of a line in bytes, far more than any tool call needs.
const maxLine = 16 << 20

// messages passes on the lines that are messages.
type messages struct {
	in   *lines.Reader
	left []byte // of the current message

	mu       sync.Mutex // guards what follows: messages must not mix
	out      io.Writer
	open     map[any]bool // the requests that have no answer yet, by id
	answered sync.Cond    // open has become smaller
}

// Read implements io.Reader.
func (m *messages) Read(p []byte) (int, error) {
	for len(m.left) == 0 {
		line, err := m.in.Next()
		switch {
		case errors.Is(err, lines.ErrTooLong):
			err = m.refuse(jsonrpc.CodeParseError, "the line was skipped: it has more than %d bytes", maxLine)
		case errors.Is(err, io.EOF):
			m.finish()
		case err == nil:
			m.left, err = m.checked(line)
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, m.left)
	m.left = m.left[n:]
	return n, nil
}

// checked returns the messages in a line, and refuses anything else. A batch, which old
// versions of the protocol have, becomes its messages.
func (m *messages) checked(line []byte) (good []byte, err error) {
	if !json.Valid(line) {
		return nil, m.refuse(jsonrpc.CodeParseError, "the line is not JSON")
	}
	batch := []json.RawMessage{line}
	if line[0] == '[' {
		if err := json.Unmarshal(line, &batch); err != nil || len(batch) == 0 {
			return nil, m.refuse(jsonrpc.CodeInvalidRequest, "the batch is empty")
		}
	}
	for _, one := range batch {
		message, wrong := jsonrpc.DecodeMessage(one)
		if wrong != nil {
			err = errors.Join(err, m.refuse(jsonrpc.CodeInvalidRequest, "this is not a message of JSON-RPC 2.0: %v", wrong))
			continue
		}
		m.passed(message)
		good = append(append(good, one...), '\n')
	}
	return good, err
}

// refuse answers a line that is not a request, and so has no id.
func (m *messages) refuse(code int, format string, args ...any) error {
	text, err := json.Marshal(fmt.Sprintf(format, args...))
	if err == nil {
		_, err = fmt.Fprintf(m, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%s}}`+"\n", code, text)
	}
	return err
}

// passed remembers a request until it is answered. A subscription is not waited for: it lasts
// as long as the connection. Neither is a request that the client has cancelled.
func (m *messages) passed(message jsonrpc.Message) {
	r, ok := message.(*jsonrpc.Request)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.Method == "notifications/cancelled":
		var about struct {
			ID any `json:"requestId"`
		}
		if err := json.Unmarshal(r.Params, &about); err != nil {
			return
		}
		if id, err := jsonrpc.MakeID(about.ID); err == nil {
			delete(m.open, id.Raw())
		}
	case r.IsCall() && r.Method != "subscriptions/listen":
		m.open[r.ID.Raw()] = true
	}
}

// finish waits until every request has its answer.
func (m *messages) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.open) > 0 {
		m.answered.Wait()
	}
}

// Write implements io.Writer. It gets whole messages.
func (m *messages) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.out.Write(p)
	if message, wrong := jsonrpc.DecodeMessage(p); wrong == nil {
		if answer, ok := message.(*jsonrpc.Response); ok {
			delete(m.open, answer.ID.Raw())
		}
	}
	if err != nil {
		clear(m.open) // there is no one left to answer
	}
	m.answered.Broadcast()
	return n, err
}

// Close implements io.Closer. The caller of Lines closes the streams.
func (m *messages) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.open)
	m.answered.Broadcast()
	return nil
}
