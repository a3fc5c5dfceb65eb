package home

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/transcript"
)

// Coppice's own formats. Those of other programs are in Formats.
const (
	ExportMarkdown = "md"    // the conversation as Markdown
	ExportHTML     = "html"  // one page with all branches
	ExportJSON     = "json"  // one document: header, entries, leaf, labels
	ExportJSONL    = "jsonl" // the bytes of the log
)

// ExportFormats lists Coppice's own formats.
func ExportFormats() []string {
	return []string{ExportMarkdown, ExportHTML, ExportJSON, ExportJSONL}
}

// endings maps file name endings to formats.
var endings = map[string]string{
	".md": ExportMarkdown, ".markdown": ExportMarkdown, ".html": ExportHTML, ".htm": ExportHTML, ".json": ExportJSON, ".jsonl": ExportJSONL,
}

// formatOfPath returns the format for the ending of a file name, and Markdown for a name
// without an ending. An unknown ending is ErrInvalid: a .pdf file that is not a PDF would be
// useless.
func formatOfPath(path string) (string, error) {
	ending := strings.ToLower(filepath.Ext(path))
	if ending == "" {
		return ExportMarkdown, nil
	}
	if format, ok := endings[ending]; ok {
		return format, nil
	}
	return "", &session.Error{Op: "export", Path: path, Err: wrong("format", "no format has the ending %s", ending)}
}

// ExportRequest says which conversation to write, how, and where.
type ExportRequest struct {
	OpenRequest
	// Format is one of Coppice's own, or that of another program. Default: the one for the
	// ending of Path, or else Markdown.
	Format string `json:"format,omitempty"`
	// Leaf is the entry at which the path ends, as a person names it. Default: the
	// conversation's leaf. JSON and JSONL contain all branches and refuse it.
	Leaf string `json:"leaf,omitempty"`
	// Inline fills in content that is kept apart from the log. Only JSONL needs it.
	Inline bool `json:"inline,omitempty"`
	// Redact removes secrets.
	Redact bool `json:"redact,omitempty"`

	// Path is the file to write, or a directory (it exists, or the path ends with a slash) in
	// which the file is named after the conversation. As JSON and JSONL, each session of the
	// conversation has a file of its own there. "-" means that the content is sent as events.
	// Default: the same; but for another program's format, the place where that program looks
	// for its files.
	Path string `json:"path,omitempty" here:"-"`
	// Force replaces an existing file. Without it, that is ErrExist.
	Force bool `json:"force,omitempty" here:""`
}

// ExportPiece is a piece of an export that does not go to files.
type ExportPiece struct {
	Data []byte `json:"data"`
}

// exporting is an export that is under way.
type exporting struct {
	ExportRequest
	out     io.Writer       // gets what goes to no file; nil if it is not wanted
	toOut   bool            // the path was "-"
	written map[string]bool // sessions that another conversation wrote already
}

// pieces passes on the bytes written to it.
type pieces func(ExportPiece) error

func (send pieces) Write(data []byte) (int, error) {
	if err := send(ExportPiece{bytes.Clone(data)}); err != nil {
		return 0, err
	}
	return len(data), nil
}

// pieceSize is the size of a piece.
const pieceSize = 64 << 10

// ExportResult is what was written.
type ExportResult struct {
	Session string   `json:"session"`
	Format  string   `json:"format"`
	Paths   []string `json:"paths"` // none if it was sent
	// Resume is the command that continues the conversation in its program.
	Resume string `json:"resume,omitempty"`
	// Losses is what the format cannot hold, each kind once.
	Losses []ExportLoss `json:"losses,omitempty"`
	// Missing is content that the home no longer has. The file says where it was. JSON and
	// inlined JSONL serve to restore a conversation, so they are not written without it: that
	// is ErrIncomplete.
	Missing []MissingContent `json:"missing,omitempty"`
}

// ExportLoss is what a format cannot hold.
type ExportLoss struct {
	What string `json:"what"`
	Why  string `json:"why"`
	N    int    `json:"n"` // how often
}

// Export writes a conversation for people or for other programs: into files, or in pieces
// that it sends.
func (t *Transfer) Export(ctx context.Context, r ExportRequest, send func(ExportPiece) error) (*ExportResult, error) {
	x := exporting{ExportRequest: r}
	if send != nil {
		x.out = pieces(send)
	}
	return t.export(ctx, x)
}

