package format_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/claudecode"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const sessionID = "0b3c1f7e-4d57-4a54-9be1-3f6b1b2f6f10"

// script writes lines of a transcript, briefly.
type script struct {
	b strings.Builder
	n int
}

// claudecodeTree adds a line of the tree: its type, its uuid and its parent's ("" for
// none), and further members.
func (s *script) tree(typ, uuid, parent, rest string) *script {
	s.n++
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	fmt.Fprintf(&s.b, `{"parentUuid":%s,"isSidechain":false,"cwd":"/p","sessionId":%q,"version":"2.1.42","gitBranch":"main","type":%q,"uuid":%q,"timestamp":"2026-01-02T03:04:%02d.000Z",%s}`+"\n",
		p, sessionID, typ, uuid, s.n, rest)
	return s
}

func (s *script) user(uuid, parent, text string) *script {
	return s.tree("user", uuid, parent, `"message":{"role":"user","content":"`+text+`"}`)
}

// reply adds a line of a reply: the reply's id, a block and the tokens so far.
func (s *script) reply(uuid, parent, id, block string, output int) *script {
	return s.tree("assistant", uuid, parent, fmt.Sprintf(
		`"requestId":"req_%s","message":{"id":"msg_%s","role":"assistant","model":"claude-opus-4-5","content":[%s],"stop_reason":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":%d}}`,
		id, id, block, output))
}

