// Package client opens a home on another machine, which a Coppice server offers:
//
//	h, err := client.Open(ctx, "https://sessions.example.org", &client.Options{Token: token})
//	if err != nil {
//		return err
//	}
//	defer h.Close()
//	list, err := h.Sessions.List(ctx, home.ListRequest{Limit: 10})
//
// It links neither SQLite nor PostgreSQL: the server does the work that needs them.
//
// It is a home.Home like any other, so every program that uses one can use it. The server
// performs the operations. Conversations, chats, and operations that read or write files (an
// import, an export to a path) run here, on the sessions of the server.
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/home"
	_ "github.com/coppice-dev/coppice/home/local" // the user's own, which says what is trusted
	"github.com/coppice-dev/coppice/store/remote"
)

// Options adjusts how a home is opened.
type Options struct {
	// Home has the options of the home itself.
	Home home.Options
	// Token is sent to the server and nowhere else, and only over TLS or to this machine.
	Token string
	// HTTP makes the requests. It must not have a timeout. Default: http.DefaultClient.
	HTTP *http.Client
}

// storePath is the path of the store on a server.
const storePath = "/v1/store"

// Open opens the home of the server at an address.
func Open(ctx context.Context, address string, o *Options) (*home.Home, error) {
	if o == nil {
		o = &Options{}
	}
	address = strings.TrimRight(address, "/")
	web, err := remote.Client(address, o.Token, o.HTTP)
	if err != nil {
		return nil, err
	}
	st, err := remote.Open(ctx, address+storePath, &remote.Options{Client: web})
	if err != nil {
		return nil, err
	}
	h, err := home.Away(ctx, st, &server{address, web}, &o.Home)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return h, nil
}

// server performs operations.
type server struct {
	address string
	web     *http.Client
}

const (
	stream = "application/x-ndjson"
	// maxLine is the longest piece of an answer. An entry is shorter.
	maxLine = 256 << 20
	// silence is how long the server may be silent. It sends a sign of life four times as
	// often.
	silence = time.Minute
)

// message is a piece of an answer.
type message struct {
	ID       string          `json:"id"`
	Begun    bool            `json:"begun"`
	Event    json.RawMessage `json:"event"`
	Notice   *home.Notice    `json:"notice"`
	Progress *home.Progress  `json:"progress"`
	Result   json.RawMessage `json:"result"`
	Error    *problem        `json:"error"`
}

// problem is an error of a server.
type problem struct {
	Status int             `json:"status"`
	Kind   home.Kind       `json:"kind"`
	Title  string          `json:"title"`
	Detail string          `json:"detail"`
	Field  string          `json:"field"`
	Hint   string          `json:"hint"`
	Names  []string        `json:"names"`
	Result json.RawMessage `json:"result"`
}

func (p *problem) err() *home.ErrorInfo {
	info := &home.ErrorInfo{Kind: p.Kind, Message: p.Detail, Field: p.Field, Hint: p.Hint, Names: p.Names}
	if info.Kind == "" {
		info.Kind = home.KindError
	}
	if info.Message == "" {
		info.Message = "the server answered " + p.Title
	}
	return info
}

// Do implements home.Remote. If the connection is lost while a caller follows, Do continues
// where it was, and says so if it cannot.
func (s *server) Do(ctx context.Context, op *home.Operation, request any, send func(event any) error) (any, error) {
	following, _ := request.(*home.FollowRequest)
	if following == nil {
		return s.once(ctx, op, request, func(m *message) error { return s.pass(op, m, send) })
	}
	f := follower{server: s, op: op, request: following, send: send}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		f.received = false
		result, err := s.once(ctx, op, following, f.receive)
		if ctx.Err() != nil { // the end of a watch is not an error
			return result, nil
		}
		if !isLost(err) || !f.began {
			return result, err
		}
		if f.received {
			pause = firstPause
		}
		if err := f.reportLost(err); err != nil {
			return result, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return result, nil
		}
	}
}

// The pauses before a lost connection is tried again.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// follower is a caller that follows, across lost connections.
type follower struct {
	server  *server
	op      *home.Operation
	request *home.FollowRequest
	send    func(event any) error

	began        bool // a connection was there, and so the request makes sense
	received     bool // something came by this connection
	disconnected bool // the caller knows that the connection is lost
}

// receive passes on a piece of an answer.
func (f *follower) receive(m *message) error {
	if f.disconnected {
		f.disconnected = false
		if f.request.After == "" { // nothing says where the caller was
			if err := f.send(home.Notice{Kind: home.EntriesMissed}); err != nil {
				return err
			}
		}
	}
	f.began, f.received = true, true
	if m.ID != "" {
		f.request.After, f.request.Last = m.ID, 0
	}
	return f.server.pass(f.op, m, f.send)
}

// reportLost tells the caller, once, that the connection is lost.
func (f *follower) reportLost(err error) error {
	if f.disconnected {
		return nil
	}
	f.disconnected = true
	why := home.Describe(err)
	return f.send(home.Notice{Kind: home.ConnectionLost, Error: &why})
}

// lostError is the error of a request that was not answered, or not to the end.
type lostError struct{ *home.ErrorInfo }

func (l lostError) Unwrap() error { return l.ErrorInfo }

func isLost(err error) bool {
	_, ok := errors.AsType[lostError](err)
	return ok
}

