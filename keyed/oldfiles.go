package keyed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// oldFiles finds the sessions that picoclaw left in a directory. It had two formats: one JSON
// file per session, and later a file with one message per line and a .meta.json beside it.
// The files are named after the key, with some characters replaced. So the name only says
// where to look, and the key inside the file decides.
type oldFiles struct {
	dir   string      // "" if there is none
	notes store.Notes // of the sessions that were imported from old files, by id
	err   error       // why there are no notes

	once    sync.Once
	aliases map[string]string // from other keys to the names of .jsonl files
}

const (
	jsonSuffix     = ".json"
	migratedSuffix = ".json.migrated" // a file that picoclaw itself has converted
	linesSuffix    = ".jsonl"
	metaSuffix     = ".meta.json"
)

// oldSuffixes are those of the files that have the messages, the newest form first.
var oldSuffixes = []string{linesSuffix, jsonSuffix, migratedSuffix}

// oldHead is what picoclaw says of a session beside its messages: the .meta.json, or the
// members of the document that has the messages, too.
type oldHead struct {
	Key       string            `json:"key"`
	Aliases   []string          `json:"aliases"`
	Summary   string            `json:"summary"`
	Skip      int               `json:"skip"` // how many lines are no longer part of the history
	Created   oldTime           `json:"created"`
	CreatedAt oldTime           `json:"created_at"` // the same, in a .meta.json
	Updated   oldTime           `json:"updated"`
	UpdatedAt oldTime           `json:"updated_at"`
	Messages  []json.RawMessage `json:"messages"`
}

// oldTime is a time that may be missing or of another type.
type oldTime struct{ time.Time }

func (t *oldTime) UnmarshalJSON(data []byte) error {
	var parsed time.Time
	if json.Unmarshal(data, &parsed) == nil {
		t.Time = parsed
	}
	return nil // a senseless time is no reason to lose the messages
}

// notesRoom is the store's room for the notes.
const notesRoom = "keyed"

