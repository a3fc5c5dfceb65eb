package cli

import (
	"fmt"
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

// A search that ranked only the newest matches says so, whoever reads the answer.
func TestSearchSaysThatItLookedAtAPart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log strings.Builder
	log.WriteString(`{"type":"session","id":"x","version":1,"timestamp":"2026-01-05T09:00:01.000Z"}` + "\n")
	parent := "null"
	for n := range 1_010 {
		fmt.Fprintf(&log, `{"type":"message","id":"m%d","parent_id":%s,"timestamp":"2026-01-05T09:00:02.000Z","message":{"role":"user","content":"heron %d"}}`+"\n", n, parent, n)
		parent = fmt.Sprintf(`"m%d"`, n)
	}
	if err := os.WriteFile(filepath.Join(dir, "x.jsonl"), []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		query string
		part  bool
	}{{"heron", true}, {"heron 7", false}} {
		a, out := testApp(t, dir)
		if code := a.run(t.Context(), []string{"search", "--json", "-n", "2", c.query}); code != exitOK {
			t.Fatalf("exit code %d: %s", code, out)
		}
		if strings.Contains(out.String(), "there are older ones") != c.part || strings.Contains(out.String(), `"bounded":true,"open":`) != c.part {
			t.Errorf("search --json %s prints and says %s", c.query, out)
		}
	}
}
