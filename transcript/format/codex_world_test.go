package format_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/codex"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const worldID = "019c1000-0000-7000-8000-000000000078"

func worldLine(kind, payload string) string {
	return `{"timestamp":"2026-03-02T10:00:00.000Z","type":"` + kind + `","payload":{` + payload + "}}\n"
}

// worldRollout is a thread in which Codex wrote down what it had told the model about its
// surroundings: all of it, and then what changed.
func worldRollout() string {
	say := func(role, kind, text string) string {
		return worldLine("response_item", `"type":"message","role":"`+role+`","content":[{"type":"`+kind+`","text":"`+text+`"}]`)
	}
	return worldLine("session_meta", `"id":"`+worldID+`","timestamp":"2026-03-02T10:00:00.000Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.166.0"`) +
		say("user", "input_text", "<environment_context>here</environment_context>") +
		worldLine("world_state", `"full":true,"state":{"environments":{"cwd":"/w","subagents":"two"},"personality":null}`) +
		say("user", "input_text", "go") +
		say("assistant", "output_text", "gone") +
		worldLine("world_state", `"full":false,"state":{"environments":{"subagents":null}}`) +
		say("user", "input_text", "and now?") +
		say("assistant", "output_text", "back")
}

func worldSession(t *testing.T, rollout string) *session.Session {
	t.Helper()
	st := memory.New(nil)
	r, err := (&transcript.Importer{Store: st}).Import(t.Context(), codex.Format(), transcript.FileOf("/x/rollout-2026-03-02T10-00-00-"+worldID+".jsonl", []byte(rollout)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), st, r.Sessions[0].ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// worldsWritten exports a session to Codex. It returns the lines with states of the world, and
// the message before each.
func worldsWritten(t *testing.T, s *session.Session) []string {
	t.Helper()
	script, err := transcript.NewScript(s, codex.Format().Name, "", transcripttest.Now())
	if err != nil {
		t.Fatal(err)
	}
	out, err := (&transcript.Exporter{Env: transcript.Env{Home: "/home/ada", Getenv: func(string) string { return "" }}}).Prepare(t.Context(), codex.Format(), script, nil)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	before := ""
	for line := range strings.Lines(string(out.Files[0].Data)) {
		switch {
		case strings.Contains(line, `"type":"response_item"`):
			_, before, _ = strings.Cut(line, `"text":"`)
		case strings.Contains(line, `"type":"world_state"`):
			found = append(found, strings.TrimRight(before, "\"}]\n")+"\n", line)
		}
	}
	return found
}

// leaveOut takes an entry out of the context.
func leaveOut(t *testing.T, s *session.Session, id string) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *session.Tx) error {
		tx.Append(session.ContextEdit(id))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCodexWorldState: Codex gets back what it had told the model about its surroundings, where it
// was. Without it, Codex tells the model everything again when it resumes.
func TestCodexWorldState(t *testing.T) {
	t.Parallel()
	s := worldSession(t, worldRollout())
	want := []string{
		"<environment_context>here</environment_context>\n",
		worldLine("world_state", `"full":true,"state":{"environments":{"cwd":"/w","subagents":"two"},"personality":null}`),
		"gone\n",
		worldLine("world_state", `"full":false,"state":{"environments":{"subagents":null}}`),
	}
	if diff := cmp.Diff(want, worldsWritten(t, s)); diff != "" {
		t.Errorf("the states of the world differ (-want +written):\n%s", diff)
	}
	// What the model no longer has, Codex must say again.
	var told string
	for e, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if told == "" && e.Message != nil {
			told = e.ID
		}
	}
	leaveOut(t, s, told)
	if written := worldsWritten(t, s); len(written) > 0 {
		t.Errorf("states are written of a world about which the model no longer knows: %q", written)
	}
}

// TestCodexWorldStateBesideCompaction: a compaction of Codex that leaves out a system message
// takes no state of the world with it, for Codex wrote those that come after. An edit by a person
// does.
func TestCodexWorldStateBesideCompaction(t *testing.T) {
	t.Parallel()
	first := worldLine("world_state", `"full":true,"state":{"environments":{"cwd":"/w"}}`)
	second := worldLine("world_state", `"full":false,"state":{"environments":{"cwd":"/x"}}`)
	item := func(role, kind, text string) string {
		return `"type":"message","role":"` + role + `","content":[{"type":"` + kind + `","text":"` + text + `"}]`
	}
	say := func(role, kind, text string) string { return worldLine("response_item", item(role, kind, text)) }
	s := worldSession(t, worldLine("session_meta", `"id":"`+worldID+`","timestamp":"2026-03-02T10:00:00.000Z","cwd":"/w"`)+
		say("developer", "input_text", "be brief")+first+
		say("user", "input_text", "go")+
		say("assistant", "output_text", "gone")+
		worldLine("compacted", `"message":"It went.","replacement_history":[{`+item("user", "input_text", "go")+`},{`+item("user", "input_text", "It went.")+`}]`)+
		say("user", "input_text", "and now?")+second+
		say("assistant", "output_text", "back"))
	edits, said := 0, ""
	for e, err := range s.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.ContextEdit != nil {
			edits++
		}
		if e.Message != nil {
			said = e.ID
		}
	}
	if edits == 0 {
		t.Fatal("the compaction took nothing out of the context")
	}
	if diff := cmp.Diff([]string{"be brief\n", first, "and now?\n", second}, worldsWritten(t, s)); diff != "" {
		t.Errorf("the states of the world differ (-want +written):\n%s", diff)
	}
	leaveOut(t, s, said)
	if written := worldsWritten(t, s); len(written) > 0 {
		t.Errorf("states are written of a world about which the model no longer knows: %q", written)
	}
}

// TestCodexForkWithoutWorldState: a fork that repeats what was said, without the states of the
// world, has the same records.
func TestCodexForkWithoutWorldState(t *testing.T) {
	t.Parallel()
	messages := func(text string) (ids []string) {
		c := transcripttest.Collect(t, codex.Format(), transcript.FileOf("x.jsonl", []byte(text)))
		for _, r := range c.Conversations[0].Records {
			if r.Entry.Message != nil {
				ids = append(ids, r.ID)
			}
		}
		return ids
	}
	whole := worldRollout()
	lines := slices.DeleteFunc(strings.SplitAfter(whole, "\n"), func(line string) bool { return strings.Contains(line, `"world_state"`) })
	if diff := cmp.Diff(messages(whole), messages(strings.Join(lines, ""))); diff != "" {
		t.Errorf("the messages have other ids (-with +without):\n%s", diff)
	}
}