func (s *server) unreachable(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the address
	}
	hint, err := remote.Unreachable(s.address, err)
	return lostError{&home.ErrorInfo{Kind: home.KindUnavailable, Message: err.Error(), Hint: hint}}
}

// once makes a request.
func (s *server) once(ctx context.Context, op *home.Operation, request any, each func(*message) error) (any, error) {
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alive := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer alive.Stop()
	r, err := s.request(ctx, op, request)
	if err != nil {
		return nil, err
	}
	resp, err := s.web.Do(r)
	if err != nil {
		return nil, s.why(outer, ctx, err)
	}
	defer resp.Body.Close()
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != stream {
		return s.failed(op, resp)
	}
	in := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		alive.Reset(silence)
		line, err := readLine(in)
		if err != nil {
			return nil, s.why(outer, ctx, err)
		}
		alive.Stop() // the reader may be slow
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, s.unintelligible(err)
		}
		if m.Error != nil || m.Result != nil {
			return s.last(op, &m)
		}
		if err := each(&m); err != nil {
			return nil, err
		}
	}
}

var errSilent = errors.New("the server is silent")

func (s *server) why(outer, ctx context.Context, err error) error {
	if outer.Err() != nil {
		return context.Cause(outer)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return s.unreachable(err)
}

// request builds the HTTP request of an operation from its route: the fields that are in the
// path go there, the others into the query of a GET and the body of anything else.
func (s *server) request(ctx context.Context, op *home.Operation, request any) (*http.Request, error) {
	method, path, ok := strings.Cut(op.Route, " ")
	if !ok {
		return nil, &home.ErrorInfo{Kind: home.KindInvalid, Message: op.Name + " is not offered to other machines"}
	}
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	fields := make(map[string]json.RawMessage)
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for {
		before, rest, found := strings.Cut(path, "{")
		if !found {
			break
		}
		name, after, _ := strings.Cut(rest, "}")
		var value string
		if json.Unmarshal(fields[name], &value) != nil || value == "" {
			return nil, &home.ErrorInfo{Kind: home.KindInvalid, Field: name, Message: name + " is empty"}
		}
		delete(fields, name)
		path = before + url.PathEscape(value) + after
	}
	var body io.Reader
	if method == http.MethodGet || method == http.MethodDelete {
		query, err := queryOf(fields)
		if err != nil {
			return nil, err
		}
		if query != "" {
			path += "?" + query
		}
	} else if text, err = json.Marshal(fields); err == nil {
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.address+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", stream)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// queryOf writes fields as a query.
func queryOf(fields map[string]json.RawMessage) (string, error) {
	query := make(url.Values)
	for name, raw := range fields {
		var one string
		var several []string
		switch {
		case json.Unmarshal(raw, &one) == nil:
			query.Set(name, one)
		case json.Unmarshal(raw, &several) == nil:
			query[name] = several
		case raw[0] == '{' || raw[0] == '[':
			return "", fmt.Errorf("%s does not fit into an address", name)
		default:
			query.Set(name, string(raw))
		}
	}
	return query.Encode(), nil
}

// readLine reads a line of a bounded length.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case err == nil:
			return line, nil
		case err == io.EOF:
			return nil, io.ErrUnexpectedEOF
		case err != bufio.ErrBufferFull:
			return nil, err
		case len(line) > maxLine:
			return nil, fmt.Errorf("a piece of the answer is longer than %d bytes", maxLine)
		}
	}
}

// last returns what the last piece of an answer says.
func (s *server) last(op *home.Operation, m *message) (any, error) {
	result, err := s.result(op, m.Result)
	if m.Error != nil {
		return result, m.Error.err()
	}
	return result, err
}

// pass gives a piece of an answer to the caller.
func (s *server) pass(op *home.Operation, m *message, send func(any) error) error {
	switch {
	case m.Notice != nil:
		return send(*m.Notice)
	case m.Progress != nil:
		return send(*m.Progress)
	case m.Begun:
		return send(home.Begun{})
	case m.Event != nil && op.Event != nil:
		event := reflect.New(op.Event)
		if err := json.Unmarshal(m.Event, event.Interface()); err != nil {
			return s.unintelligible(err)
		}
		return send(event.Elem().Interface())
	}
	return nil
}

func (s *server) result(op *home.Operation, raw json.RawMessage) (any, error) {
	if raw == nil {
		return nil, nil
	}
	result := reflect.New(op.Result).Interface()
	if err := json.Unmarshal(raw, result); err != nil {
		return nil, s.unintelligible(err)
	}
	return result, nil
}

// unintelligible is the error of an unintelligible answer.
func (s *server) unintelligible(err error) error {
	return &home.ErrorInfo{
		Kind: home.KindUnavailable, Message: fmt.Sprintf("the answer of %s cannot be understood: %v", s.address, err),
		Hint: "use the same version of Coppice on both sides",
	}
}

// failed returns the error of an answer that is not a stream.
func (s *server) failed(op *home.Operation, resp *http.Response) (any, error) {
	p := problem{Status: resp.StatusCode, Title: resp.Status}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, s.unreachable(err)
	}
	if resp.StatusCode < 300 || json.Unmarshal(text, &p) != nil {
		return nil, s.unintelligible(errors.New(resp.Status))
	}
	result, _ := s.result(op, p.Result)
	if p.Status == http.StatusServiceUnavailable {
		return result, lostError{p.err()} // it is stopping
	}
	return result, p.err()
}
