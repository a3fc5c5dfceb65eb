package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxEvent is the size of the largest event that is read, in bytes.
const maxEvent = 64 << 20

// Events calls event with the data of each event of a stream of server-sent
// events. Comments, names of events and the mark at the end are left out.
func Events(r io.Reader, event func(data []byte) error) error {
	lines := bufio.NewReader(r)
	var data []byte
	for {
		line, err := readLine(lines)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
		}
		if end := err != nil; (len(line) == 0 || end) && len(data) > 0 {
			if !bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
				if err := compacted(data, event); err != nil {
					return err
				}
			}
			data = nil
		}
		if err != nil {
			return nil
		}
	}
}

func compacted(data []byte, event func([]byte) error) error {
	one, err := Compact(data)
	if err != nil {
		return fmt.Errorf("event %.40q: %w", data, err)
	}
	return event(one)
}

// readLine returns the next line without its end, and io.EOF with the last.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		line = append(line, piece...)
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(line) > maxEvent {
				return nil, fmt.Errorf("an event has a line of more than %d MiB", maxEvent>>20)
			}
			continue
		}
		return bytes.TrimRight(line, "\r\n"), err
	}
}

// IsEvents reports whether data begins like a stream of events.
func IsEvents(data []byte) bool {
	data = bytes.TrimLeft(data, "\r\n")
	return bytes.HasPrefix(data, []byte("data:")) || bytes.HasPrefix(data, []byte("event:")) || bytes.HasPrefix(data, []byte(":"))
}
