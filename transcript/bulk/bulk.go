// Package bulk imports many files, several at a time, and reports what became of them all.
// Begin with Import, or with Watch for files that still grow.
package bulk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// Request says what to import.
type Request struct {
	Sources []discover.Source
	// Format, if it is set, is that of every source. Default: that of the program
	// which keeps the source, or the one that its content looks like.
	Format *transcript.Format
	// Own, if it is set, recognises files that are sessions already. It is asked first about
	// every source whose format is not given.
	Own *Own
	// Stdin is read for the source discover.Stdin. When the context ends, Import does not
	// wait for a read that blocks.
	Stdin io.Reader
	// Each, if it is set, is called with the outcome of each source, one after the
	// other, and with the reason if it could not be read. What it reports is durable. An
	// error from it ends the import.
	Each func(f *File, failed error) error
	// Notices tells Watch of changes. If it is not set, Watch has to look for them. If it cannot
	// tell, Untold is called with the reason, unless that is nil.
	Notices vfs.Notifier
	Untold  func(why error)
	// Progress, if it is set, is called with how many bytes of the sources are done, and
	// how many there are. Several goroutines may call it.
	Progress func(done, total int64)
}

// Own is a format whose files are copied into the store as they are, without an importer.
type Own struct {
	Name, Title string
	Only        bool                          // every source has this format
	Detect      func(f *transcript.File) bool // whether a file has this format
	// Import copies a file into the store and fills in the outcome. Several goroutines
	// may call it.
	Import func(ctx context.Context, from *transcript.File, to *File) error
}

// File is what became of one source.
type File struct {
	transcript.Report
	Error string `json:"error,omitempty"`

	err error // the same
}

func newFile(src discover.Source) *File {
	return &File{Report: transcript.Report{Path: src.Path, Sessions: []transcript.SessionReport{}}}
}

// Total is what became of several sources.
type Total struct {
	Files     int   `json:"files"`
	Unchanged int   `json:"unchanged"`
	Bytes     int64 `json:"bytes"`
	Sessions  int   `json:"sessions"` // that have new entries
	Entries   int   `json:"entries"`  // that were added
	Problems  int   `json:"problems"` // records that could not be read
	Failed    int   `json:"failed"`   // files that could not be read
}

// sum adds up what became of sources. It counts a source once, however often Watch looks at
// it, and a session once, however many sources it has.
type sum struct {
	Total
	read     map[string]bool // by path: whether the source was read at least once
	failed   map[string]bool // the sources that could not be read the last time
	sessions map[string]bool // that have new entries
}

func newSum() *sum {
	return &sum{read: make(map[string]bool), failed: make(map[string]bool), sessions: make(map[string]bool)}
}

func (s *sum) add(f *File) {
	s.Bytes += f.Bytes
	s.Problems += f.Problems
	read, seen := s.read[f.Path]
	s.read[f.Path] = read || !f.Unchanged
	switch {
	case !seen && f.Unchanged:
		s.Unchanged++
	case seen && !read && !f.Unchanged:
		s.Unchanged--
	}
	if delete(s.failed, f.Path); f.err != nil {
		s.failed[f.Path] = true
	}
	for i := range f.Sessions {
		if n := f.Sessions[i].New; n > 0 {
			s.sessions[f.Sessions[i].ID] = true
			s.Entries += n
		}
	}
	s.Files, s.Failed, s.Sessions = len(s.read), len(s.failed), len(s.sessions)
}

// Result is what became of all sources.
type Result struct {
	Total
	// ByFormat has the same for each format: Request.Own, then those of transcript.Formats in
	// their order. Files of no known format are not in it.
	ByFormat []FormatTotal `json:"by_format"`
	// Failures are the files that could not be read.
	Failures []*File `json:"failures,omitempty"`
}

// FormatTotal is what became of the files of one format.
type FormatTotal struct {
	Format string `json:"format"`
	Title  string `json:"title"`
	Total
}

// IsPartial reports whether something could not be read.
func (r *Result) IsPartial() bool { return r != nil && (r.Failed > 0 || r.Problems > 0) }

func errNoImporter() error {
	return &session.Error{Op: "import", Kind: session.ErrInvalid, Err: errors.New("there must be an importer")}
}

