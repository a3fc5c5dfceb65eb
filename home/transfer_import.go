package home

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/bulk"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// ImportRequest says which transcripts of other programs to import, and how.
type ImportRequest struct {
	// Paths are files and directories; "-" is the reader that is given with the request.
	Paths []string `json:"paths,omitempty" here:"-"`
	// All imports what known programs keep on this machine.
	All bool `json:"all,omitempty" here:""`
	// Format is the format of all files: that of another program, or FormatCoppice. With All,
	// only files of its program are imported. Default: detected from the content of each file.
	Format string `json:"format,omitempty"`
	// Redact removes secrets, even from the kept bytes. It is on by default if the home's
	// settings ask for it.
	Redact bool `json:"redact,omitempty"`
	// DryRun reports what would be imported and writes nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Again reads files from the beginning, even those that did not change.
	Again bool `json:"again,omitempty"`
	// Watch, if positive, keeps importing as files grow, checking that often, until the
	// context ends. That is then not an error.
	Watch Age `json:"watch,omitempty" here:""`
}

// ImportEvent is what an import sends: first, with All, what was found on the machine; then
// the outcome of each file, when its sessions are durable.
type ImportEvent struct {
	Programs []discover.Program `json:"programs,omitzero"` // what All found; nil in other events
	File     *bulk.File         `json:"file,omitempty"`
	Error    *ErrorInfo         `json:"error,omitempty"` // why the file could not be read
}

// ErrNoFormat means that the content of a file has no known format.
var ErrNoFormat = bulk.ErrNoFormat

// Import imports conversations of other programs. Importing again adds only what is
// new. The index is up to date when Import returns, unless the context ended: then it
// returns the context's error together with what was done until then. Files that could
// not be read are not an error: see bulk.Result.IsPartial.
func (t *Transfer) Import(ctx context.Context, r ImportRequest, in io.Reader, send func(ImportEvent) error) (*bulk.Result, error) {
	if err := t.home.checkOpen("transfer.import"); err != nil {
		return nil, err
	}
	h := t.home
	if err := r.check(); err != nil {
		return &bulk.Result{}, err
	}
	if !r.DryRun {
		h.beforeWriting(ctx)
	}
	// Not waiting for the disk at each append is safe: sessions are flushed when they are
	// closed, and they are closed before they are reported.
	st, err := h.openLazily(ctx)
	if err != nil {
		return &bulk.Result{}, err
	}
	if err := canImport(ctx, st, r.DryRun); err != nil {
		return &bulk.Result{}, errors.Join(err, st.Close())
	}
	result, err := t.importWith(ctx, st, r, in, send)
	if err := errors.Join(err, st.Close()); err != nil || r.DryRun {
		return result, err
	}
	if r.Watch > 0 || result.Entries == 0 {
		return result, nil
	}
	// Update the index now, while the user is waiting for something slow anyway, and not
	// when they next ask for a list.
	if _, err = h.index(ctx); errors.Is(err, errAway) {
		err = nil
	}
	return result, err
}

func (r *ImportRequest) check() error {
	switch {
	case len(r.Paths) == 0 && !r.All:
		return wrong("paths", "an import needs {paths} or {all}")
	case r.Format != "" && r.Format != FormatCoppice && transcript.Named(r.Format) == nil:
		return wrong("format", "{format} is %q; it must be one of %s", r.Format, strings.Join(ImportFormats(), ", "))
	case r.Format == FormatCoppice && r.All:
		return wrong("all", "{all} is for other programs; give the {paths} of files that Coppice wrote")
	case r.Watch > 0 && r.DryRun:
		return exclude("dry_run", "watch")
	}
	for _, path := range r.Paths {
		if path == discover.Stdin && r.Watch > 0 {
			return wrong("watch", "standard input cannot be watched")
		}
	}
	return nil
}

// canImport refuses an import into a store that cannot be written, before every file
// fails for the same reason. It tries the first thing that an import does: hold the
// blobs that it is going to name.
func canImport(ctx context.Context, st store.Store, dryRun bool) error {
	if _, err := os.Stat(st.Where()); dryRun || err != nil {
		return nil // a store that does not exist yet is created when there is something to put in
	}
	release, err := st.Blobs().Hold(ctx)
	if err == nil {
		release()
		return nil
	}
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return nil // it may work by then; if not, each file reports it
	}
	return &session.Error{Op: "import into", Path: st.Where(), Err: err, Hint: "the directory of the sessions cannot be written: choose another one"}
}

