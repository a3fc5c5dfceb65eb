package format_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/claudecode"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// places returns the directory and the branch of git of each line of the tree.
func places(t *testing.T, data string) (list []string) {
	t.Helper()
	for text := range strings.Lines(data) {
		var l struct{ UUID, Type, CWD, GitBranch string }
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.UUID != "" {
			list = append(list, l.Type+" in "+l.CWD+" on "+l.GitBranch)
		}
	}
	return list
}

// TestClaudeCodeWhere: each line that is written says the directory and the branch that held when
// it was said, even if the file was read in pieces. A line that a program repeats
// elsewhere is the same line.
func TestClaudeCodeWhere(t *testing.T) {
	t.Parallel()
	at := func(cwd, branch string, s *script) string {
		return strings.NewReplacer(`"cwd":"/p"`, `"cwd":"`+cwd+`"`, `"gitBranch":"main"`, `"gitBranch":"`+branch+`"`).Replace(uuids(s.b.String()))
	}
	first := at("/p", "main", new(script).user("u1", "", "go").reply("a1", "u1", "1", call("t1", "Bash"), 1).result("r1", "a1", "t1", "out"))
	second := at("/p/sub", "topic", new(script).reply("a2", "r1", "2", text("one"), 1).
		tree("assistant", "e1", "a2", `"isApiErrorMessage":true,"message":{"role":"assistant","model":"<synthetic>","content":[`+text("failed")+`]}`))
	third := at("/p", "", new(script).user("u2", "e1", "more").reply("a3", "u2", "3", text("two"), 1))
	fourth := at("/p", "main", new(script).user("u3", "a3", "again"))
	whole := first + second + third + fourth

	h := newHome(t)
	path := filepath.Join(t.TempDir(), sessionID+".jsonl")
	id := ""
	for i, text := range []string{first, first + second, whole} {
		saveAs(t, path, text)
		age(t, path, i)
		id = h.bring(path).Sessions[0].ID
	}
	sc, err := transcript.NewScript(h.open(id), claudecode.Name, "", transcripttest.Now())
	if err != nil {
		t.Fatal(err)
	}
	out, err := claudecode.Format().Write(t.Context(), sc, writeEnv())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(places(t, whole), places(t, string(out.Files[0].Data))); diff != "" {
		t.Errorf("where it was said (-read +written):\n%s", diff)
	}
	if want := "-p/" + sessionID + ".jsonl"; out.Files[0].Path != want || out.Dir != "/p" {
		t.Errorf("it is put at %s for %s, want %s", out.Files[0].Path, out.Dir, want)
	}

	saveAs(t, path, strings.ReplaceAll(whole, `"gitBranch":"topic"`, `"gitBranch":"main"`))
	h.im.Again = true
	if r := h.bring(path); r.New() != 0 {
		t.Errorf("the same lines on another branch add %+v", r.Sessions)
	}
}