func (t *Transfer) export(ctx context.Context, r exporting) (*ExportResult, error) {
	if err := r.complete(); err != nil {
		return nil, err
	}
	if err := t.home.mustBeElsewhere(ctx, r.Path); err != nil {
		return nil, err
	}
	c, err := t.home.openFor(ctx, r.OpenRequest)
	if err != nil {
		return nil, err
	}
	defer c.Session.Close() // we only read
	result := &ExportResult{Session: c.Handle, Format: r.Format, Paths: []string{}}
	if !c.isAlone() && isDir(r.Path) && (r.Format == ExportJSON || r.Format == ExportJSONL) {
		return result, t.exportLinks(ctx, c.Chain.Links, r, result)
	}
	leaf, err := c.Resolve(r.Leaf)
	if err != nil {
		return nil, err
	}
	if result.Missing, err = c.missingFor(ctx, &r.ExportRequest, leaf); err != nil {
		return nil, err
	}
	if !slices.Contains(ExportFormats(), r.Format) {
		return result, t.exportTo(ctx, c, r, result)
	}
	if r.Redact && r.Format != ExportJSONL {
		copied, err := redactedCopy(ctx, c)
		if err != nil {
			return nil, err
		}
		defer copied.Close()
		c.Session = copied.WithContext(ctx)
	}
	count := 0
	write := func(w io.Writer) error { return c.export(ctx, w, leaf, &r.ExportRequest, result, &count) }
	var check func(string) error
	if r.Format == ExportJSON || r.Inline {
		written := sha256.New()
		write = func(w io.Writer) error {
			return c.export(ctx, io.MultiWriter(w, written), leaf, &r.ExportRequest, result, &count)
		}
		check = func(path string) error { return readBack(ctx, path, written, count) }
	}
	if r.Path == "" {
		buffered := bufio.NewWriterSize(r.out, pieceSize)
		err := write(buffered)
		if flushed := buffered.Flush(); err == nil {
			err = flushed // the other error would only repeat it
		}
		return result, err
	}
	path, err := writeOut(r.Path, c.Handle+"."+r.Format, r.Force, write, check)
	if err != nil {
		return nil, err
	}
	result.Paths = append(result.Paths, path)
	return result, nil
}

// exportLinks writes the sessions of a conversation to a file each. A single file could not
// be imported as the same sessions: the ids of all but one would be lost, and an import
// recognises sessions by their ids.
func (t *Transfer) exportLinks(ctx context.Context, links []string, r exporting, result *ExportResult) error {
	r.Link = true
	for _, link := range links {
		if r.written[link] {
			continue
		}
		r.Session = link
		done, err := t.export(ctx, r)
		if err != nil {
			return err
		}
		if r.written != nil {
			r.written[link] = true
		}
		result.Paths = append(result.Paths, done.Paths...)
		result.Missing = append(result.Missing, done.Missing...)
	}
	return nil
}

// mustBeElsewhere refuses to write among the sessions: a file there would be taken for a
// session, or replace one.
func (h *Home) mustBeElsewhere(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	dir := path
	if !isDir(path) {
		dir = filepath.Dir(path)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	st := storeIn(ctx, dir)
	if st != nil {
		defer st.Close()
	}
	if abs, err := filepath.Abs(dir); st != nil || err == nil && abs == h.store.Where() {
		return &session.Error{
			Op: "export", Path: path, Err: wrong("path", "%s holds sessions, and an export there would look like one", dir),
			Hint: "write to another directory",
		}
	}
	return nil
}

// isDir reports whether a path means a directory: it is one, or ends with a slash.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir() || strings.HasSuffix(path, "/") || strings.HasSuffix(path, string(filepath.Separator))
}

// ExportAllRequest says which conversations to write. Session is not used. Path is a
// directory, and required for formats whose files have no place of their own. A
// conversation that is named twice is written once.
type ExportAllRequest struct {
	ExportRequest
	Sessions []string `json:"sessions,omitempty"` // as a person names them
	All      bool     `json:"all,omitempty"`      // instead of Sessions: every conversation of the home
}

// ExportEvent says what became of one of several conversations.
type ExportEvent struct {
	Session string        `json:"session"` // as it was given
	Result  *ExportResult `json:"result,omitempty"`
	Error   *ErrorInfo    `json:"error,omitempty"` // why it was not written
}

// ExportAllResult counts what became of several conversations.
type ExportAllResult struct {
	Exported int `json:"exported"`
	Failed   int `json:"failed"`
}

