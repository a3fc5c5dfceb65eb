package opencode

import (
	"errors"
	"path"
	"path/filepath"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// layout is where a tree of files keeps messages and parts, relative to its root.
type layout struct {
	from           *transcript.File
	messages, part string // directories
	flat           bool   // the parts of a session are by message below it

	// strays are the parts that some versions put into one directory for all
	// messages, by message; nil until they are looked for.
	strays map[string][]loaded
}

// storage returns the tree that a session's file is in, or nil.
func storage(f *transcript.File) *layout {
	slashed := filepath.ToSlash(f.Path)
	if path.Base(path.Dir(slashed)) == "info" && path.Base(path.Dir(path.Dir(slashed))) == "session" {
		return &layout{from: f.Above(1), messages: "message", part: "part", flat: true}
	}
	if path.Base(path.Dir(path.Dir(slashed))) == "session" {
		return &layout{from: f.Above(2), messages: "message", part: "part"}
	}
	return nil
}

func readTree(f *transcript.File, info loose.Value, to transcript.Sink) error {
	tree := storage(f)
	if tree == nil {
		return &session.Error{
			Op: "read", Path: f.Path, Kind: session.ErrInvalid,
			Err: errors.New("a session's file has its messages beside it in opencode's storage, and this file is elsewhere"),
		}
	}
	r := reader{to: to, info: info}
	if err := r.begin(); err != nil {
		return err
	}
	id := info.Get("id").Text()
	messages, err := tree.load(path.Join(tree.messages, id), to)
	if err != nil {
		return err
	}
	for _, m := range messages {
		parts, err := tree.parts(id, m.value.Get("id").Text(), to)
		if err != nil {
			return err
		}
		if err := r.message(m.value, parts, m.span); err != nil {
			return err
		}
	}
	return r.end()
}

// parts returns the parts of a message.
func (l *layout) parts(session, message string, to transcript.Sink) ([]loose.Value, error) {
	dir := path.Join(l.part, message)
	if l.flat {
		dir = path.Join(l.part, session, message)
	}
	files, err := l.load(dir, to)
	if err == nil && len(files) == 0 && !l.flat {
		files, err = l.strayParts(message, to)
	}
	var parts []loose.Value
	for _, p := range files {
		parts = append(parts, p.value)
	}
	return parts, err
}

func (l *layout) strayParts(message string, to transcript.Sink) ([]loaded, error) {
	if l.strays == nil {
		files, err := l.load(l.part, to)
		if err != nil {
			return nil, err
		}
		l.strays = make(map[string][]loaded)
		for _, p := range files {
			id := p.value.Get("messageID").Text()
			l.strays[id] = append(l.strays[id], p)
		}
	}
	return l.strays[message], nil
}

// loaded is a small file of the tree.
type loaded struct {
	value loose.Value
	span  transcript.Span
}

// load reads the JSON files of a directory in the order of their names. One that
// is torn is reported and left out.
func (l *layout) load(dir string, to transcript.Sink) ([]loaded, error) {
	entries, err := l.from.Around(dir)
	if err != nil {
		return nil, err
	}
	var files []loaded
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() || !strings.HasSuffix(name, ".json") {
			continue
		}
		data, err := l.from.Beside(name)
		if err != nil {
			return nil, err
		}
		v, err := loose.Parse(data)
		if err != nil {
			to.Problem(transcript.Problem{Reason: name + ": " + err.Error()})
			continue
		}
		span, err := to.Keep(name, data)
		if err != nil {
			return nil, err
		}
		files = append(files, loaded{v, span})
	}
	return files, nil
}
