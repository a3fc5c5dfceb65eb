package home

import (
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
)

// The machine with a home looks after it: another one that writes to it neither finishes its
// redactions nor makes an index of it.
func TestAHomeElsewhereLooksAfterItself(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	data := t.TempDir()
	settings, err := LoadSettings(func(name string) string { return map[string]string{"XDG_DATA_HOME": data}[name] })
	if err != nil {
		t.Fatal(err)
	}
	st, err := openScratch(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Notes("").Write(ctx, "redact.pending", []byte(`{"all":true}`)); err != nil {
		t.Fatal(err)
	}
	h, err := Away(ctx, st, &asked{}, &Options{Settings: settings, Notify: func(n Notice) { t.Errorf("it says %+v", n) }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	result, err := h.Transfer.Import(ctx, ImportRequest{Paths: []string{aFile(t)}}, nil, nil)
	if err != nil || result.Entries != 1 {
		t.Errorf("imported %+v, %v", result, err)
	}
	if ix := h.openIndexes(); len(ix) > 0 {
		t.Errorf("it has an index here: %s", ix[0].Where())
	}
	if unfinished, err := clean.Unfinished(ctx, st); err != nil || !unfinished {
		t.Errorf("the redaction is unfinished: %v, %v", unfinished, err)
	}
}

// aFile returns a file with a session that has an entry.
func aFile(t *testing.T) string {
	t.Helper()
	h, err := Open(t.Context(), "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s, err := session.Create(t.Context(), h.Store(), session.Header{ID: "talk"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("Hello!")}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "talk.jsonl")
	r := ExportRequest{OpenRequest: OpenRequest{Session: "talk"}, Format: ExportJSONL, Path: path}
	if _, err := h.Transfer.Export(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	return path
}
