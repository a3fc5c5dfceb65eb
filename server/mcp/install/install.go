package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Entry is a server that an agent starts.
type Entry struct {
	Name    string   // what the agent calls it
	Command string   // the program's path
	Args    []string // its arguments
}

// ErrForeign means that the entry of this name is for another program.
var ErrForeign = errors.New("there is an entry of this name for another program")

// Change is a change of a configuration file.
type Change struct {
	Program string `json:"program"`
	Path    string `json:"path"`
	// Backup is the path of the copy of the old file, if there was one.
	Backup string `json:"backup,omitempty"`
	// Before and After are the texts of the file. They are equal if there is nothing to do.
	Before []byte `json:"-"`
	After  []byte `json:"-"`
	// Delete is true if the file goes: Add made it, and there is nothing else in it.
	Delete bool `json:"delete,omitempty"`

	file   string // Path, with links resolved
	keep   bool   // the backup that is there is still the file without the server
	undoes bool   // what Add did
}

// backupSuffix follows the name of the file.
const backupSuffix = ".before-coppice"

// IsNothing reports whether the file is as it should be.
func (c *Change) IsNothing() bool { return bytes.Equal(c.Before, c.After) }

// Add returns the change that gives the agent a server. Nothing is written before Write. An
// entry that we wrote is updated; members that a person added to it stay.
func (p *Program) Add(m Machine, e Entry) (*Change, error) {
	return p.change(m, func(c *Change, f format, text []byte) ([]byte, error) {
		had, err := p.command(f, text, e.Name)
		switch {
		case err != nil:
			return nil, err
		case had == nil:
			return f.add(text, e.Name, p.shape(e))
		case !isOurs(had, e):
			return nil, ErrForeign
		case slices.Equal(had, append([]string{e.Command}, e.Args...)):
			return text, nil
		}
		if c.keep = p.original(c, e.Name, had) != nil; !c.keep && p.isMade(c, e.Name, had) {
			c.Backup = "" // there was nothing
		}
		return f.update(text, e.Name, p.shape(e))
	})
}

// Remove returns the change that removes the server. If there is none, the error is
// session.ErrNotExist.
func (p *Program) Remove(m Machine, name string) (*Change, error) {
	return p.change(m, func(c *Change, f format, text []byte) ([]byte, error) {
		had, err := p.command(f, text, name)
		switch {
		case err != nil:
			return nil, err
		case had == nil:
			return nil, session.ErrNotExist
		case !isOurs(had, Entry{}):
			return nil, ErrForeign
		}
		c.undoes = true
		if was := p.original(c, name, had); was != nil {
			return was, nil
		}
		if p.isMade(c, name, had) {
			c.Backup, c.Delete = "", true
			return nil, nil
		}
		return f.remove(text, name)
	})
}

// isMade reports whether Add made the file, and it has nothing else in it. A link stays, and so
// does what it leads to.
func (p *Program) isMade(c *Change, name string, command []string) bool {
	made, err := p.format.add(nil, name, p.shape(Entry{name, command[0], command[1:]}))
	info, statErr := os.Lstat(c.Path)
	return err == nil && statErr == nil && info.Mode().IsRegular() && bytes.Equal(made, c.Before)
}

// original returns the file as it would be if the server had never been added, byte for byte:
// the backup, with what a person changed since. It returns nil if there is no such backup, or
// the person changed what is beside the server, too.
func (p *Program) original(c *Change, name string, command []string) []byte {
	before, err := vfs.ReadFile(c.file+backupSuffix, maxFile)
	if err != nil {
		return nil
	}
	if had, err := p.command(p.format, before, name); err != nil || had != nil {
		return nil
	}
	added, err := p.format.add(before, name, p.shape(Entry{name, command[0], command[1:]}))
	if err != nil {
		return nil
	}
	was := undone(before, added, c.Before)
	if !p.format.isWithout(c.Before, was, name) {
		return nil
	}
	return was
}

// undone takes the change from before to added out of a text that was changed since, if the
// two changes are in different places. Otherwise it returns nil.
func undone(before, added, now []byte) []byte {
	start, end := sameEnds(before, added)
	from, to := sameEnds(added, now)
	switch {
	case from >= len(added)-end: // what is new comes after ours
		return bytes.Join([][]byte{before[:len(before)-end], now[len(added)-end:]}, nil) // not nil, even if it is empty
	case len(added)-to <= start: // or before it
		return bytes.Join([][]byte{now[:len(now)-(len(added)-start)], before[start:]}, nil)
	}
	return nil
}

