package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// text makes a message's line about 550 bytes long, as the average line of a
// coding session without its large tool results is.
var text = strings.Repeat("The quick brown fox jumps over the lazy dog. ", 7)

var content = []session.Content{session.Text(text)}

// newDir returns a new directory.
func (b *bench) newDir() string {
	b.dirs++
	dir := filepath.Join(b.dir, fmt.Sprint(b.dirs))
	check(os.Mkdir(dir, 0o700))
	return dir
}

// newSession makes an empty session in a directory of its own.
func (b *bench) newSession(sync file.Sync) *session.Session {
	s, err := session.FileManager{}.New(session.Config{Dir: b.newDir(), Files: file.Options{Sync: sync}})
	check(err)
	return s
}

// load opens a session file.
func load(path string, sync file.Sync) *session.Session {
	d := session.NewManager(filepath.Dir(path))
	d.Files.Sync = sync
	s, err := d.Load(path)
	check(err)
	return s
}

// newLog makes an empty log.
func (b *bench) newLog(sync file.Sync) store.Log {
	st, err := file.Open(b.newDir(), &file.Options{Sync: sync})
	check(err)
	log, err := st.Create(context.Background(), "log", store.Lines())
	check(err)
	return log
}

// rawFile is a file opened as a log's is.
func (b *bench) rawFile() *os.File {
	f, err := os.OpenFile(filepath.Join(b.newDir(), "raw"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	check(err)
	return f
}

// line returns the line of a message, with its line end.
func line() []byte {
	w := writer{}
	return append(w.line(session.Entry{Type: session.TypeMessage, Message: message(0)}), '\n')
}

func message(i int) *session.MessageEntry {
	m := &session.MessageEntry{Role: session.RoleUser, Content: content}
	if i%2 == 1 {
		m.Role, m.Model, m.Provider = session.RoleAssistant, "model-1", "provider"
	}
	return m
}

// writer makes a session file without the session package's appends: a million
// entries in seconds.
type writer struct {
	out   *bufio.Writer
	count int
	bytes int64
	last  string
	mixed bool // the ids are in no order, as other programs' are
	// anonymous: no message names its model.
	anonymous bool
}

// writeSession makes a session file and returns its path.
func (b *bench) writeSession(fill func(*writer)) string {
	const id = "019a0000-0000-7000-8000-000000000000"
	path := filepath.Join(b.newDir(), id+".jsonl")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	check(err)
	w := writer{out: bufio.NewWriterSize(f, 1<<20)}
	h := session.Header{ID: id, Version: session.Version, CreatedAt: time.Unix(1_760_000_000, 0)}
	line, err := h.MarshalJSON()
	check(err)
	w.write(line)
	fill(&w)
	check(w.out.Flush())
	check(f.Sync()) // or the kernel writes it out while something is measured
	check(f.Close())
	return path
}

// messages returns what fills a session with n messages.
func messages(n int) func(*writer) {
	return func(w *writer) {
		for range n {
			w.message()
		}
	}
}

// line completes an entry and returns its line.
func (w *writer) line(e session.Entry) []byte {
	e.ID = fmt.Sprintf("019a0000-%04x-7%03x-8000-%012x", w.count>>16, w.count>>4&0xfff, w.count)
	if w.mixed {
		e.ID = fmt.Sprintf("%08x%s", uint32(w.count)*2654435761, e.ID[8:])
	}
	e.Timestamp = time.Unix(1_760_000_000+int64(w.count), 123e6)
	if w.last != "" {
		e.ParentID = &w.last
	}
	line, err := e.MarshalJSON()
	check(err)
	w.last = e.ID
	w.count++
	return line
}

func (w *writer) message() {
	m := message(w.count)
	if w.anonymous {
		m.Model, m.Provider = "", ""
	}
	w.write(w.line(session.Entry{Type: session.TypeMessage, Message: m}))
}

func (w *writer) write(line []byte) {
	n, err := w.out.Write(append(line, '\n'))
	check(err)
	w.bytes += int64(n)
}
