package home_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/index/sqlite"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// claudeCode is a conversation of Claude Code with one prompt.
func claudeCode(n int, text string) string { return claudeCodeLine(n, 0, text) }

// claudeCodeLine is the i-th prompt of a conversation of Claude Code.
func claudeCodeLine(n, i int, text string) string {
	return fmt.Sprintf(`{"parentUuid":null,"cwd":"/w","sessionId":"%08d-4d57-4a54-9be1-3f6b1b2f6f10","type":"user","message":{"role":"user","content":%q},"uuid":"%08d-0000-4000-8000-%012d","timestamp":"2026-01-02T03:04:05.000Z"}`+"\n",
		n, text, n, i+1)
}

func writeText(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// imported imports some conversations into a new house.
func imported(t *testing.T, texts ...string) *house {
	t.Helper()
	h, dir := newHouseInFiles(t), t.TempDir()
	for i, text := range texts {
		writeText(t, filepath.Join(dir, fmt.Sprintf("%d.jsonl", i)), claudeCode(i, text))
	}
	r, err := h.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{dir}}, nil, nil)
	if err != nil || r.Sessions != len(texts) {
		t.Fatalf("imported %+v, %v", r, err)
	}
	return h
}

func TestImportLeavesTheIndexUpToDate(t *testing.T) {
	t.Parallel()
	h := imported(t, "one", "two")
	status, err := os.Stat(indexPath(h.Home))
	if err != nil || status.Size() == 0 {
		t.Fatalf("there is no index: %v", err)
	}
	seen := false
	again := h.open(&home.Options{Progress: func(doing string, _, _ int64) { seen = seen || doing == "indexing" }})
	defer again.Close()
	overview, err := again.Sessions.Overview(t.Context())
	if err != nil || overview.Sessions != 2 || seen {
		t.Errorf("there are %+v, it indexed: %v; %v", overview, seen, err)
	}
}

// A long import is indexed while it goes on: here, while it waits for standard input.
func TestImportIsIndexedBesideIt(t *testing.T) {
	t.Parallel()
	h, dir := newHouseInFiles(t), t.TempDir()
	var large strings.Builder
	for i := range 200 {
		large.WriteString(claudeCodeLine(1, i, strings.Repeat("early ", 10_000)))
	}
	writeText(t, filepath.Join(dir, "large.jsonl"), large.String())
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		r, err := h.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{dir, "-"}, Format: "claude-code"}, in, nil)
		if err == nil && r.Sessions != 2 {
			err = fmt.Errorf("imported %+v", r)
		}
		ended <- err
	}()
	late := time.After(time.Minute)
	for indexed := int64(0); indexed == 0; {
		select {
		case <-late:
			t.Fatal("nothing was indexed")
		case err := <-ended:
			t.Fatalf("the import ended without its input: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		if _, err := os.Stat(indexPath(h.Home)); err != nil {
			continue
		}
		room, err := sqlite.Open(t.Context(), indexPath(h.Home), nil)
		if err != nil {
			t.Fatal(err)
		}
		ix := index.New(h.Store(), room, nil)
		status, err := ix.Status(t.Context())
		if err := errors.Join(err, ix.Close()); err != nil {
			t.Fatal(err)
		}
		indexed = status.Entries
	}
	if _, err := io.WriteString(out, claudeCode(2, "late")); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"early", "late"} {
		if r, err := h.Search.Find(t.Context(), home.FindRequest{Query: word}); err != nil || len(r.Hits) == 0 {
			t.Errorf("%q: found %+v, %v", word, r, err)
		}
	}
}

func TestImportFindsWhatProgramsKeep(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	user := h.env["HOME"]
	writeText(t, filepath.Join(user, ".claude", "projects", "-w", "00000001-4d57-4a54-9be1-3f6b1b2f6f10.jsonl"), claudeCode(1, "hello"))
	var found []discover.Program
	r, err := h.Transfer.Import(t.Context(), home.ImportRequest{All: true}, nil, func(e home.ImportEvent) error {
		if e.File == nil {
			found = e.Programs
		}
		return nil
	})
	if err != nil || r.Entries != 1 || len(found) != 1 || found[0].Name != "claude-code" {
		t.Errorf("found %+v, imported %+v, %v", found, r, err)
	}
}

func TestImportRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, r := range map[string]home.ImportRequest{
		"nothing":        {},
		"unknown format": {Paths: []string{"-"}, Format: "nonsense"},
		"watching -":     {Paths: []string{"-"}, Watch: 1},
		"dry watch":      {All: true, Watch: 1, DryRun: true},
	} {
		if _, err := h.Transfer.Import(t.Context(), r, nil, nil); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDryImportWritesNothing(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	path := writeText(t, filepath.Join(t.TempDir(), "a.jsonl"), claudeCode(1, "hello"))
	r, err := h.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{path}, DryRun: true}, nil, nil)
	if err != nil || r.Entries != 1 {
		t.Errorf("it would import %+v, %v", r, err)
	}
	if _, err := os.Stat(h.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the home is there: %v", err)
	}
}

