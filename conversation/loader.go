package conversation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/window"
)

// ContextConfigName is the file in a context directory that lists its contents.
const ContextConfigName = "context_config.yml"

// sampleConfig is the configuration of a new context directory.
const sampleConfig = `# Files in this directory that every conversation should know.
core_files: []
# Anything worth remembering about them. It stays here: no model is sent it.
notes: ""
`

// sourcePrefix begins what a file of a context directory is known by in the log.
const sourcePrefix = "context/"

// ContextConfig is the content of a ContextConfigName.
type ContextConfig struct {
	CoreFiles []string `yaml:"core_files"` // relative to the directory
	Notes     string   `yaml:"notes"`      // for people; never sent to a model
}

// ContextFile describes a file in a context directory.
type ContextFile struct {
	Path     string // relative to the directory, with slashes
	Size     int64
	Modified time.Time
	Core     bool
	Type     string // markdown, yaml or text
}

// Loader loads files of a directory into conversations and notices when they change. It never
// reads outside the directory, whatever a path or a symbolic link says.
type Loader struct {
	root *os.Root
}

// NewLoader returns the loader of a directory. If the directory does not exist, it is created
// with a sample configuration. The caller closes the loader.
func NewLoader(dir string) (*Loader, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("context directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("context directory: %w", err)
	}
	l := &Loader{root: root}
	if err := l.writeSample(); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return l, nil
}

func (l *Loader) writeSample() error {
	f, err := l.root.OpenFile(ContextConfigName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("context directory: %w", err)
	}
	_, err = f.WriteString(sampleConfig)
	return errors.Join(err, f.Close())
}

// Close releases the directory.
func (l *Loader) Close() error { return l.root.Close() }

// Config reads the configuration. A missing one is empty.
func (l *Loader) Config() (ContextConfig, error) {
	var c ContextConfig
	data, _, err := l.read(ContextConfigName)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	if err := yaml.Unmarshal(data, &c); err != nil {
		return ContextConfig{}, fmt.Errorf("context file %s: %w: %w", ContextConfigName, session.ErrInvalid, err)
	}
	return c, nil
}

// read returns the content of a file of the directory.
func (l *Loader) read(name string) ([]byte, fs.FileInfo, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, nil, fmt.Errorf("context file %.200q: %w: it is not in the directory", name, session.ErrInvalid)
	}
	info, err := l.root.Stat(name)
	if err == nil && !info.Mode().IsRegular() { // opening a pipe would wait for ever
		err = fmt.Errorf("%w: it is not a regular file", session.ErrInvalid)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("context file %.200q: %w", name, err)
	}
	f, err := vfs.OpenIn(l.root, name)
	if err != nil {
		return nil, nil, fmt.Errorf("context file %.200q: %w", name, err)
	}
	defer f.Close()
	data, err := files.ReadText(f, name)
	return data, info, err
}

// ListAvailableFiles describes the files that could be loaded, sorted by path. It leaves out
// hidden files, the configuration and links to elsewhere.
func (l *Loader) ListAvailableFiles() ([]ContextFile, error) {
	config, err := l.Config()
	if err != nil {
		return nil, err
	}
	var files []ContextFile
	err = fs.WalkDir(l.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name != "." && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := l.root.Stat(name)
		if err != nil || !info.Mode().IsRegular() || name == ContextConfigName {
			return nil // a directory, or a link that we do not follow
		}
		files = append(files, ContextFile{
			Path: name, Size: info.Size(), Modified: info.ModTime(), Type: typeOf(name),
			Core: slices.ContainsFunc(config.CoreFiles, func(core string) bool { return path.Clean(core) == name }),
		})
		return nil
	})
	return files, err
}

func typeOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown":
		return "markdown"
	case ".yml", ".yaml":
		return "yaml"
	}
	return "text"
}

// LoadCoreContext loads the core files into a conversation as CONTEXT, and returns the
// messages that were added. A file that the conversation already has is added again
// only if it has changed, and then replaces the old version. Files that cannot be
// loaded are reported; the others are loaded anyway.
func (l *Loader) LoadCoreContext(c *Chat) ([]Message, error) {
	config, err := l.Config()
	if err != nil {
		return nil, err
	}
	return l.loadAll(c, config.CoreFiles)
}

func (l *Loader) loadAll(c *Chat, names []string) (added []Message, _ error) {
	var errs []error
	for _, name := range names {
		m, fresh, err := l.LoadFile(c, name)
		if err != nil {
			errs = append(errs, err)
		} else if fresh {
			added = append(added, m)
		}
	}
	return added, errors.Join(errs...)
}

// LoadFile loads a file into a conversation: see LoadCoreContext. It returns the message and
// whether it was added now.
func (l *Loader) LoadFile(c *Chat, name string) (_ Message, added bool, _ error) {
	data, info, err := l.read(name)
	if err != nil {
		return Message{}, false, err
	}
	file := files.Message(sourcePrefix+path.Clean(filepath.ToSlash(name)), "", data, info)
	source := file.Metadata[files.MetaSource].(string)
	loaded, err := c.loadedFrom(source)
	if err != nil {
		return Message{}, false, err
	}
	if n := len(loaded); n > 0 && loaded[n-1].Metadata[files.MetaHash] == file.Metadata[files.MetaHash] {
		return loaded[n-1], false, nil
	}
	m, err := c.AddMessage(file.Role, session.TextOf(file.Content), CategoryContext, file.Metadata)
	if err != nil {
		return Message{}, false, err
	}
	return m, true, c.supersede(source)
}

// Refresh reloads the files of a conversation that have changed, and returns the
// messages that were added. If a file is gone, the conversation keeps what it has.
func (l *Loader) Refresh(c *Chat) ([]Message, error) {
	loaded, err := c.loadedFrom("")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range loaded {
		name, isHere := strings.CutPrefix(m.Metadata[files.MetaSource].(string), sourcePrefix)
		if !isHere {
			continue // it is no file of this directory
		}
		if _, err := l.root.Stat(name); err == nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return l.loadAll(c, names) // it compares contents: time and size may be unchanged
}

// loadedFrom returns the messages in the context that were loaded from a file, oldest first.
// An empty source means any file.
func (c *Chat) loadedFrom(source string) ([]Message, error) {
	id := c.ID()
	if id == "" {
		return nil, nil
	}
	l, done, err := c.sessions.end(id, reading)
	if err != nil {
		return nil, err
	}
	defer done()
	return l.loadedFrom(source), nil
}

func (l *link) loadedFrom(source string) (loaded []Message) {
	for _, i := range l.lasting {
		e := &l.Entries[i]
		from := files.Source(e.Message)
		if from != "" && (source == "" || from == source) && window.CategoryOf(e) == CategoryContext && !l.Cleared[e.ID] {
			loaded = append(loaded, fromEntry(e.Clone()))
		}
	}
	return loaded
}

// supersede removes all but the latest version of a file from the context. They stay in the
// log.
func (c *Chat) supersede(source string) error {
	return c.sessions.clear(c.ID(), func(l *link) (old []string) {
		loaded := l.loadedFrom(source)
		for _, m := range loaded[:max(0, len(loaded)-1)] {
			old = append(old, m.ID)
		}
		return old
	})
}