// Import imports files, several at a time. A file that fails does not keep the
// others from being imported: see Result.Failures. If the context ends, Import
// returns its error together with what was done until then, all of which stays.
func Import(ctx context.Context, im *transcript.Importer, r Request) (*Result, error) {
	if im == nil {
		return &Result{}, errNoImporter()
	}
	run := newRun(im, r)
	err := run.all(ctx, r.Sources)
	return run.result(), err
}

// ErrNoFormat is the cause when a file has no known format.
var ErrNoFormat = errors.New("no known format")

// run is one import.
type run struct {
	im  *transcript.Importer
	req Request

	mu       sync.Mutex // guards what follows, and calls of Each
	total    *sum
	totals   map[string]*sum // by format
	failures []*File
	failed   error // what Each returned

	size int64 // of all sources
	done atomic.Int64
}

func newRun(im *transcript.Importer, r Request) *run {
	run := &run{req: r, total: newSum(), totals: make(map[string]*sum)}
	own := *im
	own.Progress = func(n int64) {
		if im.Progress != nil {
			im.Progress(n)
		}
		run.progress(n)
	}
	run.im = &own
	return run
}

func (r *run) progress(n int64) {
	if done := r.done.Add(n); r.req.Progress != nil {
		r.req.Progress(min(done, r.size), r.size)
	}
}

// all imports sources with two workers for each processor, because a worker often
// waits for the disk, but with a few at most: they share one disk.
func (r *run) all(ctx context.Context, sources []discover.Source) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.im.Ledger.Refresh(ctx)
	r.size = 0
	r.done.Store(0)
	for _, src := range sources {
		r.size += src.Size
	}
	next := make(chan discover.Source)
	var workers sync.WaitGroup
	for range min(2*runtime.GOMAXPROCS(0), maxWorkers) {
		workers.Go(func() {
			batch := r.im.Batch()
			for src := range next {
				if src.Path == discover.Stdin {
					batch.Commit(ctx) // the batch must not wait until standard input has something
				}
				r.one(ctx, batch, src, func(f *File) {
					r.progress(src.Size - f.Bytes) // what was skipped is done too
					if r.account(ctx, src, f) != nil {
						cancel()
					}
				})
				if batch.IsFull() {
					batch.Commit(ctx)
				}
			}
			if ctx.Err() == nil {
				batch.Commit(ctx)
			}
			batch.Discard()
		})
	}
	for _, src := range sources {
		if ctx.Err() != nil {
			break
		}
		next <- src
	}
	close(next)
	workers.Wait()
	if err := r.im.Ledger.Flush(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if r.failed != nil {
		return r.failed
	}
	return ctx.Err()
}

const maxWorkers = 4

// one imports one source, now or with the rest of its batch, and reports what became of it.
func (r *run) one(ctx context.Context, batch *transcript.Batch, src discover.Source, done func(*File)) {
	tell := func(report *transcript.Report, err error) {
		if err == nil && !src.Found && isEmpty(report) {
			err = &session.Error{Op: "import", Path: src.Path, Kind: session.ErrInvalid, Err: errors.New("nothing in it has the format " + report.Format)}
		}
		f := newFile(src)
		if f.err = err; report != nil {
			f.Format, f.Bytes, f.Unchanged, f.Problems = report.Format, report.Bytes, report.Unchanged, report.Problems
			f.Sessions = append(f.Sessions, report.Sessions...)
		}
		done(f)
	}
	format, f, err := r.open(ctx, src)
	if ctx.Err() != nil {
		err = ctx.Err() // the end of the context may have been the end of standard input
	}
	switch {
	case err != nil:
		tell(nil, err)
	case format == nil:
		done(r.importOwn(ctx, src, f))
	default:
		batch.Import(ctx, format, f, tell)
	}
}

// isEmpty reports whether a file was read and held nothing, not even an unreadable record.
func isEmpty(r *transcript.Report) bool {
	return !r.Unchanged && r.Problems == 0 && !slices.ContainsFunc(r.Sessions, func(s transcript.SessionReport) bool { return s.New+s.Known > 0 })
}