// ExportAll writes several conversations. If one fails, the others are still written. If the
// context ends, ExportAll returns its error together with what was done until then. It sends
// what became of each.
func (t *Transfer) ExportAll(ctx context.Context, r ExportAllRequest, send func(ExportEvent) error) (*ExportAllResult, error) {
	if err := t.home.checkOpen("transfer.export_all"); err != nil {
		return nil, err
	}
	result := &ExportAllResult{}
	if (len(r.Sessions) > 0) == r.All {
		return result, wrong("sessions", "either {sessions} or {all} is needed")
	}
	if format := transcript.Named(r.Format); (format == nil || format.Places == nil) && !isDir(r.Path) {
		return result, wrong("path", "several conversations need a directory: one that exists, or a path that ends with a slash")
	}
	sessions := t.home.distinct(ctx, r.Sessions, r.Link)
	if r.All {
		var err error
		if sessions, err = t.home.conversations(ctx); err != nil {
			return result, err
		}
	}
	written := make(map[string]bool)
	for i, given := range sessions {
		if err := ctx.Err(); err != nil {
			return result, err
		}
		t.home.progress(ctx, "exporting")(int64(i), int64(len(sessions)))
		one := exporting{ExportRequest: r.ExportRequest, written: written}
		one.Session = given
		done, err := t.export(ctx, one)
		if err == nil {
			result.Exported++
		} else if ctx.Err() == nil {
			result.Failed++
		}
		if send != nil {
			if err := send(ExportEvent{given, done, described(err)}); err != nil {
				return result, err
			}
		}
	}
	return result, ctx.Err()
}

// conversations lists all conversations of the home, oldest first.
func (h *Home) conversations(ctx context.Context) ([]string, error) {
	return h.listed(ctx, ListRequest{Reverse: true, All: true, Limit: -1})
}

// complete completes a request, or returns what is wrong with it.
func (r *exporting) complete() (err error) {
	if r.toOut = r.Path == "-"; r.toOut {
		r.Path = ""
	}
	if r.Format == "" && isDir(r.Path) {
		r.Format = ExportMarkdown
	}
	if r.Format == "" {
		if r.Format, err = formatOfPath(r.Path); err != nil {
			return err
		}
	}
	own := slices.Contains(ExportFormats(), r.Format)
	format := transcript.Named(r.Format)
	switch {
	case !own && (format == nil || format.Write == nil):
		return wrong("format", "{format} is %q; it must be one of %s, or of other programs %s", r.Format,
			strings.Join(ExportFormats(), ", "), strings.Join(ProgramFormats(), ", "))
	case r.Inline && r.Format != ExportJSONL:
		return wrong("inline", "only jsonl takes {inline}; %s already has all content", r.Format)
	case r.Leaf != "" && (r.Format == ExportJSON || r.Format == ExportJSONL):
		return wrong("leaf", "{leaf} is not for %s, which has all branches", r.Format)
	case r.Path == "" && r.out == nil && (own || r.toOut):
		return wrong("path", "{path} is needed")
	}
	return nil
}

// writeOut writes to the file that the user named, or to a file with the given name in the
// directory that the user named, and returns its path. See vfs.WriteOut.
func writeOut(path, name string, force bool, write func(io.Writer) error, check func(path string) error) (string, error) {
	if !isDir(path) {
		return path, writeFile(path, force, write, check)
	}
	if err := vfs.Mkdir(vfs.OS{KeepOwner: true}, path, 0o700); err != nil {
		return "", err
	}
	path = filepath.Join(path, name)
	return path, writeFile(path, force, write, check)
}