func (s *script) result(uuid, parent, call, text string) *script {
	return s.tree("user", uuid, parent, `"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+call+`","content":"`+text+`"}]},"toolUseResult":{"stdout":"`+text+`"}`)
}

func (s *script) line(text string) *script {
	s.b.WriteString(text + "\n")
	return s
}

// join puts what comes next on the same line.
func (s *script) join() *script {
	all := strings.TrimSuffix(s.b.String(), "\n")
	s.b.Reset()
	s.b.WriteString(all)
	return s
}

func text(s string) string { return `{"type":"text","text":"` + s + `"}` }

func call(id, name string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"` + name + `","input":{"command":"ls"}}`
}

// outline reads a transcript and returns what was found, without the heads of
// conversations and without counts.
func outline(t *testing.T, file string) string {
	t.Helper()
	return short(transcripttest.Outline(transcripttest.Collect(t, claudecode.Format(), transcripttest.Open(t, file))))
}

func short(all string) string {
	var list []string
	for line := range strings.Lines(all) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "count:"), strings.HasPrefix(line, " cwd:"), strings.HasPrefix(line, " created:"), strings.HasPrefix(line, " extra:"):
		default:
			list = append(list, strings.ReplaceAll(line, "2026-01-02T03:04:", ""))
		}
	}
	return strings.Join(list, "\n")
}

// save puts a transcript where the program has it.
func save(t *testing.T, s *script) string {
	t.Helper()
	return saveAs(t, filepath.Join(t.TempDir(), "projects", "-p", sessionID+".jsonl"), s.b.String())
}

func saveAs(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestClaudeCodeRead(t *testing.T) {
	t.Parallel()
	const usage = "usage=3+100r+20w>"
	for name, test := range map[string]struct {
		s    *script
		want string
	}{
		"the lines of a reply are one message, with the results after it": {
			new(script).user("u1", "", "go").
				reply("a1", "u1", "1", `{"type":"thinking","thinking":"hm","signature":"sig"}`, 2).
				reply("a2", "a1", "1", call("t1", "Bash"), 5).
				result("r1", "a2", "t1", "one").
				reply("a3", "a2", "1", call("t2", "Bash"), 9).
				result("r2", "a3", "t2", "two").
				reply("a4", "r2", "2", text("done"), 4),
			`  u1 <- root 01Z user: "go"
  a1 <- u1 (a2 a3) 02Z assistant: (anthropic/claude-opus-4-5) [thinking "hm" signature=sig] [call t1 Bash {"command":"ls"}] [call t2 Bash {"command":"ls"}] response=msg_1 ` + usage + `9(0)$0
  r1 <- a1 04Z tool: [result t1 "one"]
  r2 <- r1 06Z tool: [result t2 "two"]
  a4 <- r2 07Z assistant: (anthropic/claude-opus-4-5) "done" response=msg_2 ` + usage + `4(0)$0`,
		},
		"a line that repeats the reply with more of it": {
			new(script).user("u1", "", "go").reply("a1", "u1", "1", text("He"), 1).reply("a2", "a1", "1", text("Hello")+`,`+call("t", "Bash"), 3),
			`  u1 <- root 01Z user: "go"
  a1 <- u1 (a2) 02Z assistant: (anthropic/claude-opus-4-5) "Hello" [call t Bash {"command":"ls"}] response=msg_1 ` + usage + `3(0)$0`,
		},
		"an edited prompt is a branch, tools at the same time are not": {
			new(script).user("u1", "", "one").reply("a1", "u1", "1", text("x"), 1).
				user("u2", "a1", "two").reply("a2", "u2", "2", call("t1", "Bash"), 1).
				tree("progress", "p1", "a2", `"data":{}`).result("r1", "p1", "t1", "r").
				user("u3", "a1", "two, edited").reply("a3", "u3", "3", text("y"), 1),
			`  u1 <- root 01Z user: "one"
  a1 <- u1 02Z assistant: (anthropic/claude-opus-4-5) "x" response=msg_1 ` + usage + `1(0)$0
  u2 <- a1 03Z user: "two"
  a2 <- u2 04Z assistant: (anthropic/claude-opus-4-5) [call t1 Bash {"command":"ls"}] response=msg_2 ` + usage + `1(0)$0
  r1 <- a2 06Z tool: [result t1 "r"]
  u3 <- a1 07Z user: "two, edited"
  a3 <- u3 08Z assistant: (anthropic/claude-opus-4-5) "y" response=msg_3 ` + usage + `1(0)$0`,
		},
		"what has no parent begins again, and what follows a missing one follows in the order of the file": {
			new(script).user("u1", "", "one").user("u2", "", "two").user("u3", "gone", "three"),
			`  u1 <- root 01Z user: "one"
  u2 <- root 02Z user: "two"
  u3 <- u2 03Z user: "three"`,
		},
		"what the program puts at the beginning after a clear begins again too": {
			new(script).user("u1", "", "one").
				tree("progress", "p1", "", `"data":{"hookName":"SessionStart:clear"}`).
				tree("user", "m1", "p1", `"isMeta":true,"message":{"role":"user","content":"<local-command-caveat>x</local-command-caveat>"}`).
				user("u2", "m1", "two"),
			`  u1 <- root 01Z user: "one"
  m1 <- root 03Z user: "<local-command-caveat>x</local-command-caveat>" metadata={"injected":"local-command"}
  u2 <- m1 04Z user: "two"`,
		},
		"a result that stands before its call": {
			new(script).user("u1", "", "go").result("r1", "a1", "t1", "one").reply("a2", "r1", "2", text("done"), 1).
				reply("a1", "u1", "1", call("t1", "Bash"), 1).user("u2", "a2", "next"),
			`  u1 <- root 01Z user: "go"
  a1 <- u1 04Z assistant: (anthropic/claude-opus-4-5) [call t1 Bash {"command":"ls"}] response=msg_1 ` + usage + `1(0)$0
  r1 <- a1 02Z tool: [result t1 "one"]
  a2 <- r1 03Z assistant: (anthropic/claude-opus-4-5) "done" response=msg_2 ` + usage + `1(0)$0
  u2 <- a2 05Z user: "next"`,
		},
		"a result whose call never comes": {
			new(script).user("u1", "", "go").result("r1", "gone", "t1", "one").user("u2", "r1", "next"),
			`  u1 <- root 01Z user: "go"
  r1 <- u1 02Z tool: [result t1 "one"]
  u2 <- r1 03Z user: "next"`,
		},
		"two objects on a line, and one behind a torn piece": {
			new(script).user("u1", "", "one").join().user("u2", "u1", "two").line(`{"type":"user","uuid":"x","message":{"role":"us`).join().
				user("u3", "u2", "three"),
			`  u1 <- root 01Z user: "one"
  u2 <- u1 02Z user: "two"
  u3 <- u2 03Z user: "three"
problem: line 2: a part of the line is not JSON; the rest was read`,
		},
		"a compaction that keeps messages": {
			new(script).user("u1", "", "one").reply("a1", "u1", "1", text("x"), 1).user("u2", "a1", "two").
				tree("system", "b1", "", `"logicalParentUuid":"u2","subtype":"compact_boundary","compactMetadata":{"preTokens":5,"preservedMessages":{"anchorUuid":"s1","uuids":["a1","u2"]}}`).
				tree("user", "s1", "b1", `"isCompactSummary":true,"message":{"role":"user","content":"so far"}`),
			`  u1 <- root 01Z user: "one"
  a1 <- u1 02Z assistant: (anthropic/claude-opus-4-5) "x" response=msg_1 ` + usage + `1(0)$0
  u2 <- a1 03Z user: "two"
  b1 <- u2 (s1) 04Z compaction {"summary":"so far","first_kept_entry_id":"a1","tokens_before":5}`,
		},
		"a call that waits when the conversation is compacted, and what comes too late": {
			new(script).user("u1", "", "one").reply("a1", "u1", "1", call("t1", "Bash"), 1).
				tree("system", "b1", "", `"logicalParentUuid":"a1","subtype":"compact_boundary","compactMetadata":{}`).
				tree("user", "s1", "b1", `"isCompactSummary":true,"message":{"role":"user","content":"so far"}`).
				result("r1", "a1", "t1", "late").reply("a2", "s1", "2", text("on"), 1),
			`  u1 <- root 01Z user: "one"
  a1 <- u1 02Z assistant: (anthropic/claude-opus-4-5) [call t1 Bash {"command":"ls"}] response=msg_1 ` + usage + `1(0)$0
  b1 <- u1 (s1) 03Z compaction {"summary":"so far","first_kept_entry_id":"","tokens_before":0}
  r1 <- a1 05Z tool: [result t1 "late"]
  a2 <- b1 06Z assistant: (anthropic/claude-opus-4-5) "on" response=msg_2 ` + usage + `1(0)$0`,
		},
		"what a session is resumed before is not gone on with": {
			new(script).user("u1", "", "one").user("c1", "u1", "<command-name>/exit</command-name>").
				tree("assistant", "a1", "u1", `"message":{"id":"x","role":"assistant","model":"<synthetic>","content":[`+text("No response requested.")+`]}`).
				user("u2", "a1", "two"),
			`  u1 <- root 01Z user: "one"
  c1 <- u1 02Z user: "<command-name>/exit</command-name>" metadata={"injected":"command"}
  a1 <- u1 03Z assistant: "No response requested." metadata={"synthetic":true}
  u2 <- a1 04Z user: "two"`,
		},
		"a compaction, undoable": {
			new(script).user("u1", "", "one").reply("a1", "u1", "1", text("x"), 1).
				tree("system", "b1", "", `"logicalParentUuid":"a1","subtype":"compact_boundary","compactMetadata":{"trigger":"auto","preTokens":155000}`).
				tree("user", "s1", "b1", `"isCompactSummary":true,"message":{"role":"user","content":"This session is being continued"}`).
				reply("a2", "s1", "2", text("y"), 1),
			`  u1 <- root 01Z user: "one"
  a1 <- u1 02Z assistant: (anthropic/claude-opus-4-5) "x" response=msg_1 ` + usage + `1(0)$0
  b1 <- a1 (s1) 03Z compaction {"summary":"This session is being continued","first_kept_entry_id":"","tokens_before":155000}
  a2 <- b1 05Z assistant: (anthropic/claude-opus-4-5) "y" response=msg_2 ` + usage + `1(0)$0`,
		},
		"a boundary without a summary": {
			new(script).user("u1", "", "one").tree("system", "b1", "u1", `"subtype":"compact_boundary"`).user("u2", "b1", "two"),
			`  u1 <- root 01Z user: "one"
  u2 <- u1 03Z user: "two"`,
		},
		"results taken out of the context": {
			new(script).user("u1", "", "go").reply("a1", "u1", "1", call("t1", "Bash")+","+call("t2", "Bash"), 1).
				result("r1", "a1", "t1", "long").result("r2", "a1", "t2", "longer").
				reply("a2", "r2", "2", text("ok"), 1).
				tree("system", "m1", "a2", `"subtype":"microcompact_boundary","microcompactMetadata":{"trigger":"auto","compactedToolIds":["t1","t2","t1","none"]}`),
			`  u1 <- root 01Z user: "go"
  a1 <- u1 02Z assistant: (anthropic/claude-opus-4-5) [call t1 Bash {"command":"ls"}] [call t2 Bash {"command":"ls"}] response=msg_1 ` + usage + `1(0)$0
  r1 <- a1 03Z tool: [result t1 "long"]
  r2 <- r1 04Z tool: [result t2 "longer"]
  a2 <- r2 05Z assistant: (anthropic/claude-opus-4-5) "ok" response=msg_2 ` + usage + `1(0)$0
  m1 <- a2 06Z context_edit {"target_id":"r1","replacement":null}
  m1:t2 <- m1 06Z context_edit {"target_id":"r2","replacement":null}`,
		},
		"what is not the user's is marked": {
			new(script).user("u1", "", "<system-reminder>x</system-reminder>").
				user("u2", "u1", "<ide_opened_file>f</ide_opened_file>").
				user("u3", "u2", "<ide_selection>f</ide_selection> what is this?").
				tree("user", "u4", "u3", `"isMeta":true,"message":{"role":"user","content":"hidden"}`).
				user("u5", "u4", "[Request interrupted by user]").
				tree("attachment", "q1", "u5", `"attachment":{"type":"queued_command","prompt":"and this"}`).
				tree("attachment", "q2", "q1", `"attachment":{"type":"file","filename":"x"}`).
				user("u6", "q2", "real"),
			`  u1 <- root 01Z user: "<system-reminder>x</system-reminder>" metadata={"injected":"system-reminder"}
  u2 <- u1 02Z user: "<ide_opened_file>f</ide_opened_file>" metadata={"injected":"ide"}
  u3 <- u2 03Z user: "<ide_selection>f</ide_selection> what is this?"
  u4 <- u3 04Z user: "hidden" metadata={"injected":"meta"}
  u5 <- u4 05Z user: "[Request interrupted by user]" metadata={"injected":"interruption"}
  q1 <- u5 06Z user: "and this" metadata={"queued":true}
  q2 <- q1 07Z custom {"custom_type":"claude-code.attachment","data":{"filename":"x","type":"file"}}
  u6 <- q2 08Z user: "real"`,
		},
		"what the program says in the user's name": {
			new(script).user("u1", "", "go").
				tree("system", "c1", "u1", `"subtype":"local_command","content":"<command-name>/model</command-name>"`).
				tree("system", "c2", "c1", `"subtype":"local_command","content":"<local-command-stdout>set</local-command-stdout>"`).
				tree("user", "u2", "c2", `"origin":{"kind":"task-notification"},"message":{"role":"user","content":"it is done"}`).
				tree("user", "u3", "u2", `"origin":{"kind":"human"},"message":{"role":"user","content":"mine"}`).
				tree("attachment", "q1", "u3", `"attachment":{"type":"queued_command","prompt":"done","commandMode":"task-notification"}`),
			`  u1 <- root 01Z user: "go"
  c1 <- u1 02Z user: "<command-name>/model</command-name>" metadata={"injected":"command","local":true}
  c2 <- c1 03Z user: "<local-command-stdout>set</local-command-stdout>" metadata={"injected":"local-command","local":true}
  u2 <- c2 04Z user: "it is done" metadata={"injected":"task-notification","origin":{"kind":"task-notification"}}
  u3 <- u2 05Z user: "mine" metadata={"origin":{"kind":"human"}}
  q1 <- u3 06Z user: "done" metadata={"queued":{"commandMode":"task-notification"}}`,
		},
		"a request that failed is no reply": {
			new(script).user("u1", "", "go").tree("assistant", "e1", "u1", `"isApiErrorMessage":true,"message":{"id":"x","model":"none","role":"assistant","content":[{"type":"text","text":"API Error: 500"}]}`).
				user("u2", "e1", "again"),
			`  u1 <- root 01Z user: "go"
  e1 <- u1 02Z custom {"custom_type":"claude-code.api_error","data":{"content":[{"text":"API Error: 500","type":"text"}],"id":"x","model":"none","role":"assistant"}}
  u2 <- e1 03Z user: "again"`,
		},
		"a text that was said twice": {
			new(script).user("u1", "", "go").reply("a1", "u1", "1", text("so"), 1).reply("a2", "a1", "1", text("so"), 2),
			`  u1 <- root 01Z user: "go"
  a1 <- u1 (a2) 02Z assistant: (anthropic/claude-opus-4-5) "so" "so" response=msg_1 ` + usage + `2(0)$0`,
		},
		"blocks of all kinds": {
			new(script).tree("user", "u1", "", `"message":{"role":"user","content":[{"type":"text","text":"look","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"document","title":"d.pdf","source":{"type":"base64","media_type":"application/pdf","data":"cGRm"}},{"type":"document","source":{"type":"file","file_id":"f"}}]}`).
				reply("a1", "u1", "1", `{"type":"redacted_thinking","data":"xyz"},{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`, 1).
				tree("user", "r1", "a1", `"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","url":"http://x/y.png"}}]},{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"one"}]},{"type":"tool_result","tool_use_id":"t3"},{"type":"text","text":"and I say"}]}`),
			`  u1 <- root 01Z user: "look" [image base64 image/png aGk=] [file d.pdf base64 application/pdf cGRm] [raw {"type":"document","source":{"type":"file","file_id":"f"}}]
  a1 <- u1 02Z assistant: (anthropic/claude-opus-4-5) [thinking "" redacted=xyz] [raw {"type":"server_tool_use","id":"s","name":"web_search","input":{}}] response=msg_1 ` + usage + `1(0)$0
  r1 <- a1 03Z tool: [error t1 "a" "a" [image url  http://x/y.png]] [result t2 "one"] [result t3 ""]
  r1:text <- r1 03Z user: "and I say"`,
		},
		"a local error text is no reply": {
			new(script).user("u1", "", "go").tree("assistant", "e1", "u1", `"message":{"id":"x","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"API Error"}],"usage":{"input_tokens":0,"output_tokens":0}}`),
			`  u1 <- root 01Z user: "go"
  e1 <- u1 02Z assistant: "API Error" metadata={"synthetic":true}`,
		},
		"one message id under two requests is two replies": {
			new(script).user("u1", "", "go").reply("a1", "u1", "1", text("x"), 1).user("u2", "a1", "again").
				tree("assistant", "a2", "u2", `"requestId":"other","message":{"id":"msg_1","model":"m","role":"assistant","content":[{"type":"text","text":"y"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`),
			`  u1 <- root 01Z user: "go"
  a1 <- u1 02Z assistant: (anthropic/claude-opus-4-5) "x" response=msg_1 ` + usage + `1(0)$0
  u2 <- a1 03Z user: "again"
  a2 <- u2 04Z assistant: (anthropic/m) "y" stop=end_turn response=msg_1:other usage=1+0r+0w>1(0)$0`,
		},
		"a conversation that was cleared begins again": {
			new(script).tree("progress", "h1", "", `"data":{"type":"hook_progress","hookName":"SessionStart:startup"}`).
				user("u1", "h1", "before").reply("a1", "u1", "1", text("x"), 1).
				tree("progress", "h2", "", `"data":{"type":"hook_progress","hookName":"SessionStart:clear"}`).
				tree("progress", "h3", "h2", `"data":{}`).user("u2", "h3", "after").reply("a2", "u2", "2", text("y"), 1),
			`  u1 <- root 02Z user: "before"
  a1 <- u1 03Z assistant: (anthropic/claude-opus-4-5) "x" response=msg_1 ` + usage + `1(0)$0
  u2 <- root 06Z user: "after"
  a2 <- u2 07Z assistant: (anthropic/claude-opus-4-5) "y" response=msg_2 ` + usage + `1(0)$0`,
		},
		"the first prompt is edited": {
			new(script).tree("progress", "h1", "", `"data":{}`).tree("progress", "h2", "h1", `"data":{}`).
				user("u1", "h2", "first try").user("u2", "h2", "edited"),
			`  u1 <- root 03Z user: "first try"
  u2 <- root 04Z user: "edited"`,
		},
		"damaged, unknown and torn lines": {
			new(script).user("u1", "", "one").line(`{"half":`).line(`{"type":"novel","uuid":"n1","parentUuid":"u1","sessionId":"s"}`).
				line("\x00\x00").line("").user("u2", "n1", "two").line(`{"type":"novelty"}`).line(`[1]`),
			`  u1 <- root 01Z user: "one"
  u2 <- u1 02Z user: "two"
problem: line 2: invalid JSON at byte 8: unexpected end
problem: line 4: invalid JSON at byte 0: unexpected "\x00"
problem: line 8: invalid JSON at byte 0: not an object`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := "conversation " + sessionID + "\n" + test.want
			if diff := cmp.Diff(want, outline(t, save(t, test.s))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClaudeCodeReadTitles(t *testing.T) {
	t.Parallel()
	talk := func() *script { return new(script).user("u1", "", "hello") }
	for name, test := range map[string]struct {
		s    *script
		want string
	}{
		"none":                        {talk(), ""},
		"a summary of this file":      {talk().line(`{"type":"summary","summary":"Sum","leafUuid":"u1"}`), "Sum"},
		"a summary of another":        {talk().line(`{"type":"summary","summary":"Sum","leafUuid":"other"}`), ""},
		"the program's":               {talk().line(`{"type":"summary","summary":"Sum","leafUuid":"u1"}`).line(`{"type":"ai-title","aiTitle":"AI","sessionId":"s"}`), "AI"},
		"the last of the program's":   {talk().line(`{"type":"ai-title","aiTitle":"AI"}`).line(`{"type":"ai-title","aiTitle":"AI 2"}`), "AI 2"},
		"renamed":                     {talk().tree("system", "c", "u1", `"subtype":"local_command","content":"<command-name>/rename</command-name> <command-args>Mine </command-args>"`).line(`{"type":"ai-title","aiTitle":"AI"}`), "Mine"},
		"renamed in the user's name":  {talk().user("c", "u1", "<command-name>/rename</command-name><command-args>Mine</command-args>"), "Mine"},
		"renamed to nothing":          {talk().user("c", "u1", "<command-name>/rename</command-name><command-args></command-args>"), ""},
		"the user's own above others": {talk().line(`{"type":"custom-title","customTitle":"Custom"}`).line(`{"type":"ai-title","aiTitle":"AI"}`), "Custom"},
	} {
		c := transcripttest.Collect(t, claudecode.Format(), transcripttest.Open(t, save(t, test.s)))
		if got := c.Conversations[0].Title; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestClaudeCodeReadSidechains(t *testing.T) {
	t.Parallel()
	side := func(s *script, typ, uuid, parent, rest string) {
		s.tree(typ, uuid, parent, rest)
		text := strings.Replace(s.b.String(), `"isSidechain":false,"cwd":"/p","sessionId":"`+sessionID+`","version":"2.1.42","gitBranch":"main","type":"`+typ+`","uuid":"`+uuid+`"`,
			`"isSidechain":true,"cwd":"/p","sessionId":"`+sessionID+`","version":"2.1.42","type":"`+typ+`","uuid":"`+uuid+`"`, 1)
		s.b.Reset()
		s.b.WriteString(text)
	}
	s := new(script).user("u1", "", "delegate")
	s.reply("a1", "u1", "1", `{"type":"tool_use","id":"t1","name":"Task","input":{"prompt":"count files"}}`, 1)
	side(s, "user", "x1", "", `"message":{"role":"user","content":"count files"}`)
	side(s, "assistant", "x2", "x1", `"message":{"id":"msg_x","role":"assistant","model":"m","content":[{"type":"text","text":"7"}],"usage":{"input_tokens":1,"output_tokens":1}}`)
	s.tree("user", "r1", "a1", `"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"7"}]},"toolUseResult":{"agentId":"abc"}`)
	want := `conversation ` + sessionID + `
  u1 <- root 01Z user: "delegate"
  a1 <- u1 02Z assistant: (anthropic/claude-opus-4-5) [call t1 Task {"prompt":"count files"}] response=msg_1 usage=3+100r+20w>1(0)$0
  r1 <- a1 05Z tool: [result t1 "7"] metadata={"subagent":"` + sessionID + `/agent-abc"}
conversation ` + sessionID + `/agent-x1
 parent: ` + sessionID + `
 relation: subagent
 call: t1
  x1 <- root 03Z user: "count files"
  x2 <- x1 04Z assistant: (anthropic/m) "7" response=msg_x usage=1+0r+0w>1(0)$0`
	if diff := cmp.Diff(want, outline(t, save(t, s))); diff != "" {
		t.Error(diff)
	}
}

func TestClaudeCodeReadAgentFiles(t *testing.T) {
	t.Parallel()
	const root = "11111111-2222-4333-8444-555555555555"
	dir := filepath.Join(t.TempDir(), "projects", "-p")
	saveAs(t, filepath.Join(dir, sessionID+".jsonl"), new(script).line(`{"type":"mode","sessionId":"s"}`).user(root, "", "parent").b.String())
	child := strings.ReplaceAll(new(script).user("c1", "", "work").b.String(), `"isSidechain":false`, `"isSidechain":true,"agentId":"a7"`)
	for name, test := range map[string]struct{ path, parent string }{
		"beside":     {filepath.Join(dir, "agent-a7.jsonl"), root},
		"below":      {filepath.Join(dir, sessionID, "subagents", "agent-a7.jsonl"), root},
		"far below":  {filepath.Join(dir, sessionID, "subagents", "workflows", "w1", "agent-a7.jsonl"), root},
		"an orphan":  {filepath.Join(t.TempDir(), "agent-a7.jsonl"), sessionID},
		"compressed": {filepath.Join(dir, "agent-a7.jsonl.gz"), root},
	} {
		c := transcripttest.Collect(t, claudecode.Format(), transcripttest.Open(t, saveAs(t, test.path, child)))
		if len(c.Conversations) != 1 {
			t.Fatalf("%s: %d conversations", name, len(c.Conversations))
		}
		got := c.Conversations[0]
		if got.ID != sessionID+"/agent-a7" || got.Parent != test.parent || got.Relation != "subagent" || len(got.Records) != 1 {
			t.Errorf("%s: %+v", name, got.Conversation)
		}
	}
}

func TestClaudeCodeReadAgentCall(t *testing.T) {
	t.Parallel()
	const root = "11111111-2222-4333-8444-555555555555"
	outcome := `"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t-outcome","content":"7"}]},"toolUseResult":{"agentId":"a7"}`
	for name, test := range map[string]struct{ line, want string }{
		"queued as JSON":     {`{"type":"queue-operation","operation":"enqueue","content":"{\"task_id\":\"a7\",\"tool_use_id\":\"t-queued\"}"}`, "t-queued"},
		"queued with tags":   {`{"type":"queue-operation","operation":"enqueue","content":"<task-id>a7</task-id><tool-use-id>t-tags</tool-use-id>"}`, "t-tags"},
		"of another":         {`{"type":"queue-operation","operation":"enqueue","content":"<task-id>a77</task-id><tool-use-id>t-tags</tool-use-id>"}`, "t-outcome"},
		"shown":              {`{"type":"progress","uuid":"p","parentToolUseID":"t-shown","data":{"type":"agent_progress","agentId":"a7"}}`, "t-shown"},
		"only the outcome":   {`{"type":"progress","uuid":"p","parentToolUseID":"t-shown","data":{"type":"other","agentId":"a7"}}`, "t-outcome"},
		"a line that is not": {`{"type":"user","a7`, "t-outcome"},
	} {
		dir := filepath.Join(t.TempDir(), "-p")
		parent := new(script).user(root, "", "go").tree("user", "r1", root, outcome).line(test.line)
		saveAs(t, filepath.Join(dir, sessionID+".jsonl"), parent.b.String())
		saveAs(t, filepath.Join(dir, sessionID, "tool-results", "x.txt"), "the output")
		child := new(script).user("c1", "", "work").result("c2", "c1", "t", `<persisted-output>saved to /p/`+sessionID+`/tool-results/x.txt`)
		c := transcripttest.Collect(t, claudecode.Format(), transcripttest.Open(t, saveAs(t, filepath.Join(dir, sessionID, "subagents", "w", "agent-a7.jsonl"), child.b.String())))
		if got := c.Conversations[0]; got.ParentCall != test.want || got.Parent != root {
			t.Errorf("%s: the call is %q of %q", name, got.ParentCall, got.Parent)
		}
		if got := c.Conversations[0].Records[1].Entry.Message.Content[0].ToolResult.Content; got != "the output" {
			t.Errorf("%s: the persisted output is %q", name, got)
		}
	}
}

// TestClaudeCodeReadHostile: what is made to harm is reported, and what stands around it is
// read.
func TestClaudeCodeReadHostile(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 200_000)
	s := new(script).user("u1", "", "one").
		line(`{"type":"user","uuid":"d1","sessionId":"s","message":`+deep+strings.Repeat("]", 200_000)+`}`).
		tree("user", "u2", "u2", `"message":{"role":"user","content":"its own parent"}`).
		tree("user", "u3", "u4", `"message":{"role":"user","content":"a cycle"}`).
		tree("user", "u4", "u3", `"message":{"role":"user","content":"and back"}`).
		tree("user", "u5", "u4", `"message":{"role":7,"content":{"x":1}}`).
		tree("assistant", "u6", "u5", `"message":[]`)
	c := transcripttest.Collect(t, claudecode.Format(), transcripttest.Open(t, save(t, s)))
	if len(c.Problems) != 1 || !strings.Contains(c.Problems[0].Reason, "nested deeper") {
		t.Errorf("problems: %v", c.Problems)
	}
	parent := transcript.Root
	for _, rec := range c.Conversations[0].Records {
		if rec.Parent != parent {
			t.Errorf("%s hangs on %s, not on %s", rec.ID, rec.Parent, parent)
		}
		parent = rec.ID
	}
	if len(c.Conversations[0].Records) != 6 {
		t.Errorf("%d records", len(c.Conversations[0].Records))
	}
}

func TestClaudeCodeReadPersisted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "projects", "-p")
	saveAs(t, filepath.Join(dir, sessionID, "tool-results", "t1.txt"), "all of the output")
	saveAs(t, filepath.Join(dir, "secret"), "not yours")
	notice := func(path string) string {
		return `<persisted-output>Output too large. Full output saved to: ` + path + `\n\nPreview`
	}
	s := new(script).user("u1", "", "go").
		result("r1", "u1", "t1", notice("/home/u/.claude/projects/-p/"+sessionID+"/tool-results/t1.txt")).
		result("r2", "r1", "t2", notice("/x/tool-results/../../secret")).
		result("r3", "r2", "t3", notice("/x/tool-results/none.txt")).
		result("r4", "r3", "t4", notice("/etc/passwd"))
	c := transcripttest.Collect(t, claudecode.Format(), transcripttest.Open(t, saveAs(t, filepath.Join(dir, sessionID+".jsonl"), s.b.String())))
	for i, want := range []string{"all of the output", "<persisted-output>", "<persisted-output>", "<persisted-output>"} {
		res := c.Conversations[0].Records[i+1].Entry.Message.Content[0].ToolResult
		if !strings.HasPrefix(res.Content, want) || strings.Contains(res.Content, "not yours") {
			t.Errorf("result %d is %q", i+1, res.Content)
		}
	}
	if len(c.Problems) != 0 || c.Kept != int64(len("all of the output")) {
		t.Errorf("problems %v, %d bytes kept", c.Problems, c.Kept)
	}
	if gone := c.Counts[transcript.Became{What: "persisted output that is gone", Became: "its preview"}]; gone != 1 {
		t.Errorf("%d outputs are counted as gone, want 1: %v", gone, c.Counts)
	}
}

func TestClaudeCodeReadWeb(t *testing.T) {
	t.Parallel()
	const doc = `{"loglines":[
		{"type":"user","timestamp":"2026-01-02T03:04:01Z","message":{"role":"user","content":"hello"}},
		{"type":"assistant","timestamp":"2026-01-02T03:04:02Z","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}]}}],"other":1}`
	f := transcript.FileOf("session.json", []byte(doc))
	if !claudecode.Format().Detect(f) {
		t.Fatal("not detected")
	}
	c := transcripttest.Collect(t, claudecode.Format(), f)
	if len(c.Conversations) != 1 || len(c.Conversations[0].Records) != 2 {
		t.Fatalf("%+v", c)
	}
	for i, want := range []string{`"hello"`, `"hi"`} {
		span := c.Conversations[0].Records[i].From[0]
		if got := doc[span.Pos : span.Pos+span.Len]; !strings.HasPrefix(got, "{") || !strings.HasSuffix(got, "}") || !strings.Contains(got, want) {
			t.Errorf("record %d is at %q", i, got)
		}
	}
	for _, bad := range []string{`{"loglines":7}`, `{"loglines":[{]}`, `{"loglines":[`} {
		if _, err := transcript.Collect(t.Context(), claudecode.Format(), transcript.FileOf("session.json", []byte(bad))); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestClaudeCodeDetect(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want bool
	}{
		"a message":       {new(script).user("u1", "", "x").b.String(), true},
		"after a mark":    {"\ufeff" + new(script).user("u1", "", "x").b.String(), true},
		"a summary":       {`{"type":"summary","summary":"s","leafUuid":"u"}`, true},
		"a snapshot":      {`{"type":"file-history-snapshot","messageId":"m","snapshot":{}}`, true},
		"a mode":          {`{"type":"mode","mode":"x","sessionId":"s"}`, true},
		"a very long one": {`{"parentUuid":null,"sessionId":"s","type":"user","message":{"content":"` + strings.Repeat("x", 1<<17), true},
		"later lines":     {strings.Repeat("{\"type\":\"odd\"}\n", 10) + new(script).user("u1", "", "x").b.String(), true},
		"empty":           {"", false},
		"codex":           {`{"type":"session_meta","payload":{}}`, false},
		"pi":              {`{"type":"session","id":"x","cwd":"/"}`, false},
		"qwen":            {`{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","parts":[{"text":"x"}]}}`, false},
		"gemini":          {`{"sessionId":"s","projectHash":"h"}`, false},
		"text":            {"hello\nworld\n", false},
		"a document":      {`{"messages":[]}`, false},
	} {
		if got := claudecode.Format().Detect(transcript.FileOf("x.jsonl", []byte(test.text))); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestClaudeCodePlaces(t *testing.T) {
	t.Parallel()
	env := transcript.Env{Home: "/home/u", Getenv: func(string) string { return "" }}
	places := claudecode.Format().Places(env)
	if len(places) != 2 || filepath.ToSlash(places[0].Dir) != "/home/u/.claude/projects" || filepath.ToSlash(places[1].Dir) != "/home/u/.config/claude/projects" {
		t.Errorf("places: %+v", places)
	}
	for path, want := range map[string]bool{"-p/x.jsonl": true, "-p/s/subagents/agent-1.jsonl": true, "-p/s/tool-results/x.jsonl": false, "-p/sessions-index.json": false} {
		if places[0].Match(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
	own := t.TempDir()
	env.Getenv = func(string) string { return own }
	if places := claudecode.Format().Places(env); len(places) != 1 || places[0].Dir != filepath.Join(own, "projects") {
		t.Errorf("with CLAUDE_CONFIG_DIR: %+v", places)
	}
}

// TestClaudeCodeReadFork: newer versions say what a session was forked from, and give it a
// tag.
func TestClaudeCodeReadFork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const other = "0b3c1f7e-4d57-4a54-9be1-3f6b1b2f6f11"
	first, second := transcript.HashID("first"), transcript.HashID("second")
	saveAs(t, filepath.Join(dir, other+".jsonl"), new(script).tree("progress", first, "", `"data":{}`).user(second, first, "go").b.String())
	fork := new(script).
		tree("user", transcript.HashID("copy"), "", `"forkedFrom":{"sessionId":"`+other+`","messageUuid":"`+second+`"},"message":{"role":"user","content":"go"}`).
		line(`{"type":"custom-title","customTitle":"go (fork)","sessionId":"` + sessionID + `","uuid":"` + transcript.HashID("title") + `"}`).
		line(`{"type":"tag","tag":"old","sessionId":"` + sessionID + `"}`).line(`{"type":"tag","tag":"later","sessionId":"` + sessionID + `"}`)
	c := transcripttest.Collect(t, claudecode.Format(), transcripttest.Open(t, saveAs(t, filepath.Join(dir, sessionID+".jsonl"), fork.b.String()))).Conversations[0]
	if c.Relation != session.RelationFork || c.Parent != first || c.Extra["forked_from"] != other {
		t.Errorf("it is a %s of %s (%v)", c.Relation, c.Parent, c.Extra)
	}
	if c.Title != "go (fork)" || len(c.Tags) != 1 || c.Tags[0] != "later" {
		t.Errorf("title %q, tags %q", c.Title, c.Tags)
	}
	if of := c.Records[0].Entry.Message.Metadata["copy_of"]; of != second {
		t.Errorf("a copy of %v", of)
	}
}