// importOwn imports a file that is a session already.
func (r *run) importOwn(ctx context.Context, src discover.Source, from *transcript.File) *File {
	f := newFile(src)
	f.Format, f.Bytes = r.req.Own.Name, src.Size
	f.err = r.req.Own.Import(ctx, from, f)
	return f
}

// names reports whether an error says which file it is about: this one, or one that is
// packed in it.
func names(err error, path string) bool {
	said := ""
	if e, ok := errors.AsType[*session.Error](err); ok {
		said = e.Path
	} else if e, ok := errors.AsType[*fs.PathError](err); ok {
		said = e.Path
	}
	abs, absErr := filepath.Abs(path)
	return said == path || said != "" && absErr == nil && said == abs || strings.HasPrefix(said, path+"!")
}

// account counts a source and calls Each.
func (r *run) account(ctx context.Context, src discover.Source, f *File) error {
	if src.Found && errors.Is(f.err, ErrNoFormat) {
		return nil // directories hold other files too
	}
	if f.err != nil && ctx.Err() != nil && errors.Is(f.err, ctx.Err()) {
		f.err = nil // it is not the file's fault
		if len(f.Sessions) == 0 {
			return nil
		}
	}
	if f.err != nil {
		if !names(f.err, f.Path) {
			f.err = fmt.Errorf("%s: %w", f.Path, f.err)
		}
		f.Error = strings.ReplaceAll(f.err.Error(), "\n", "; ")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.total.failed[f.Path] { // the last time: this one counts
		r.failures = slices.DeleteFunc(r.failures, func(o *File) bool { return o.Path == f.Path })
	}
	r.total.add(f)
	if f.Format != "" {
		if r.totals[f.Format] == nil {
			r.totals[f.Format] = newSum()
		}
		r.totals[f.Format].add(f)
	}
	if f.err != nil {
		r.failures = append(r.failures, f)
	}
	if r.req.Each != nil && r.failed == nil {
		r.failed = r.req.Each(f, f.err)
	}
	return r.failed
}

func (r *run) result() *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := Result{Total: r.total.Total, ByFormat: []FormatTotal{}, Failures: slices.Clone(r.failures)}
	if own := r.req.Own; own != nil && r.totals[own.Name] != nil {
		result.ByFormat = append(result.ByFormat, FormatTotal{own.Name, own.Title, r.totals[own.Name].Total})
	}
	for _, format := range transcript.Formats() {
		if t := r.totals[format.Name]; t != nil {
			result.ByFormat = append(result.ByFormat, FormatTotal{format.Name, format.Title, t.Total})
		}
	}
	return &result
}

// open opens a source and finds out its format: nil for Request.Own.
func (r *run) open(ctx context.Context, src discover.Source) (*transcript.Format, *transcript.File, error) {
	if src.Err != nil {
		return nil, nil, src.Err
	}
	f, err := r.file(ctx, src.Path)
	if err != nil {
		return nil, nil, err
	}
	format := r.req.Format
	if format == nil {
		format = src.Format
	}
	if own := r.req.Own; own != nil && (own.Only || format == nil && own.Detect(f)) {
		return nil, f, nil
	}
	if format == nil {
		if format = transcript.Detect(f); format == nil {
			return nil, nil, &session.Error{Op: "import", Path: src.Path, Kind: session.ErrInvalid, Err: ErrNoFormat}
		}
	}
	return format, f, nil
}

// maxStdin bounds what is read of standard input: it is held in memory.
const maxStdin = 1 << 30

func (r *run) file(ctx context.Context, path string) (*transcript.File, error) {
	if path != discover.Stdin {
		return transcript.OpenFile(path)
	}
	if r.req.Stdin == nil {
		return nil, &session.Error{Op: "import", Path: path, Kind: session.ErrInvalid, Err: errors.New("there is no standard input")}
	}
	data, err := gate.Await(ctx, func() ([]byte, error) {
		return io.ReadAll(io.LimitReader(r.req.Stdin, maxStdin+1))
	})
	if err != nil {
		return nil, err
	}
	if len(data) > maxStdin {
		return nil, &session.Error{
			Op: "import", Path: path, Kind: session.ErrTooLarge, Err: fmt.Errorf("more than %d MiB", maxStdin>>20),
			Hint: "save it to a file: a file can be of any size",
		}
	}
	return transcript.FileOf(path, data), nil
}
