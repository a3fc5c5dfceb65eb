package format_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/codex"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const summaryPrefix = "Another language model started to solve this problem and produced a summary of its thinking process. You also have access to the state of the tools that were used by that language model. Use this to build on the work that has already been done and avoid duplicating work. Here is the summary produced by the other language model, use the information in this summary to assist with your own analysis:\n"

func saidBy(role, text string) string {
	kind := "input_text"
	if role == session.RoleAssistant {
		kind = "output_text"
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return `{"type":"message","role":"` + role + `","content":[{"type":"` + kind + `","text":` + string(quoted) + `}]}`
}

func compacted(message string, history ...string) string {
	quoted, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	return `{"type":"compacted","payload":{"message":` + string(quoted) + `,"replacement_history":[` + strings.Join(history, ",") + `]}}`
}

// rolloutOf is a rollout of items and other lines.
func rolloutOf(lines ...string) *transcript.File {
	all := []string{`{"type":"session_meta","payload":{"id":"019c0000-0000-7000-8000-0000000000ab","cwd":"/w"}}`}
	for _, line := range lines {
		if !strings.Contains(line, `"payload"`) {
			line = `{"type":"response_item","payload":` + line + `}`
		}
		all = append(all, line)
	}
	return transcript.FileOf("rollout-2026-02-01T10-00-00-019c0000-0000-7000-8000-0000000000ab.jsonl", []byte(strings.Join(all, "\n")+"\n"))
}

func codexScriptOf(t *testing.T, f *transcript.File) *transcript.Script {
	t.Helper()
	c := transcripttest.Collect(t, codex.Format(), f)
	transcripttest.CheckTree(t, c)
	s, err := transcripttest.Script(t.Context(), c.Conversations[0])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCodexCompactions: after a compaction the context is the history that it has, and so is
// that of the rollout that is written of it.
func TestCodexCompactions(t *testing.T) {
	t.Parallel()
	before := []string{
		saidBy("developer", "rules"), saidBy("user", "one"), saidBy("assistant", "first"), saidBy("user", "two"), saidBy("assistant", "second"),
	}
	summary := summaryPrefix + "S"
	back := `{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}`
	encrypted := `{"type":"compaction","id":"cmp_1","encrypted_content":"gAAA","internal_chat_message_metadata_passthrough":{"turn_id":"t"}}`
	tests := map[string]struct {
		after []string
		want  []string
		kept  string // the text of the first message that is kept
	}{
		"what the user said, and the summary": {
			after: []string{compacted(summary, saidBy("user", "one"), saidBy("user", "two"), saidBy("user", summary)), saidBy("developer", "rules"), saidBy("user", "three")},
			want:  []string{"summary: " + summary, "one", "two", "rules", "three"},
		},
		"with the system messages amid them": {
			after: []string{compacted(summary, saidBy("user", "one"), saidBy("developer", "rules"), saidBy("user", "two"), saidBy("user", summary)), saidBy("user", "three")},
			want:  []string{"summary: " + summary, "one", "rules", "two", "three"},
		},
		"the end of the path": {
			after: []string{compacted("S", saidBy("developer", "rules"), saidBy("user", "Previous conversation summary: S"), saidBy("user", "two"), saidBy("assistant", "second")), saidBy("user", "three")},
			want:  []string{"rules", "summary: S", "two", "second", "three"},
			kept:  "two",
		},
		"the end of a turn, with its beginning": {
			after: []string{
				saidBy("assistant", "third"),
				compacted("S", saidBy("developer", "rules"), saidBy("user", "Previous conversation summary: S"), saidBy("user", "two"), saidBy("assistant", "third")),
			},
			want: []string{"rules", "summary: S", "two", "third"},
			kept: "third",
		},
		"the end of the path, and something else": {
			after: []string{compacted("S", saidBy("user", "Previous conversation summary: S"), saidBy("user", "zero"), saidBy("user", "two"), saidBy("assistant", "second"))},
			want:  []string{"summary: S", "zero", "two", "second"},
		},
		"messages that say the same as the summary": {
			after: []string{compacted("two", saidBy("user", "two"), saidBy("user", "two"), saidBy("user", "two"), encrypted), saidBy("user", "three")},
			want:  []string{"summary: two", "two", "two", "", "three"},
		},
		"only the summary": {
			after: []string{compacted(summary, saidBy("user", summary)), saidBy("user", "three")},
			want:  []string{"summary: " + summary, "three"},
		},
		"nothing but the system messages": {
			after: []string{compacted("S", saidBy("developer", "rules"), saidBy("user", "S")), saidBy("user", "three")},
			want:  []string{"rules", "summary: S", "three"},
		},
		"what only the provider can read": {
			after: []string{compacted("", saidBy("user", "one"), encrypted), saidBy("user", "three")},
			want:  []string{"summary: ", "one", "", "three"},
		},
		"an older version's, without a history": {
			after: []string{`{"type":"compacted","payload":{"message":"S"}}`, saidBy("user", "three"), `{"type":"compacted","payload":{"message":"T"}}`},
			want:  []string{"summary: T", "one", "two", "S", "three"},
		},
		"one that was taken back": {
			after: []string{saidBy("user", "three"), compacted("S", saidBy("user", "S")), back, saidBy("user", "four")},
			want:  []string{"rules", "one", "first", "two", "second", "four"},
		},
		"one after another": {
			after: []string{
				compacted(summary, saidBy("user", "one"), saidBy("user", summary)), saidBy("developer", "rules"), saidBy("user", "three"),
				compacted(summary+"T", saidBy("user", "one"), saidBy("user", "three"), saidBy("user", summary+"T")),
			},
			want: []string{"summary: " + summary + "T", "one", "three"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := codexScriptOf(t, rolloutOf(append(before, test.after...)...))
			if diff := cmp.Diff(test.want, codexTexts(s.Context.Entries)); diff != "" {
				t.Errorf("the context (-want +got):\n%s", diff)
			}
			kept := ""
			for i := range s.Path {
				if c := s.Path[i].Compaction; c != nil && c.FirstKeptEntryID != "" {
					for _, e := range s.Path {
						if e.ID == c.FirstKeptEntryID {
							kept = session.TextOf(e.Message.Content)
						}
					}
				}
			}
			if kept != test.kept {
				t.Errorf("the first message that is kept is %q, want %q", kept, test.kept)
			}
			out := codexWrite(t, s)
			again := codexScriptOf(t, transcript.FileOf(out.Files[0].Path, out.Files[0].Data))
			if diff := cmp.Diff(codexTexts(s.Context.Entries), codexTexts(again.Context.Entries)); diff != "" {
				t.Errorf("the context of what was written (-read +written):\n%s", diff)
			}
			if strings.Contains(strings.Join(test.after, ""), encrypted) && !strings.Contains(string(out.Files[0].Data), encrypted) {
				t.Errorf("the encrypted item is not written as it was:\n%s", out.Files[0].Data)
			}
		})
	}
}

// TestCodexWriteCompactedAsRead: Codex finds its own compaction as it wrote it.
func TestCodexWriteCompactedAsRead(t *testing.T) {
	t.Parallel()
	summary := summaryPrefix + "S"
	line := compacted(summary, saidBy("user", "one"), saidBy("developer", "rules"), saidBy("user", "two"), saidBy("user", summary))
	s := codexScriptOf(t, rolloutOf(saidBy("developer", "rules"), saidBy("user", "one"), saidBy("user", "two"), line, saidBy("user", "three")))
	out := string(codexWrite(t, s).Files[0].Data)
	if payload, _ := strings.CutPrefix(line, `{"type":"compacted",`); !strings.Contains(out, payload) {
		t.Errorf("it is written as\n%s\nwant\n%s", out, payload)
	}
	if n := strings.Count(out, `"user_message"`); n != 3 {
		t.Errorf("the user is shown to have said %d things, want 3", n)
	}
}

// TestWriteWhatCodexReads: Codex passes over lines that have anything that it does not
// expect, and over system messages.
func TestWriteWhatCodexReads(t *testing.T) {
	t.Parallel()
	s := codexScriptOf(t, rolloutOf(
		`{"role":"system","content":"be brief"}`,
		`{"role":"user","content":"hi"}`,
		`{"type":"message","role":"assistant","phase":"output","content":[{"type":"refusal","refusal":"no"}]}`,
		`{"type":"local_shell_call","call_id":"c1","status":"completed","action":{"type":"exec","command":["ls"]}}`,
		`{"type":"local_shell_call_output","call_id":"c1","output":"README"}`,
		`{"type":"file_search_call","id":"f1","queries":["q"]}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_file","file_id":"f"}]}`,
	))
	out := codexWrite(t, s)
	var got []string
	for line := range strings.Lines(string(out.Files[0].Data)) {
		if _, item, ok := strings.Cut(line, `"type":"response_item","payload":`); ok {
			got = append(got, strings.TrimSuffix(item, "}\n"))
		}
	}
	want := []string{
		saidBy("developer", "be brief"), saidBy("user", "hi"), saidBy("assistant", "no"),
		`{"type":"local_shell_call","call_id":"c1","action":{"type":"exec","command":["ls"]},"status":"completed"}`,
		`{"type":"function_call_output","call_id":"c1","output":"README"}`,
		saidBy("user", "see"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the items (-want +got):\n%s", diff)
	}
	if len(out.Losses) != 2 {
		t.Errorf("the losses are %v, want the search and the file", out.Losses)
	}
}

// TestCodexRolledBackAtTheEnd: a thread whose last turn was taken back stands before it.
func TestCodexRolledBackAtTheEnd(t *testing.T) {
	t.Parallel()
	c := transcripttest.Collect(t, codex.Format(), rolloutOf(
		saidBy("user", "one"), saidBy("assistant", "first"), saidBy("user", "two"), saidBy("assistant", "second"),
		`{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}`)).Conversations[0]
	if c.Leaf != c.Records[1].ID {
		t.Errorf("the leaf is %q, want the first answer, %s", c.Leaf, c.Records[1].ID)
	}
}