func TestImportTakesSecretsOut(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const secret = "ghp_q3RwT5yU7iOp9AsDf1GhJk2LzXcVbN4mQwEr"
	path := writeText(t, filepath.Join(t.TempDir(), "a.jsonl"), claudeCode(1, "my token is "+secret))
	if _, err := h.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{path}, Redact: true}, nil, nil); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, err := h.Transfer.Export(t.Context(), home.ExportRequest{OpenRequest: home.OpenRequest{Session: "last"}}, into(&out)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), secret) || !strings.Contains(out.String(), "REDACTED") {
		t.Errorf("it has\n%s", out.String())
	}
}

func TestExportWritesEveryFormat(t *testing.T) {
	t.Parallel()
	h := imported(t, "hello there")
	for _, format := range home.ExportFormats() {
		path := filepath.Join(t.TempDir(), "talk."+format)
		r, err := h.Transfer.Export(t.Context(), home.ExportRequest{OpenRequest: home.OpenRequest{Session: "last"}, Path: path}, nil)
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), "hello there") || r.Format != format || !cmp.Equal(r.Paths, []string{path}) {
			t.Errorf("%s: %+v, %v\n%s", format, r, err, data)
		}
	}
}

// fullDisk is a writer without room.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAFailedExportSaysSoOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := h.say(session.Header{}, strings.Repeat("long ", 10_000))
	for _, format := range home.ExportFormats() {
		_, err := h.Transfer.Export(t.Context(), home.ExportRequest{OpenRequest: home.OpenRequest{Session: s.ID()}, Format: format}, into(fullDisk{}))
		if err == nil || strings.Count(err.Error(), "no space left") != 1 {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestExportRefusesWhatItCannotWrite(t *testing.T) {
	t.Parallel()
	h := imported(t, "hello")
	taken := writeText(t, filepath.Join(t.TempDir(), "taken.md"), "mine")
	last := home.OpenRequest{Session: "last"}
	for name, tt := range map[string]struct {
		r    home.ExportRequest
		want error
	}{
		"unknown ending":   {home.ExportRequest{OpenRequest: last, Path: "x.pdf"}, session.ErrInvalid},
		"unknown format":   {home.ExportRequest{OpenRequest: last, Format: "pdf", Path: "x"}, session.ErrInvalid},
		"nowhere":          {home.ExportRequest{OpenRequest: last}, session.ErrInvalid},
		"leaf of JSON":     {home.ExportRequest{OpenRequest: last, Path: "x.json", Leaf: "leaf"}, session.ErrInvalid},
		"inlined Markdown": {home.ExportRequest{OpenRequest: last, Path: "x.md", Inline: true}, session.ErrInvalid},
		"no such session":  {home.ExportRequest{OpenRequest: home.OpenRequest{Session: "none"}, Path: "x.md"}, session.ErrNotExist},
		"taken":            {home.ExportRequest{OpenRequest: last, Path: taken}, session.ErrExist},
	} {
		if _, err := h.Transfer.Export(t.Context(), tt.r, nil); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if data, _ := os.ReadFile(taken); string(data) != "mine" {
		t.Errorf("the file is now %q", data)
	}
}

func TestExportToAnotherProgramComesBackAsTheSame(t *testing.T) {
	t.Parallel()
	h := imported(t, "hello")
	user := h.env["HOME"]
	r, err := h.Transfer.Export(t.Context(), home.ExportRequest{OpenRequest: home.OpenRequest{Session: "last"}, Format: "codex"}, nil)
	if err != nil || len(r.Paths) == 0 || !strings.HasPrefix(r.Paths[0], user) || !strings.Contains(r.Resume, "codex") {
		t.Fatalf("%+v, %v", r, err)
	}
	back, err := h.Transfer.Import(t.Context(), home.ImportRequest{All: true}, nil, nil)
	if err != nil || back.Entries != 0 || back.Files != 1 {
		t.Errorf("it came back as %+v, %v", back, err)
	}
}

func TestExportAllWritesAFileForEach(t *testing.T) {
	t.Parallel()
	h := imported(t, "one", "two", "three")
	dir := filepath.Join(t.TempDir(), "out") + "/"
	var failed []string
	request := home.ExportAllRequest{
		All: true, ExportRequest: home.ExportRequest{Path: dir, Format: home.ExportJSONL},
	}
	send := func(e home.ExportEvent) error {
		if e.Error != nil {
			failed = append(failed, e.Session)
		}
		return nil
	}
	r, err := h.Transfer.ExportAll(t.Context(), request, send)
	if files, _ := filepath.Glob(dir + "*.jsonl"); err != nil || r.Exported != 3 || len(files) != 3 {
		t.Errorf("%+v, %v, %v", r, files, err)
	}
	request.All, request.Force, request.Sessions = false, true, []string{"last", "none"}
	if r, err = h.Transfer.ExportAll(t.Context(), request, send); err != nil || r.Exported != 1 || r.Failed != 1 || !cmp.Equal(failed, []string{"none"}) {
		t.Errorf("%+v, %v, %v", r, failed, err)
	}
	request.Path = filepath.Join(t.TempDir(), "one.jsonl")
	if _, err = h.Transfer.ExportAll(t.Context(), request, send); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("into one file: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	request.Path = dir
	if _, err = h.Transfer.ExportAll(ended, request, send); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
