package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// Members that nobody knows keep their bytes in the log. What --json prints is valid all the
// same: each byte that is not UTF-8 is U+FFFD.
func TestJSONIsUTF8(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := `{"type":"session","id":"x","version":1,"timestamp":"2026-01-05T09:00:01.000Z"}` + "\n" +
		`{"type":"message","id":"m","parent_id":null,"timestamp":"2026-01-05T09:00:02.000Z","message":{"role":"user","content":"hello","odd":"a` + "\xff\xfe" + `b"}}` + "\n"
	path := filepath.Join(dir, "x.jsonl")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	a, out := testApp(t, dir)
	if code := a.run(t.Context(), []string{"show", "x", "--json"}); code != exitOK {
		t.Fatalf("exit code %d: %s", code, out)
	}
	if got := out.String(); !utf8.ValidString(got) || !strings.Contains(got, `"odd":"a`+"\uFFFD\uFFFD"+`b"`) {
		t.Errorf("show --json prints %q", got)
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != log {
		t.Errorf("the log is %q, %v", kept, err)
	}
}
