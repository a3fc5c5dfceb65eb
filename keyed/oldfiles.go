package keyed

import (
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

// oldMeta is the .meta.json of a session.
type oldMeta struct {
	Key     string   `json:"key"`
	Summary string   `json:"summary"`
	Skip    int      `json:"skip"` // how many lines are no longer part of the history
	Created oldTime  `json:"created_at"`
	Updated oldTime  `json:"updated_at"`
	Aliases []string `json:"aliases"`
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
	if o.dir == "" {
		return false
	}
	for _, suffix := range []string{linesSuffix, jsonSuffix, migratedSuffix} {
		if name := oldName(key) + suffix; len(name) <= longestName {
			if _, err := os.Lstat(filepath.Join(o.dir, name)); err == nil {
				return true
			}
		}
	}
	return false
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
	return o.search(key)
}

func (o *oldFiles) search(key string) (*oldSession, error) {
	for _, read := range []func(name, key string) (*oldSession, error){o.readLines, o.readJSON, o.readMigrated} {
		if s, err := read(oldName(key), key); s != nil || err != nil {
			return s, err
		}
	}
	o.once.Do(o.findAliases)
	if name, ok := o.aliases[key]; ok {
		return o.readLines(name, key)
	}
	return nil, nil
}

// longestName is the greatest length of a file name.
const longestName = 255

// oldName returns the name that picoclaw gave to files of a key.
func oldName(key string) string {
	return strings.NewReplacer(":", "_", "/", "_", `\`, "_").Replace(key)
}

// read returns a file, or nil if there is none or there cannot be one with such a name.
func (o *oldFiles) read(name string) ([]byte, error) {
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

func (o *oldFiles) readJSON(name, key string) (*oldSession, error) {
	return o.readWhole(name+jsonSuffix, name, key)
}

func (o *oldFiles) readMigrated(name, key string) (*oldSession, error) {
	return o.readWhole(name+migratedSuffix, name, key)
}

// readWhole reads a session that is one JSON object.
func (o *oldFiles) readWhole(file, name, key string) (*oldSession, error) {
	data, err := o.read(file)
	if data == nil || err != nil {
		return nil, err
	}
	return parseWhole(file, name, key, data), nil
}

// readLines reads a session that has one message per line.
func (o *oldFiles) readLines(name, key string) (*oldSession, error) {
	data, err := o.read(name + linesSuffix)
	if data == nil || err != nil {
		return nil, err
	}
	metaText, err := o.read(name + metaSuffix)
	if err != nil {
		return nil, err
	}
	if metaText == nil {
		// Only the name says whose it is, and several keys may share it.
		if name != key {
			return nil, nil
		}
		return parseLines(name+linesSuffix, data, oldMeta{Key: key}, nil), nil
	}
	var meta oldMeta
	if err := json.Unmarshal(metaText, &meta); err != nil {
		if name != key {
			return nil, nil
		}
		meta = oldMeta{Key: key}
	}
	if meta.Key != key && !slices.Contains(meta.Aliases, key) {
		return nil, nil
	}
	return parseLines(name+linesSuffix, data, meta, metaText), nil
}

// findAliases reads all .meta.json files for the other keys that they name.
func (o *oldFiles) findAliases() {
	o.aliases = make(map[string]string)
	_ = o.metas(func(name string, meta oldMeta) { // one that cannot be read names none
		for _, alias := range append(meta.Aliases, meta.Key) {
			if _, taken := o.aliases[alias]; !taken {
				o.aliases[alias] = name
			}
		}
	})
}

func (o *oldFiles) metas(f func(name string, meta oldMeta)) error {
	return o.each(metaSuffix, func(name string, data []byte) {
		var meta oldMeta
		if json.Unmarshal(data, &meta) == nil {
			f(name, meta)
		}
	})
}

// each reads the files whose names end in suffix.
func (o *oldFiles) each(suffix string, f func(name string, data []byte)) error {
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
		f(name, data)
	}
	return nil
}

// keys returns the keys of the old sessions that are not retired.
func (o *oldFiles) keys() ([]string, error) {
	if o.dir == "" {
		return nil, nil
	}
	var keys []string
	var err error
	add := func(key string) {
		id, bad := session.KeyID(key)
		if bad != nil {
			return
		}
		retired, noteErr := o.isRetired(id)
		err = errors.Join(err, noteErr)
		if !retired {
			keys = append(keys, key)
		}
	}
	metaErr := o.metas(func(_ string, meta oldMeta) { add(meta.Key) })
	err = errors.Join(err, metaErr)
	for _, suffix := range []string{jsonSuffix, migratedSuffix} {
		err = errors.Join(err, o.each(suffix, func(name string, data []byte) {
			var head struct {
				Key      string          `json:"key"`
				Messages json.RawMessage `json:"messages"`
			}
			if json.Unmarshal(data, &head) == nil && head.Messages != nil {
				add(head.Key)
			}
		}))
	}
	return keys, err
}