func (t *Transfer) importWith(ctx context.Context, st store.Store, r ImportRequest, in io.Reader, send func(ImportEvent) error) (*bulk.Result, error) {
	h := t.home
	im := h.importer(st, &r)
	req := bulk.Request{Format: transcript.Named(r.Format), Own: h.ownFormat(st, &r), Stdin: in}
	if send != nil {
		req.Each = func(f *bulk.File, err error) error { return send(ImportEvent{File: f, Error: described(err)}) }
	}
	look := func(l *discover.Looked) error { return r.look(l, h.settings.machine()) }
	if r.Watch > 0 {
		return h.watch(ctx, im, req, time.Duration(r.Watch), look)
	}
	var l discover.Looked
	if err := look(&l); err != nil {
		return &bulk.Result{}, err
	}
	req.Sources = l.Sources
	if r.All && send != nil {
		if err := send(ImportEvent{Programs: orEmpty(discover.ByProgram(req.Sources))}); err != nil {
			return &bulk.Result{}, err
		}
	}
	report := h.progress(ctx, "importing")
	req.Progress = report
	if !r.DryRun {
		beside := h.indexBeside(ctx)
		defer beside.end()
		req.Progress = func(done, total int64) {
			report(done, total)
			beside.note(done)
		}
	}
	return bulk.Import(ctx, im, req)
}

// importer returns what imports into a store of the home.
func (h *Home) importer(st store.Store, r *ImportRequest) *transcript.Importer {
	im := &transcript.Importer{
		Store: st, Options: session.Options{BlobThreshold: h.settings.blobThreshold()},
		Ledger: transcript.LedgerOf(st), DryRun: r.DryRun, Again: r.Again,
		DropDerived: func(ctx context.Context) error {
			_, err := h.site.dropIndexes(ctx)
			return err
		},
		Elsewhere: h.site.redactKnown(),
	}
	if r.Redact || h.settings.redacts() {
		im.Clean = transcript.Redact
	}
	return im
}

// watch imports files as they grow, and keeps the index up to date.
func (h *Home) watch(ctx context.Context, im *transcript.Importer, req bulk.Request, every time.Duration, look func(*discover.Looked) error) (*bulk.Result, error) {
	req.Notices = parts.Notices
	req.Untold = func(why error) { h.notify(ctx, Notice{Kind: ChangesUntold, Error: described(why)}) }
	return bulk.Watch(ctx, im, req, every, look, func() {
		if _, err := h.index(ctx); err != nil && !errors.Is(err, errAway) && ctx.Err() == nil {
			h.notify(ctx, Notice{Kind: IndexBehind, Error: described(err)})
		}
	})
}

// look finds what to import.
func (r *ImportRequest) look(l *discover.Looked, on transcript.Env) error {
	if err := l.In(r.Paths...); err != nil || !r.All {
		return err
	}
	formats := transcript.Formats()
	if format := transcript.Named(r.Format); format != nil {
		formats = []*transcript.Format{format}
	}
	l.For(on, formats...)
	return nil
}

// Format is a format of another program.
type Format struct {
	Name    string `json:"name"`  // as requests have it: "claude-code"
	Title   string `json:"title"` // as people say it: "Claude Code"
	Written bool   `json:"written"`
	Placed  bool   `json:"placed"` // its program keeps files in known places
}

// Formats lists the formats that can be imported. Those that are Written can be
// exported, too.
func Formats() []Format {
	var formats []Format
	for _, f := range transcript.Formats() {
		formats = append(formats, Format{Name: f.Name, Title: f.Title, Written: f.Write != nil, Placed: f.Places != nil})
	}
	return formats
}

// ImportFormats lists what ImportRequest.Format may be.
func ImportFormats() []string {
	names := []string{FormatCoppice}
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	return names
}

// ProgramFormats lists the formats of other programs that can be exported to.
func ProgramFormats() []string {
	var names []string
	for _, f := range Formats() {
		if f.Written {
			names = append(names, f.Name)
		}
	}
	return names
}