// isRetired reports whether a session was once imported from the old files of its key. Then
// they no longer count: if the session is gone, it was removed.
func (o *oldFiles) isRetired(id string) (bool, error) {
	if o.err != nil {
		return false, o.err
	}
	_, err := o.notes.Read(context.Background(), id)
	if errors.Is(err, session.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// note retires the old files of a session.
func (o *oldFiles) note(id, file string) error {
	text := rawjson.AppendString([]byte(`{"file":`), file)
	return o.notes.Write(context.Background(), id, append(text, '}', '\n'))
}

// retire retires the old files of a key, if there are any, and reports whether it did.
func (o *oldFiles) retire(key, id string) (bool, error) {
	old, err := o.find(key, id)
	if old == nil || err != nil {
		return false, err
	}
	return true, o.note(id, old.file)
}

// mayHave reports whether there are files that may be old ones of a key, without reading
// them.
func (o *oldFiles) mayHave(key string) bool {
	return o.dir != "" && slices.ContainsFunc(oldSuffixes, func(suffix string) bool {
		_, err := os.Lstat(filepath.Join(o.dir, oldName(key)+suffix))
		return err == nil
	})
}

// find reads the old session of a key. It returns nil if there is none or it is retired. If
// the file makes no sense, broken in the result says why.
func (o *oldFiles) find(key, id string) (*oldSession, error) {
	if o.dir == "" {
		return nil, nil
	}
	if retired, err := o.isRetired(id); retired || err != nil {
		return nil, err
	}
	for _, suffix := range oldSuffixes {
		if s, err := o.open(oldName(key), suffix, key); s != nil || err != nil {
			return s, err
		}
	}
	o.once.Do(o.findAliases)
	if name, ok := o.aliases[key]; ok {
		return o.open(name, linesSuffix, key)
	}
	return nil, nil
}

// oldName returns the name that picoclaw gave to files of a key.
func oldName(key string) string {
	return strings.NewReplacer(":", "_", "/", "_", `\`, "_").Replace(key)
}

// open reads the session in a file, or returns nil if there is none of the key.
func (o *oldFiles) open(name, suffix, key string) (*oldSession, error) {
	s := &oldSession{file: name + suffix}
	data, err := o.read(s.file)
	if data == nil || err != nil {
		return nil, err
	}
	head, isLines := data, suffix == linesSuffix
	if isLines {
		if head, err = o.read(name + metaSuffix); err != nil {
			return nil, err
		}
	}
	switch bad := json.Unmarshal(head, &s.oldHead); {
	case bad == nil && s.Key != key && !(isLines && slices.Contains(s.Aliases, key)):
		return nil, nil
	case bad != nil && name != key && (isLines || !hasKey(data, key)):
		return nil, nil // only the name says whose it is, and several keys may share it
	case bad != nil && isLines:
		s.oldHead = oldHead{}
	case bad != nil:
		return &oldSession{file: s.file, broken: bad.Error()}, nil
	}
	if isLines {
		s.Messages = nil
		if json.Valid(head) {
			s.meta = head
		}
		for line := range bytes.Lines(data) {
			if line = bytes.TrimSpace(line); len(line) > 0 { // skip does not count the empty ones
				s.Messages = append(s.Messages, line)
			}
		}
	} else {
		s.Skip = 0
	}
	s.readMessages()
	return s, nil
}

// hasKey reports whether a key is in a document that cannot be decoded. Picoclaw escapes the
// characters of HTML, others do not.
func hasKey(data []byte, key string) bool {
	var escaped, quoted bytes.Buffer
	json.HTMLEscape(&escaped, data)
	json.HTMLEscape(&quoted, rawjson.AppendString(nil, key))
	return bytes.Contains(escaped.Bytes(), quoted.Bytes())
}

// read returns a file, or nil if there is none or there cannot be one with such a name.
func (o *oldFiles) read(name string) ([]byte, error) {
	const longestName = 255
	if len(name) > longestName || strings.ContainsRune(name, 0) {
		return nil, nil
	}
	path := filepath.Join(o.dir, name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("old session: %w", err)
	}
	data, err := vfs.ReadFile(path, 0)
	if err != nil {
		return nil, fmt.Errorf("old session: %w", err)
	}
	return data, nil
}

// findAliases reads all .meta.json files for the other keys that they name.
func (o *oldFiles) findAliases() {
	o.aliases = make(map[string]string)
	_ = o.each(metaSuffix, func(name string, head oldHead) { // one that cannot be read names none
		for _, alias := range append(head.Aliases, head.Key) {
			if _, taken := o.aliases[alias]; !taken {
				o.aliases[alias] = name
			}
		}
	})
}

// each reads the heads in the files whose names end in suffix, and leaves out those that make
// no sense.
func (o *oldFiles) each(suffix string, f func(name string, head oldHead)) error {
	entries, err := os.ReadDir(o.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("old sessions: %w", err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || e.IsDir() {
			continue
		}
		data, err := o.read(e.Name())
		if err != nil {
			return err
		}
		var head oldHead
		if json.Unmarshal(data, &head) == nil {
			f(name, head)
		}
	}
	return nil
}

// keys returns the keys of the old sessions that are not retired.
func (o *oldFiles) keys() (keys []string, err error) {
	if o.dir == "" {
		return nil, nil
	}
	for _, suffix := range []string{metaSuffix, jsonSuffix, migratedSuffix} {
		err = errors.Join(err, o.each(suffix, func(_ string, head oldHead) {
			id, bad := session.KeyID(head.Key)
			if bad != nil || suffix != metaSuffix && head.Messages == nil {
				return
			}
			retired, noteErr := o.isRetired(id)
			err = errors.Join(err, noteErr)
			if !retired {
				keys = append(keys, head.Key)
			}
		}))
	}
	return keys, err
}
