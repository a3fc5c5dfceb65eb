package all_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	_ "github.com/coppice-dev/coppice/transcript/all"
	"github.com/coppice-dev/coppice/transcript/bulk"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// calls are the exported functions and methods, each called with nil and zero values.
var nilCalls = map[string]func(ctx context.Context){
	"transcript.OpenFile":  func(context.Context) { _, _ = transcript.OpenFile("") },
	"transcript.FileOf":    func(context.Context) { transcript.FileOf("", nil) },
	"transcript.Seen":      func(context.Context) { transcript.Seen[int](nil, nil) },
	"transcript.LedgerOf":  func(context.Context) { transcript.LedgerOf(nil) },
	"transcript.HashID":    func(context.Context) { transcript.HashID() },
	"transcript.SessionID": func(context.Context) { transcript.SessionID("", "") },
	"transcript.NativeID": func(ctx context.Context) {
		_, _ = transcript.NativeID(ctx, nil, nil)
		_, _ = transcript.NativeID(ctx, &transcript.Format{}, &transcript.File{})
		_, _ = transcript.NativeID(ctx, nil, &transcript.File{})
	},
	"transcript.Raw":         func(ctx context.Context) { _, _ = transcript.Raw(ctx, nil, nil, nil) },
	"transcript.InPlace":     func(context.Context) { transcript.InPlace(make([]session.Entry, 2)) },
	"transcript.JoinReplies": func(context.Context) { transcript.JoinReplies(make([]session.Entry, 2)) },
	"transcript.Lost":        func(context.Context) { transcript.Lost(nil, ""); transcript.Lost(&session.Entry{}, "") },
	"transcript.ContinuedTo": func(context.Context) { transcript.ContinuedTo("", "", "", time.Time{}) },
	"transcript.OwnReply":    func(context.Context) { transcript.OwnReply(&session.MessageEntry{}) },
	"transcript.ExtendReply": func(context.Context) {
		transcript.ExtendReply(&session.MessageEntry{}, &session.MessageEntry{})
	},
	"transcript.Redact": func(context.Context) { transcript.Redact(nil) },
	"transcript.Collect": func(ctx context.Context) {
		_, _ = transcript.Collect(ctx, nil, nil)
		_, _ = transcript.Collect(ctx, &transcript.Format{}, &transcript.File{})
	},
	"transcript.CameFrom":  func(context.Context) { transcript.CameFrom(nil, nil) },
	"transcript.NewScript": func(context.Context) { _, _ = transcript.NewScript(nil, "", "", time.Time{}) },
	"transcript.Checked":   func(context.Context) { transcript.Checked(nil); transcript.Checked(&transcript.Format{}) },
	"Importer.Batch":       func(context.Context) { (*transcript.Importer)(nil).Batch(); new(transcript.Importer).Batch() },
	"Importer.Import": func(ctx context.Context) {
		_, _ = (*transcript.Importer)(nil).Import(ctx, nil, nil)
		_, _ = new(transcript.Importer).Import(ctx, transcript.Formats()[0], transcript.FileOf("x", nil))
	},
	"Batch.IsFull":  batch(func(_ context.Context, b *transcript.Batch) { b.IsFull() }),
	"Batch.Commit":  batch(func(ctx context.Context, b *transcript.Batch) { b.Commit(ctx) }),
	"Batch.Discard": batch(func(_ context.Context, b *transcript.Batch) { b.Discard() }),
	"Batch.Import":  batch(func(ctx context.Context, b *transcript.Batch) { b.Import(ctx, nil, nil, nil) }),
	"File.Head":     sourceFile(func(_ context.Context, f *transcript.File) { f.Head() }),
	"File.HeadText": sourceFile(func(_ context.Context, f *transcript.File) { f.HeadText() }),
	"File.Open":     sourceFile(func(_ context.Context, f *transcript.File) { _, _ = f.Open() }),
	"File.ReadAll":  sourceFile(func(_ context.Context, f *transcript.File) { _, _ = f.ReadAll() }),
	"File.Beside":   sourceFile(func(_ context.Context, f *transcript.File) { _, _ = f.Beside("") }),
	"File.Around":   sourceFile(func(_ context.Context, f *transcript.File) { _, _ = f.Around("") }),
	"File.Above":    sourceFile(func(_ context.Context, f *transcript.File) { f.Above(-1); f.Above(1) }),
	"File.IsZip":    sourceFile(func(_ context.Context, f *transcript.File) { f.IsZip() }),
	"File.Zip":      sourceFile(func(_ context.Context, f *transcript.File) { _, _ = f.Zip() }),
	"File.Lines": sourceFile(func(ctx context.Context, f *transcript.File) {
		for range f.Lines(ctx) {
		}
	}),
	"File.LinesFrom": sourceFile(func(ctx context.Context, f *transcript.File) {
		for range f.LinesFrom(ctx, -1, -1) {
		}
	}),
	"File.Documents": sourceFile(func(ctx context.Context, f *transcript.File) {
		for range f.Documents(ctx) {
		}
	}),
	"Line.Split":     func(context.Context) { transcript.Line{}.Split() },
	"Archive.Names":  archive(func(a *transcript.Archive) { a.Names() }),
	"Archive.File":   archive(func(a *transcript.Archive) { _, _ = a.File("x") }),
	"Archive.Close":  archive(func(a *transcript.Archive) { _ = a.Close() }),
	"Ledger.Get":     ledger(func(l *transcript.Ledger) { l.Get(context.Background(), "") }),
	"Ledger.Refresh": ledger(func(l *transcript.Ledger) { l.Refresh(context.Background()) }),
	"Ledger.Put": ledger(func(l *transcript.Ledger) {
		_ = l.Put(context.Background(), nil)
		_ = l.Put(context.Background(), &transcript.Source{})
	}),
	"Ledger.PutAll": ledger(func(l *transcript.Ledger) {
		_ = l.PutAll(context.Background(), nil)
		_ = l.PutAll(context.Background(), make([]*transcript.Source, 1))
	}),
	"Ledger.Flush":         ledger(func(l *transcript.Ledger) { _ = l.Flush(context.Background()) }),
	"Ledger.ExportOf":      ledger(func(l *transcript.Ledger) { l.ExportOf(context.Background(), "", "") }),
	"Ledger.IsUnchanged":   ledger(func(l *transcript.Ledger) { l.IsUnchanged(context.Background(), "", nil) }),
	"Report.New":           func(context.Context) { (*transcript.Report)(nil).New() },
	"Env.Dir":              func(context.Context) { transcript.Env{}.Dir("", "") },
	"Script.Tags":          script(func(s *transcript.Script) { s.Tags() }),
	"Script.OtherBranches": script(func(s *transcript.Script) { s.OtherBranches() }),
	"Script.Title":         script(func(s *transcript.Script) { s.Title() }),
	"Script.Updated":       script(func(s *transcript.Script) { s.Updated() }),
	"Replies.Continues": func(context.Context) {
		new(transcript.Replies).Continues(nil)
		(*transcript.Replies)(nil).Continues(&session.Entry{})
	},
	"Exporter.Export": exporter(func(ctx context.Context, x *transcript.Exporter) {
		for _, f := range append(transcript.Formats(), nil, &transcript.Format{}) {
			_, _ = x.Export(ctx, nil, f, transcript.Destination{})
		}
	}),
	"Exporter.Prepare": exporter(func(ctx context.Context, x *transcript.Exporter) {
		for _, f := range append(transcript.Formats(), nil, &transcript.Format{}) {
			_, _ = x.Prepare(ctx, f, nil, nil)
			_, _ = x.Prepare(ctx, f, &transcript.Script{}, nil)
		}
	}),
	"Exporter.Publish": exporter(func(ctx context.Context, x *transcript.Exporter) {
		_, _ = x.Publish(ctx, nil, "", false)
		_, _ = x.Publish(ctx, &transcript.Output{}, "", false)
	}),
	"transcript.Formats": func(context.Context) { transcript.Formats() },
	"transcript.Named":   func(context.Context) { transcript.Named("") },
	"transcript.Detect":  func(context.Context) { transcript.Detect(nil); transcript.Detect(&transcript.File{}) },
	"bulk.Import": func(ctx context.Context) {
		_, _ = bulk.Import(ctx, nil, bulk.Request{})
		_, _ = bulk.Import(ctx, &transcript.Importer{}, bulk.Request{Sources: make([]discover.Source, 1)})
	},
	"bulk.Watch": func(ctx context.Context) {
		done, cancel := context.WithCancel(ctx)
		cancel()
		_, _ = bulk.Watch(done, nil, bulk.Request{}, 0, nil, nil)
	},
	"Result.IsPartial":   func(context.Context) { (*bulk.Result)(nil).IsPartial() },
	"discover.Sources":   func(context.Context) { _, _ = discover.Sources(); _, _ = discover.Sources("") },
	"discover.Known":     func(context.Context) { discover.Known(transcript.Env{}, nil, &transcript.Format{}) },
	"Looked.In":          func(context.Context) { _ = new(discover.Looked).In("") },
	"Looked.For":         func(context.Context) { new(discover.Looked).For(transcript.Env{}, nil, &transcript.Format{}) },
	"discover.Programs":  func(context.Context) { discover.Programs() },
	"discover.ByProgram": func(context.Context) { discover.ByProgram(make([]discover.Source, 2)) },
}

