package plain

import (
	"io"
	"sync"
)

// Writer writes text to a terminal, or to a file that a person may look at later. It
// replaces what is not harmless, as [Text] does, and keeps the styles of [Paint]. It
// may hold back a few bytes until it knows what follows; Flush writes them. Several
// goroutines may use it at once.
type Writer struct {
	mu   sync.Mutex // guards the rest
	w    io.Writer
	c    cleaner
	rest []byte
}

// NewWriter returns a Writer for text.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w, c: cleaner{unmark: true}} }

// NewJSONWriter returns a Writer for JSON: see [JSON].
func NewJSONWriter(w io.Writer) *Writer { return &Writer{w: w, c: cleaner{json: true}} }

// Write writes p, without what is not harmless.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(p), w.write(p, false)
}

// Flush writes what was held back.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(nil, true)
}

func (w *Writer) write(p []byte, end bool) error {
	src := p
	if len(w.rest) > 0 {
		src = append(w.rest, p...)
	}
	clean, rest := w.c.clean(make([]byte, 0, len(src)+16), src, end)
	w.rest = append([]byte(nil), rest...)
	if len(clean) == 0 {
		return nil
	}
	_, err := w.w.Write(clean)
	return err
}

// Redraw replaces the line with the cursor, as a progress bar does. The text stays on
// that line.
func (w *Writer) Redraw(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.write(nil, true); err != nil {
		return err
	}
	if _, err := io.WriteString(w.w, "\r\x1b[K"); err != nil {
		return err
	}
	return w.write([]byte(Flat(text)), true)
}
