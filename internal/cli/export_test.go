package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// exported runs export on a session of testdata/sessions.
func exported(t *testing.T, args ...string) string {
	t.Helper()
	var out, talked bytes.Buffer
	env := map[string]string{"COPPICE_HOME": "testdata/sessions", "HOME": t.TempDir()}
	getenv := func(name string) string { return env[name] }
	a := &app{talk: newTalk(&out, &talked, getenv), stdin: strings.NewReader(""), getenv: getenv}
	if code := a.run(context.Background(), append([]string{"export"}, args...)); code != exitOK {
		t.Fatalf("exit code %d: %s", code, &talked)
	}
	return out.String()
}

func TestHTMLGolden(t *testing.T) {
	page := exported(t, "garden", "--format", "html")
	// What is the same on every page is not worth repeating here.
	page = strings.Replace(page, pageStyle, "…", 1)
	page = strings.Replace(page, pageScript, "…", 1)
	page = regexp.MustCompile(`sha256-[A-Za-z0-9+/&#;=]+`).ReplaceAllString(page, "sha256-…")
	golden := filepath.Join("testdata", "golden", "garden.html")
	if *update {
		if err := os.WriteFile(golden, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), page); diff != "" {
		t.Errorf("the page changed (-want +got); go test -update accepts it:\n%s", diff)
	}
}

// Hostile content must not become part of the page: no element, no attribute,
// no script that we did not write.
func TestHTMLHostile(t *testing.T) {
	page := exported(t, "hostile", "--format", "html")
	rest := strings.Replace(page, pageScript, "", 1)
	if rest == page {
		t.Fatal("the script is not there as it was written, so its hash does not allow it")
	}
	tag := regexp.MustCompile(`<(/?[A-Za-z!][^>\s]*)[^>]*>`)
	quoted := regexp.MustCompile(`"[^"]*"`)
	known := strings.Fields(`!DOCTYPE html head meta title style noscript body header h1 p span nav h2 ul li a button main article
		b mark small time div details summary pre code strong img ol footer script`)
	allowed := make(map[string]bool)
	for _, name := range known {
		allowed[name], allowed["/"+name] = true, true
	}
	for _, match := range tag.FindAllStringSubmatch(rest, -1) {
		if !allowed[match[1]] {
			t.Errorf("a tag that is not ours: %s", match[0])
		}
		if strings.Contains(quoted.ReplaceAllString(match[0], ""), "onerror") {
			t.Errorf("an attribute that is not ours: %s", match[0])
		}
	}
	for name, want := range map[string]int{"<script": 1, "<img": 0, "<style": 2} {
		if got := strings.Count(rest, name); got != want {
			t.Errorf("%d × %s, want %d", got, name, want)
		}
	}
	if strings.ContainsFunc(rest, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) {
		t.Error("a control character")
	}
}

// The page must open without a network.
func TestHTMLLoadsNothing(t *testing.T) {
	page := exported(t, "garden", "--format", "html")
	if got := regexp.MustCompile(`(?i)(?:src|href)="[^#d][^"]*|url\(|@import|https?://`).FindString(page); got != "" {
		t.Errorf("the page refers to %q", got)
	}
	if !strings.Contains(page, `<img src="data:image/png;base64,iVBOR`) {
		t.Error("the image is not in the page")
	}
}

func TestWriteFileLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	fail := func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return io.ErrUnexpectedEOF
	}
	if err := writeFile(path, false, fail); err == nil {
		t.Error("no error")
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
}