func batch(use func(ctx context.Context, b *transcript.Batch)) func(context.Context) {
	return func(ctx context.Context) {
		for _, b := range []*transcript.Batch{nil, {}, new(transcript.Importer).Batch()} {
			use(ctx, b)
		}
	}
}

func sourceFile(use func(ctx context.Context, f *transcript.File)) func(context.Context) {
	return func(ctx context.Context) {
		for _, f := range []*transcript.File{nil, {}, transcript.FileOf("", nil)} {
			use(ctx, f)
		}
	}
}

func archive(use func(*transcript.Archive)) func(context.Context) {
	return func(context.Context) { use(nil); use(&transcript.Archive{}) }
}

func ledger(use func(*transcript.Ledger)) func(context.Context) {
	return func(context.Context) { use(nil); use(&transcript.Ledger{}); use(transcript.LedgerOf(nil)) }
}

func script(use func(*transcript.Script)) func(context.Context) {
	return func(context.Context) { use(nil); use(&transcript.Script{}) }
}

func exporter(use func(ctx context.Context, x *transcript.Exporter)) func(context.Context) {
	return func(ctx context.Context) { use(ctx, nil); use(ctx, &transcript.Exporter{}) }
}

// TestNothingPanics calls every exported function with nil and zero values. A function
// that is missing from the list fails it.
func TestNothingPanics(t *testing.T) {
	t.Parallel()
	want := make(map[string]bool)
	for _, dir := range []string{"..", ".", "../bulk", "../discover"} {
		exported(t, dir, want)
	}
	delete(want, "transcript.Register") // only an init function may call it
	for name := range want {
		if nilCalls[name] == nil {
			t.Errorf("%s is not called here", name)
		}
	}
	for name, call := range nilCalls {
		if !want[name] {
			t.Errorf("there is no %s", name)
		}
		t.Run(name, func(t *testing.T) { quietly(t, func() { call(t.Context()) }) })
	}
}

