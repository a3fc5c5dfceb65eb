// Package lines reads lines of a limited length from clients.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrTooLong means that a line was skipped because it is longer than allowed.
var ErrTooLong = errors.New("the line is too long")

// Reader reads lines of a limited length. Between lines it only keeps a small buffer, so an
// idle connection costs little.
type Reader struct {
	r   *bufio.Reader
	max int
}

// New returns a reader of lines of at most limit bytes.
func New(r io.Reader, limit int) *Reader {
	return &Reader{bufio.NewReaderSize(r, 4<<10), limit}
}

// Next returns the next line that is not blank. After ErrTooLong it continues with the line
// after the long one. A last line needs no newline: half a JSON object cannot be mistaken for
// a whole one.
func (l *Reader) Next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(bytes.TrimRight(part, "\r\n")) > l.max {
			return nil, l.skip(err)
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		default:
			if line = bytes.TrimSpace(line); len(line) > 0 || err != nil {
				return line, endOf(line, err)
			}
		}
	}
}

// endOf returns the error of the end if there is no line before it.
func endOf(line []byte, err error) error {
	if len(line) > 0 {
		return nil
	}
	return err
}

// skip reads the rest of a line.
func (l *Reader) skip(err error) error {
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = l.r.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return ErrTooLong
}
