package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/render/plain"
)

// maxJunk is how much of a line that is not a message goes to the log.
const maxJunk = 200

// lines reads the messages of a program, one in each line. Programs also print other lines,
// such as a greeting or a warning: those go to the log.
type lines struct {
	file *os.File
	from *bufio.Reader
	max  int // bytes of a line
	junk func(line string)
	left []byte // of the present line

	mu  sync.Mutex // guards err
	err error      // a line that was too long
}

func newLines(file *os.File, max int, junk func(line string)) *lines {
	return &lines{file: file, from: bufio.NewReader(file), max: max, junk: junk}
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.left) == 0 {
		line, err := l.next()
		switch {
		case len(bytes.TrimSpace(line)) == 0:
		case rawjson.Valid(line) && (rawjson.Kind(line) == 'o' || rawjson.Kind(line) == 'a'):
			l.left = line
		default:
			l.junk(plain.Line(string(line[:min(len(line), maxJunk)])))
		}
		if err != nil && len(l.left) == 0 {
			return 0, err
		}
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

// next returns a line with its end.
func (l *lines) next() ([]byte, error) {
	var line []byte
	for {
		piece, err := l.from.ReadSlice('\n')
		if len(line)+len(piece) > l.max {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.err = fmt.Errorf("the server sent an answer of more than %d bytes, the limit: ask for less at once", l.max)
			return nil, l.err
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// fault returns the error in the last line, or nil.
func (l *lines) fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close implements io.Closer.
func (l *lines) Close() error { return l.file.Close() }

var _ io.ReadCloser = (*lines)(nil)
