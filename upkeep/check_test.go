package upkeep_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/upkeep"
)

// write makes a log of lines, which may be as odd as they like.
func write(t *testing.T, st store.Store, name string, lines ...string) {
	t.Helper()
	all := [][]byte{fmt.Appendf(nil, `{"type":"session","id":%q,"version":1,"timestamp":"2026-05-01T10:00:00Z"}`, name)}
	for _, line := range lines {
		all = append(all, []byte(line))
	}
	log, err := st.Create(t.Context(), name, store.Lines(all...))
	must(t, err)
	must(t, log.Close())
}

// message is a line with a message; more stands after it in the entry.
func message(id, parent, role, content, more string) string {
	if parent != "null" {
		parent = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parent_id":%s,"timestamp":"2026-05-01T10:01:00Z","message":{"role":%q,"content":[%s]}%s}`, id, parent, role, content, more)
}

const (
	hello    = `{"type":"text","text":{"content":"hello"}}`
	orphan   = `{"type":"tool_result","tool_result":{"tool_use_id":"nocall","is_error":false,"content":"a.txt"}}`
	imported = `,"source":[{"in":"import-1","pos":0,"len":10}]`
)

// findings checks a store and returns the severity, kind and entry of each.
func findings(t *testing.T, st store.Store, r upkeep.CheckRequest) (string, *upkeep.CheckResult) {
	t.Helper()
	var all []string
	r.Each = func(f upkeep.Finding) error {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s: %s %s", f.Severity, f.Kind, f.Entry)))
		return nil
	}
	result, err := upkeep.Check(t.Context(), st, r)
	must(t, err)
	return strings.Join(all, "; "), result
}

// What a source had wrong already is a note; the same is a fault where we wrote it.
func TestWhatASourceHadWrongIsANote(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	odd := func(more string) []string {
		usage := oddUsage(message("c", "b", "assistant", hello, more))
		return []string{message("a", "null", "user", hello, more), message("b", "a", "tool", orphan, more), usage, message("a", "c", "user", hello, more)}
	}
	write(t, st, "ours", odd("")...)
	write(t, st, "theirs", odd(imported)...)
	if got, want := first(findings(t, st, upkeep.CheckRequest{Sessions: []string{"ours"}})), "fault: duplicate id a; note: orphan tool result b; fault: usage c"; got != want {
		t.Errorf("ours: %s, want %s", got, want)
	}
	got, result := findings(t, st, upkeep.CheckRequest{Sessions: []string{"theirs"}})
	if want := "note: duplicate id a; note: orphan tool result b; note: usage c"; got != want {
		t.Errorf("theirs: %s, want %s", got, want)
	}
	if result.Faults != 0 || result.Notes != 3 || len(result.Damaged) != 0 || result.Sessions != 1 {
		t.Errorf("theirs: %+v", result)
	}
	_, result = findings(t, st, upkeep.CheckRequest{})
	if result.Faults != 2 || result.Notes != 4 || strings.Join(result.Damaged, " ") != "ours" || result.Sessions != 2 {
		t.Errorf("both: %+v", result)
	}
}

func first(s string, _ *upkeep.CheckResult) string { return s }

// What was appended to an imported session is ours again.
func TestUsageAfterAnImportIsAFault(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	write(t, st, "s", oddUsage(message("a", "null", "assistant", hello, imported)), oddUsage(message("b", "a", "assistant", hello, "")))
	if got, want := first(findings(t, st, upkeep.CheckRequest{})), "note: usage a; fault: usage b"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// oddUsage is a message with impossible counts.
func oddUsage(message string) string {
	return strings.Replace(message, `"content"`, `"usage":{"output":1,"reasoning":5},"content"`, 1)
}

// Whatever the library takes without an error leaves a session without faults.
func TestWhatWasAcceptedIsNoFault(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	s, err := session.Create(t.Context(), st, session.Header{ID: "s"}, nil)
	must(t, err)
	asked := session.Message(session.RoleAssistant, session.ToolUse("c1", "read", nil))
	asked.ID = "asked"
	must(t, s.Append(session.Message(session.RoleUser, session.Text("hello"))))
	must(t, s.Append(asked))
	must(t, s.Append(session.Message(session.RoleTool, session.ToolResult("c1", "done", false))))
	must(t, s.Append(session.ContextEdit("asked")))
	must(t, s.Append(session.Message(session.RoleTool, session.ToolResult("nocall", "who asked?", false))))
	must(t, s.Close())
	got, result := findings(t, st, upkeep.CheckRequest{})
	if result.Faults != 0 || !strings.Contains(got, "orphan tool result") {
		t.Errorf("%s; %+v", got, result)
	}
}

// A key that was taken over from a picoclaw file has all before the note from there.
func TestTakeoverIsAnImport(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	note := fmt.Sprintf(`{"type":"custom","id":"n","parent_id":"a","timestamp":"2026-05-01T10:02:00Z","custom":{"custom_type":%q,"data":{}}}`, session.CustomKeyed)
	write(t, st, "s", oddUsage(message("a", "null", "assistant", hello, "")), note, oddUsage(message("b", "n", "assistant", hello, "")))
	if got, want := first(findings(t, st, upkeep.CheckRequest{})), "note: usage a; fault: usage b"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOddRoleIsANote(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	write(t, st, "s", message("a", "null", "robot", hello, ""), message("b", "a", session.RoleBashExecution, hello, ""))
	if got, want := first(findings(t, st, upkeep.CheckRequest{})), "note: unknown role a"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestMissingAndCorruptBlobsDiffer(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir()+"/s", &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	refer := func(data string) (store.Ref, string) {
		ref, err := st.Blobs().Put(t.Context(), []byte(data))
		must(t, err)
		return ref, fmt.Sprintf(`{"type":"tool_result","tool_result":{"tool_use_id":"c","is_error":false,"blob":%q,"size":3}}`, ref)
	}
	gone, goneBlock := refer("gone")
	other, otherBlock := refer("other")
	call := `{"type":"tool_use","tool_use":{"id":"c","name":"ls","input":{}}}`
	write(t, st, "s", message("1", "null", "assistant", call, ""), message("a", "1", "tool", goneBlock, ""),
		message("2", "a", "assistant", call, ""), message("b", "2", "tool", otherBlock, ""))
	must(t, errors.Join(os.Remove(st.Parts().Where(store.PartBlob, string(gone))), os.WriteFile(st.Parts().Where(store.PartBlob, string(other)), []byte("changed"), 0o600)))
	if got, want := first(findings(t, st, upkeep.CheckRequest{})), "fault: missing blob a; fault: corrupt blob b"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestCheckReportsHowFilesAreKept(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir()+"/s", &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	write(t, st, "s", message("a", "null", "user", hello, ""))
	write(t, st, "junk")
	must(t, os.WriteFile(st.Path("junk"), []byte("nonsense\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(st.IndexPath()), "locks", "gone"+".lock"), nil, 0o600))
	f, err := os.OpenFile(st.Path("s"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(`{"ty`)
	must(t, errors.Join(err, f.Close()))
	_, err = st.Blobs().Put(t.Context(), []byte("nobody needs it"))
	must(t, err)
	got, result := findings(t, st, upkeep.CheckRequest{})
	if want := "fault: unreadable; fault: torn end; note: stale lock; note: unreferenced blob"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if strings.Join(result.Damaged, " ") != "junk s" {
		t.Errorf("damaged: %v", result.Damaged)
	}
}

func TestCheckStopsWhenToldTo(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	write(t, st, "s", message("a", "null", "tool", orphan, ""), message("b", "a", "tool", orphan, ""))
	enough := errors.New("enough")
	n := 0
	_, err := upkeep.Check(t.Context(), st, upkeep.CheckRequest{Each: func(upkeep.Finding) error { n++; return enough }})
	if !errors.Is(err, enough) || n != 1 {
		t.Errorf("%d findings, %v", n, err)
	}
}

func TestFindingsQuoteNoSecrets(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	secret := "gh" + "p_" + "fOurThB1tsT3stF1x8Kq7wZ2yLp5Vc9Jh3X4"
	write(t, st, "s", message("a", "null", secret, hello, ""), `{"broken": "`+secret+`", x`)
	_, err := upkeep.Check(t.Context(), st, upkeep.CheckRequest{Each: func(f upkeep.Finding) error {
		if strings.Contains(f.Detail, secret) {
			t.Errorf("it is quoted: %s", f.Detail)
		}
		return nil
	}})
	must(t, err)
}

// What is in the trash can come back, so its damage shows, but it is no fault of the store.
func TestDamageInTheTrashIsAWarning(t *testing.T) {
	t.Parallel()
	onDisk, err := file.Open(t.TempDir()+"/s", &file.Options{Sync: file.Never})
	must(t, err)
	for kind, st := range map[string]store.Store{"memory": memory.New(nil), "files": onDisk} {
		defer st.Close()
		ref, err := st.Blobs().Put(t.Context(), []byte("content"))
		must(t, err)
		call := `{"type":"tool_use","tool_use":{"id":"c","name":"ls","input":{}}}`
		result := fmt.Sprintf(`{"type":"tool_result","tool_result":{"tool_use_id":"c","is_error":false,"blob":%q,"size":7}}`, ref)
		write(t, st, "whole", message("a", "null", "assistant", call, ""), message("b", "a", "tool", result, ""))
		write(t, st, "bad", message("a", "null", "tool", orphan, ""), "lost", message("b", "gone", "user", hello, ""))
		must(t, errors.Join(st.Remove(t.Context(), "whole"), st.Remove(t.Context(), "bad")))
		var got []string
		checked, err := upkeep.Check(t.Context(), st, upkeep.CheckRequest{Each: func(f upkeep.Finding) error {
			name, _, _ := store.ParseRemoval(f.Removal)
			got = append(got, fmt.Sprintf("%s %s: %s: %s", f.Session, name, f.Severity, f.Kind))
			return nil
		}})
		must(t, err)
		if want := []string{"bad bad: warning: damaged line", "bad bad: warning: missing parent"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
		if checked.Warnings != 2 || checked.Faults != 0 || checked.Sessions != 0 || len(checked.Damaged) != 0 {
			t.Errorf("%s: %+v", kind, checked)
		}
	}
}

// Two sessions are one conversation if each names the other. One damaged line is enough to part
// them, and that must show.
func TestPartedSessionsAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of   func(first, second string) string // the session that is damaged
		harm func([]byte) []byte
		want string
	}{
		"whole": {func(first, _ string) string { return first }, func(log []byte) []byte { return log }, ""},
		"record": {func(first, _ string) string { return first }, func(log []byte) []byte {
			return bytes.Replace(log, []byte(`"custom_type"`), []byte(`"custom_typ\"`), 1)
		}, `second: it continues session "first", but the line there that names this one is lost, and they are shown as two conversations; repair "first" to join them again`},
		"header": {func(_, second string) string { return second }, func(log []byte) []byte {
			clear(log[:bytes.IndexByte(log, '\n')])
			return log
		}, `second: it continues session "first", but its header, which says so, is damaged`},
	} {
		st, err := file.Open(t.TempDir()+"/s", &file.Options{Sync: file.Never})
		must(t, err)
		first, err := session.Create(t.Context(), st, session.Header{ID: "first"}, nil)
		must(t, err)
		must(t, first.Append(session.Message(session.RoleUser, session.Text("one"))))
		second, err := first.Continue()
		must(t, err)
		must(t, second.Append(session.Message(session.RoleUser, session.Text("two"))))
		must(t, errors.Join(first.Close(), second.Close()))
		path := st.Path(c.of("first", second.ID()))
		log, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, c.harm(log), 0o600))
		var got string
		_, err = upkeep.Check(t.Context(), st, upkeep.CheckRequest{Each: func(f upkeep.Finding) error {
			if f.Kind == upkeep.KindParted {
				got += strings.ReplaceAll(f.Session, second.ID(), "second") + ": " + f.Detail
			}
			return nil
		}})
		must(t, errors.Join(err, st.Close()))
		if !strings.HasPrefix(got, c.want) || got != "" && c.want == "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