// sameEnds returns how many bytes at the start and at the end two texts share.
func sameEnds(a, b []byte) (start, end int) {
	most := min(len(a), len(b))
	for start < most && a[start] == b[start] {
		start++
	}
	for end < most-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return start, end
}

// Has reports whether the agent has an entry of this name that starts Coppice.
func (p *Program) Has(m Machine, name string) bool {
	c, err := p.Remove(m, name)
	return err == nil && !c.IsNothing()
}

// change reads the file and edits its text.
func (p *Program) change(m Machine, edit func(*Change, format, []byte) ([]byte, error)) (*Change, error) {
	c := &Change{Program: p.Name, Path: p.file(m)}
	fail := func(err error) (*Change, error) {
		return nil, &session.Error{Op: "configure " + p.Title, Path: c.Path, Err: err}
	}
	c.file = c.Path
	if real, err := filepath.EvalSymlinks(c.Path); err == nil {
		c.file = real
	} else if _, dangling := os.Lstat(c.Path); dangling == nil || !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	text, err := vfs.ReadFile(c.file, maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	if err == nil {
		c.Backup = c.file + backupSuffix
	}
	c.Before = text
	if c.After, err = edit(c, p.format, text); err != nil {
		return fail(err)
	}
	return c, nil
}

// maxFile is far above the size of such a file, although Claude Code keeps its history there.
const maxFile = 256 << 20

// Write backs the file up, and replaces or deletes it. If another program wrote to it since,
// the error is session.ErrConflict.
func (c *Change) Write() error {
	if c.IsNothing() {
		return nil
	}
	now, err := vfs.ReadFile(c.file, maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, c.Before) {
		return &session.Error{Op: "configure", Path: c.Path, Err: session.ErrConflict, Hint: "the file has changed in the meantime; try again"}
	}
	if err := c.replace(); err != nil || !c.undoes {
		return err
	}
	return removeMade(c.file)
}

func (c *Change) replace() error {
	if c.Delete {
		return os.Remove(c.file)
	}
	disk, how := vfs.OS{KeepOwner: true}, vfs.Replacement{Perm: 0o600}
	switch info, err := os.Stat(c.file); {
	case err == nil:
		how.Perm = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	default:
		if err := makeDir(disk, c.file); err != nil {
			return err
		}
	}
	if c.Backup != "" && !c.keep {
		if err := vfs.Replace(disk, c.Backup, how, vfs.Data(c.Before)); err != nil {
			return err
		}
	}
	return vfs.Replace(disk, c.file, how, vfs.Data(c.After))
}

// madeSuffix follows the name of the file in the name of one that says how many directories
// were made for it.
const madeSuffix = ".made-by-coppice"

// makeDir makes the directory of a file, and notes how many it made.
func makeDir(disk vfs.FS, file string) error {
	made, dir := 0, filepath.Dir(file)
	for up := dir; !exists(up); up = filepath.Dir(up) {
		made++
	}
	if made == 0 {
		return nil
	}
	if err := vfs.Mkdir(disk, dir, 0o700); err != nil {
		return err
	}
	return vfs.Replace(disk, file+madeSuffix, vfs.Replacement{Perm: 0o600}, vfs.Data([]byte(strconv.Itoa(made))))
}

// removeMade removes the directories that makeDir made for a file, if they are empty.
func removeMade(file string) error {
	text, err := vfs.ReadFile(file+madeSuffix, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		err = os.Remove(file + madeSuffix)
	}
	if err != nil {
		return err
	}
	made, _ := strconv.Atoi(string(text)) // anything else counts as none
	for dir := filepath.Dir(file); made > 0 && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
		made-- // what is not empty stays
	}
	return nil
}

// isOurs reports whether a command line starts this server.
func isOurs(command []string, e Entry) bool {
	name := strings.TrimSuffix(filepath.Base(filepath.ToSlash(command[0])), ".exe")
	return (name == "coppice" || command[0] == e.Command) && slices.Contains(command[1:], "mcp")
}

// command returns the command line of an entry, or nil if there is none.
func (p *Program) command(f format, text []byte, name string) ([]string, error) {
	all, err := f.read(text)
	if err != nil {
		return nil, err
	}
	entry, ok := all[name]
	if !ok {
		return nil, nil
	}
	fields, _ := entry.(map[string]any)
	var words []string
	for _, key := range []string{"command", "args"} {
		switch v := fields[key].(type) {
		case string:
			words = append(words, v)
		case []any:
			for _, word := range v {
				words = append(words, fmt.Sprint(word))
			}
		}
	}
	if len(words) == 0 { // such as one with an address
		words = []string{""}
	}
	return words, nil
}
