package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/all"
)

// runExportTo writes a session in another program's format.
func (a *app) runExportTo(ctx context.Context, id string, f *exportFlags) error {
	format := all.Named(f.to)
	switch {
	case format == nil || format.Write == nil:
		return usageError{fmt.Errorf("--to is %q; it must be one of %s", f.to, strings.Join(formatNames(true), ", "))}
	case f.inline:
		return usageError{errors.New("--inline is for jsonl")}
	}
	return a.withConversation(ctx, id, f.link, func(o opened) error {
		leaf := ""
		if f.leaf != "" {
			var err error
			if leaf, err = resolveEntry(o.Session, f.leaf); err != nil {
				return err
			}
		}
		script, err := transcript.NewScript(o.Session, format.Name, leaf, time.Now().UTC())
		if err != nil {
			return err
		}
		script.OneFile = f.isOneFile()
		x := &transcript.Exporter{Env: *coppice.Machine(a.getenv), Ledger: transcript.LedgerOf(o.store)}
		if f.redact {
			x.Clean = transcript.Redact
		}
		e := &exportTo{app: a, x: x, format: format, script: script, flags: f}
		return e.run(ctx)
	})
}

// isOneFile reports whether what is written goes to standard output or into the
// file of a name, where there is no room for a second.
func (f *exportFlags) isOneFile() bool {
	return f.out == "-" || filepath.Ext(f.out) == ".json"
}

// exportTo is one run of export --to.
type exportTo struct {
	*app
	x      *transcript.Exporter
	format *transcript.Format
	script *transcript.Script
	flags  *exportFlags
	base   string
}

func (e *exportTo) run(ctx context.Context) error {
	out, native, err := e.x.Prepare(ctx, e.format, e.script, e.old)
	if err != nil {
		return err
	}
	if e.flags.out == "-" || e.flags.out == "" && out.Base == "" {
		data := out.Files[0].Data
		err := e.printDocument(isJSON(data), func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
		if err != nil {
			return err
		}
		e.sayLosses(out)
		return nil
	}
	if err := e.place(out); err != nil {
		return err
	}
	paths, err := e.x.Publish(e.format, e.script, out, native, e.base, e.flags.force)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := e.print("%s", path); err != nil {
			return err
		}
	}
	e.sayLosses(out)
	if out.Resume != "" && e.flags.out == "" {
		e.say("go on there with: %s", out.Resume)
	}
	return nil
}

// old returns what a file that several conversations share has now.
func (e *exportTo) old(path string) ([]byte, error) {
	base := e.flags.out
	if base == "" {
		where := *e.script
		where.Existing = nil                                                // it would ask us
		empty, err := e.format.Write(context.Background(), &where, e.x.Env) // only to learn where
		if err != nil {
			return nil, err
		}
		base = empty.Base
	}
	data, err := vfs.ReadFile(filepath.Join(base, filepath.FromSlash(path)), 0)
	if errors.Is(err, fs.ErrNotExist) || base == "-" {
		return nil, nil
	}
	return data, err
}

// place settles the directory that the files go to. Of a single file -o may be
// the name.
func (e *exportTo) place(out *transcript.Output) error {
	e.base = out.Base
	if e.flags.out == "" {
		return nil
	}
	e.base = e.flags.out
	info, err := os.Stat(e.flags.out)
	if err == nil && info.IsDir() || strings.HasSuffix(e.flags.out, "/") {
		return nil
	}
	if len(out.Files) > 1 {
		return usageError{fmt.Errorf("%s has %d files: -o must be a directory, one that exists or whose name ends in /", e.format.Title, len(out.Files))}
	}
	e.base, out.Files[0].Path = filepath.Dir(e.flags.out), filepath.Base(e.flags.out)
	return nil
}

// sayLosses lists what the format cannot hold, each kind once.
func (e *exportTo) sayLosses(out *transcript.Output) {
	type kind struct{ what, why string }
	counts := make(map[kind]int)
	var order []kind
	for _, l := range out.Losses {
		k := kind{l.What, l.Why}
		if counts[k]++; counts[k] == 1 {
			order = append(order, k)
		}
	}
	for _, k := range order {
		times := ""
		if counts[k] > 1 {
			times = fmt.Sprintf(" (%d times)", counts[k])
		}
		e.say("%s %s%s: %s", e.paint(yellow, "not held:"), k.what, times, k.why)
	}
}