func writeFile(path string, force bool, write func(io.Writer) error, check func(path string) error) error {
	err := vfs.WriteOut(path, force, write, check)
	if errors.Is(err, fs.ErrExist) {
		return &session.Error{Op: "write", Path: path, Kind: session.ErrExist, Hint: "it was left alone; choose another name"}
	}
	if missing := (*fs.PathError)(nil); errors.As(err, &missing) && missing.Path != path {
		err = missing.Err // without the name of the temporary file, which means nothing to the caller
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// export writes the conversation in a format of our own, and counts the entries of JSON and
// JSONL. It adds to the result what a page lacks.
func (c *Conversation) export(ctx context.Context, w io.Writer, leaf string, r *ExportRequest, result *ExportResult, count *int) error {
	switch r.Format {
	case ExportJSON:
		return c.writeJSON(ctx, w, count)
	case ExportJSONL:
		return c.writeLines(ctx, w, r, count)
	}
	drawn, err := c.Rendered(ctx)
	if err != nil {
		return err
	}
	if r.Format == ExportHTML {
		if parts.HTML == nil {
			return missingPart("export", "pages in HTML")
		}
		drawn.Cost = c.cost(ctx)
		if drawn.Picture, err = c.picture(ctx, drawn, leaf); err != nil {
			return err
		}
		var look func(*session.Entry)
		if !r.Redact { // a redacted copy does not show what its original lacks
			look = func(e *session.Entry) { result.Missing = append(result.Missing, c.missingOf(e)...) }
		}
		return parts.HTML(ctx, w, drawn, leaf, look)
	}
	if parts.Markdown == nil {
		return missingPart("export", "pages in Markdown")
	}
	if drawn.Tokens, err = c.tokensSpent(ctx); err != nil {
		return err
	}
	if drawn.Updated, err = c.updated(ctx); err != nil {
		return err
	}
	return parts.Markdown(ctx, w, drawn, leaf)
}

// missingFor lists missing content that a format would show. JSON, inlined JSONL and a page
// find that out while they are written.
func (c *Conversation) missingFor(ctx context.Context, r *ExportRequest, leaf string) (missing []MissingContent, err error) {
	shape, err := c.Shape()
	if err != nil {
		return nil, err
	}
	ids := shape.IDs()
	switch format := r.Format; {
	case format == ExportJSONL:
		return missingOfAll(ctx, c.Session)
	case format == ExportJSON, format == ExportMarkdown && leaf == "", format == ExportHTML && !r.Redact:
		return nil, nil
	case format == ExportMarkdown:
		if ids, err = pathIDs(c.Session, leaf); err != nil {
			return nil, err
		}
	}
	for e, err := range peeked(ctx, c.Session, ids) {
		if err != nil {
			return nil, err
		}
		missing = append(missing, c.missingOf(&e)...)
	}
	return missing, ctx.Err()
}

// missingOf lists what is missing of an entry that is shown.
func (c *Conversation) missingOf(e *session.Entry) (missing []MissingContent) {
	if e.Custom != nil {
		return nil // it is not shown
	}
	for _, p := range fill(c.Session, e) {
		missing = append(missing, MissingContent{Entry: p.EntryID, Blob: string(p.Blob)})
	}
	return missing
}

// cost returns what the conversation has cost, as Stats does, or "" if that is not known: a
// page works without it.
func (c *Conversation) cost(ctx context.Context) string {
	stats, err := c.home.Search.Stats(ctx, StatsRequest{Session: c.ID()})
	if err != nil || stats.Total.Tokens() == 0 {
		return ""
	}
	return CostOf(&stats.Total)
}

// countLosses lists what a format cannot hold, each kind once.
func countLosses(losses []transcript.Loss) []ExportLoss {
	var counted []ExportLoss
	places := make(map[ExportLoss]int)
	for _, loss := range losses {
		kind := ExportLoss{What: loss.What, Why: loss.Why}
		at, known := places[kind]
		if !known {
			at, places[kind] = len(counted), len(counted)
			counted = append(counted, kind)
		}
		counted[at].N++
	}
	return counted
}

// exportTo writes the conversation into another program's files.
func (t *Transfer) exportTo(ctx context.Context, c *Conversation, r exporting, result *ExportResult) error {
	leaf := ""
	if r.Leaf != "" {
		var err error
		if leaf, err = c.Resolve(r.Leaf); err != nil {
			return err
		}
	}
	x := &transcript.Exporter{Env: t.home.settings.machine(), Ledger: transcript.LedgerOf(t.home.store), Subagents: t.home.subagentsOf}
	if r.Redact {
		x.Clean = transcript.Redact
	}
	to := transcript.Destination{Leaf: leaf, Path: r.Path, Nowhere: r.toOut, Force: r.Force}
	done, err := x.Export(ctx, c.Session, transcript.Named(r.Format), to)
	if err != nil {
		return err
	}
	result.Paths, result.Resume = append(result.Paths, done.Paths...), done.Resume
	result.Losses = countLosses(done.Losses)
	if done.Data == nil {
		return nil
	}
	if r.out == nil {
		return wrong("path", "{path} is needed: %s is not the format of one program", r.Format)
	}
	_, err = io.Copy(r.out, bytes.NewReader(done.Data))
	return err
}
