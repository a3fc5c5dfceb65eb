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

// End is the data of the event with which some servers end a stream.
const End = "[DONE]"

// Events calls event with the data of each event of a stream of server-sent
// events: a JSON object, or End. Comments, names of events and data of other kinds, such
// as pings, are left out.
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
			if len(data) > maxEvent {
				return errTooLarge
			}
		}
		if end := err != nil; (len(line) == 0 || end) && len(data) > 0 {
			if err := pass(bytes.TrimSpace(data), event); err != nil {
				return err
			}
			data = nil
		}
		if err != nil {
			return nil
		}
	}
}

var errTooLarge = fmt.Errorf("an event has more than %d MiB", maxEvent>>20)

// pass calls event with data that is for it.
func pass(data []byte, event func([]byte) error) error {
	switch {
	case string(data) == End:
		return event(data)
	case len(data) == 0 || data[0] != '{':
		return nil
	}
	one, err := Compact(data)
	if err != nil {
		return fmt.Errorf("an event is not JSON: %w", err)
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
				return nil, errTooLarge
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