// TestFormatsDoNotPanic does the same with what every format can do.
func TestFormatsDoNotPanic(t *testing.T) {
	t.Parallel()
	for _, f := range transcript.Formats() {
		t.Run(f.Name, func(t *testing.T) {
			for _, file := range []*transcript.File{nil, {}, transcript.FileOf("", nil)} {
				quietly(t, func() { f.Detect(file) })
				quietly(t, func() { _ = f.Read(t.Context(), file, nil) })
				quietly(t, func() { _, _ = transcript.Collect(t.Context(), f, file) })
			}
			if f.Places != nil {
				quietly(t, func() {
					for _, place := range f.Places(transcript.Env{}) {
						if place.Match != nil {
							place.Match("")
						}
					}
				})
			}
			for _, command := range []func(string) []string{f.Resume, f.Load} {
				if command != nil {
					quietly(t, func() { command("") })
				}
			}
			if f.Write != nil {
				for _, s := range []*transcript.Script{nil, {}, {Path: make([]session.Entry, 2), Context: &session.Context{Entries: make([]session.Entry, 2)}}} {
					quietly(t, func() {
						if _, err := f.Write(t.Context(), s, transcript.Env{}); s == nil && !errors.Is(err, session.ErrInvalid) {
							t.Errorf("writing nothing: %v", err)
						}
					})
				}
			}
		})
	}
}

func quietly(t *testing.T, call func()) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("it panics: %v", p)
		}
	}()
	call()
}

// exported adds the exported functions of a package, and the exported methods of its
// exported types.
func exported(t *testing.T, dir string, names map[string]bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() {
				continue
			}
			if f.Recv == nil {
				names[parsed.Name.Name+"."+f.Name.Name] = true
			} else if of := typeName(f.Recv.List[0].Type); ast.IsExported(of) {
				names[of+"."+f.Name.Name] = true
			}
		}
	}
}

func typeName(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
