package transcript

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	shell "github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Destination is where an export goes, and how much of the session it holds.
type Destination struct {
	// Leaf is the last entry that is written. Default: the session's leaf.
	Leaf string
	// Path is a directory, or the name of the file if the format has only one. "" is
	// where the program looks for its files. A format without a program has no such
	// place: see Exported.Data.
	Path string
	// Nowhere writes no file, whatever Path says: see Exported.Data.
	Nowhere bool
	// Force replaces an existing conversation that this session did not write. The old
	// file is kept as .bak.
	Force bool
	// NewID gives the conversation a new id in the program, even if it came from there:
	// the files that it came from stay as they are.
	NewID bool
}

// Exported is what an export has written.
type Exported struct {
	Paths []string
	// Data is the file of an export that was written nowhere.
	Data []byte
	// Resume is the command that continues the conversation in its program, from any
	// directory, or "".
	Resume string
	// Native is the id that the conversation has in its program.
	Native string
	// Losses are what the format cannot hold.
	Losses []Loss
}

// Export writes a session into the files of another program. They are read back and compared
// before anything is written to their destination. ErrExist means that another conversation is
// there. A format that is nil, or cannot be written, is ErrInvalid.
func (x *Exporter) Export(ctx context.Context, s *session.Session, format *Format, to Destination) (*Exported, error) {
	if err := format.check("export", to.Path, canWrite); err != nil {
		return nil, err
	}
	if x == nil {
		return nil, errMissing("export", "an exporter")
	}
	script, err := NewScript(s, format.Name, to.Leaf, time.Now().UTC())
	if err != nil {
		return nil, err
	}
	if to.NewID {
		script.NativeID = ""
	}
	script.OneFile = to.Nowhere || filepath.Ext(to.Path) == ".json"
	written := false // the subagents are
	if x.Subagents != nil && to.isDirectory() {
		script.Subagents = func() ([]*Script, error) {
			written = true
			return x.subagents(ctx, s.Header().ID, format.Name, script.Now, map[string]bool{s.Header().ID: true})
		}
	}
	out, err := x.Prepare(ctx, format, script, x.existing(ctx, format, script, to))
	if err != nil {
		return nil, err
	}
	if !written {
		lost, err := x.lostSubagents(ctx, s.Header().ID)
		if err != nil {
			return nil, err
		}
		out.Losses = append(out.Losses, lost...)
	}
	done := &Exported{Native: out.Native, Losses: out.Losses}
	if to.Nowhere || to.Path == "" && out.Base == "" {
		done.Data = out.Files[0].Data
		return done, nil
	}
	base, err := to.directory(format, out)
	if err != nil {
		return nil, err
	}
	if to.Path == "" {
		done.Resume = out.Resume
		if dir := cmp.Or(out.Dir, script.Header.CWD); dir != "" && out.Resume != "" {
			done.Resume = shell.Command("cd", dir) + " && " + out.Resume
		}
	}
	done.Paths, err = x.Publish(ctx, out, base, to.Force)
	return done, err
}

// subagents returns the conversations that a session's tool calls started, with
// those that they started themselves.
func (x *Exporter) subagents(ctx context.Context, id, format string, now time.Time, seen map[string]bool) ([]*Script, error) {
	children, err := x.Subagents(ctx, id)
	defer func() {
		for _, s := range children {
			s.Close() // it was only read
		}
	}()
	var scripts []*Script
	for i := 0; i < len(children) && err == nil; i++ {
		child := children[i].Header().ID
		if seen[child] {
			continue
		}
		seen[child] = true
		var script *Script
		if script, err = NewScript(children[i], format, "", now); err != nil {
			break
		}
		scripts = append(scripts, script)
		var more []*Script
		more, err = x.subagents(ctx, child, format, now, seen)
		scripts = append(scripts, more...)
	}
	return scripts, err
}

// lostSubagents returns the loss of the conversations that a session's tool calls
// started, for a format or a destination that has no place for them.
func (x *Exporter) lostSubagents(ctx context.Context, id string) ([]Loss, error) {
	if x.Subagents == nil {
		return nil, nil
	}
	children, err := x.Subagents(ctx, id)
	var losses []Loss
	for _, s := range children {
		losses = append(losses, Loss{What: "subagent", Why: "it is a session of its own, which is not written with this one"})
		s.Close() // it was only listed
	}
	return losses, err
}

func canWrite(f *Format) bool { return f.Write != nil && f.Read != nil }

// existing returns the function through which Prepare gets the present content of a
// shared file.
func (x *Exporter) existing(ctx context.Context, format *Format, s *Script, to Destination) func(path string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		base := to.Path
		switch {
		case to.Nowhere:
			return nil, nil
		case base == "":
			where := *s
			where.Existing, where.Subagents = nil, nil     // Existing would ask us again
			empty, err := format.Write(ctx, &where, x.Env) // only to learn the paths
			if err != nil {
				return nil, err
			}
			base = empty.Base
		}
		data, err := vfs.ReadFile(filepath.Join(base, filepath.FromSlash(path)), 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return data, err
	}
}

// directory returns the directory that the files go to. For a single file the path may be
// its name.
func (to Destination) directory(format *Format, out *Output) (base string, err error) {
	if to.Path == "" {
		return out.Base, nil
	}
	if to.isDirectory() {
		return to.Path, nil
	}
	// A list of conversations makes no sense elsewhere.
	out.Files = slices.DeleteFunc(out.Files, func(f OutputFile) bool { return f.Merge != nil })
	if len(out.Files) > 1 {
		return "", &session.Error{
			Op: "export", Path: to.Path, Kind: session.ErrInvalid,
			Err:  fmt.Errorf("%s has %d files, so this must be a directory", format.Title, len(out.Files)),
			Hint: "name a directory that exists, or end the name with a slash",
		}
	}
	out.Files[0].Path = filepath.Base(to.Path)
	return filepath.Dir(to.Path), nil
}

// isDirectory reports whether there can be several files.
func (to Destination) isDirectory() bool {
	if to.Nowhere || to.Path == "" {
		return !to.Nowhere
	}
	info, err := os.Stat(to.Path)
	return err == nil && info.IsDir() || strings.HasSuffix(to.Path, "/") || strings.HasSuffix(to.Path, string(filepath.Separator))
}
