package session_test

// What users of other systems suffered, each as a test that names the report.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// anthropics/claude-code#53821, #52387 and openai/codex#24425: a kill leaves half
// a record, the next append is glued to it, and the resume shows nothing.
func TestPain_TornLineThenAppend_ClaudeCode53821(t *testing.T) {
	t.Parallel()
	line := messageLine("b", "a", "assistant", "two")
	path := writeBytes(t, []byte(headerLine+"\n"+messageLine("a", "", "user", "one")+"\n"+line[:len(line)/2]))
	s := loadScribe(t, path)
	s.user("after the crash")
	s.again().sees("user: one", "user: after the crash")
	for i, line := range strings.Split(strings.TrimSpace(string(readBytes(t, path))), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("line %d is not JSON: %s", i+1, line)
		}
	}
}

// The same files as others' writers leave them: the torn line and the next one
// on one line. Neither what came before nor what came after may be lost.
func TestPain_GluedLines_ClaudeCode53821(t *testing.T) {
	t.Parallel()
	torn := messageLine("b", "a", "assistant", "two")
	for cut := 1; cut < len(torn); cut++ {
		glued := torn[:cut] + messageLine("c", "b", "user", "three")
		s := loadScribe(t, writeLog(t, headerLine, messageLine("a", "", "user", "one"), glued, messageLine("d", "c", "assistant", "four")))
		if got := view(mustGet(s.GetContext())(t)); !slices.Contains(got, "user: one") || !slices.Contains(got, "assistant: four") {
			t.Errorf("torn at %d: the context is %q", cut, got)
		}
		if kinds := s.problemKinds(); !slices.Contains(kinds, session.ProblemDamaged) {
			t.Errorf("torn at %d: problems %q", cut, kinds)
		}
	}
}

// anthropics/claude-code#50347: the loader stops at the first bad line and hides
// days of history.
func TestPain_BadLineHidesHistory_ClaudeCode50347(t *testing.T) {
	t.Parallel()
	lines := []string{headerLine, messageLine("0", "", "user", "0")}
	for i := 1; i < 200; i++ {
		line := messageLine(fmt.Sprint(i), fmt.Sprint(i-1), "user", fmt.Sprint(i))
		if i%10 == 5 {
			line = line[:1+i%len(line)]
		}
		lines = append(lines, line)
	}
	s := loadScribe(t, writeLog(t, lines...))
	if got := len(mustGet(s.GetContext())(t)); got != 180 {
		t.Errorf("%d of 180 readable entries are in the context", got)
	}
	if got := len(mustGet(s.Forward(""))(t)); got != 200 {
		t.Errorf("the path has %d entries and gaps, want 200", got)
	}
}

// anthropics/claude-code#20992, aaif-goose/goose#3200: writers in several tabs
// corrupt the files.
func TestPain_ConcurrentTabs_ClaudeCode20992(t *testing.T) {
	t.Parallel()
	first := newScribe(t, growing)
	first.user("start")
	tabs := []scribe{first, first.again(growing), first.again(growing)}
	for i := range 20 {
		for n, tab := range tabs {
			tab.user(fmt.Sprintf("tab %d, %d", n, i))
		}
	}
	again := first.again()
	if got := len(again.ids()); got != 61 {
		t.Errorf("%d entries, want 61", got)
	}
	if kinds := again.problemKinds(); kinds != nil {
		t.Errorf("problems %q", kinds)
	}
	for _, tab := range tabs {
		if got := len(mustGet(tab.GetContext())(t)); got != 21 {
			t.Errorf("a tab sees %d of its 21 entries", got)
		}
	}
}

// openclaw/openclaw#4739, #93320, anomalyco/opencode#27594, aaif-goose/goose#2951,
// OpenMinis/OpenMinis#222, langchain-ai/langchain#38352, deepagents#270,
// microsoft/semantic-kernel#12708: a compaction separates a call from its result,
// and every later request is refused.
func TestPain_CompactionSplitsPair_OpenClaw4739(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	for i := range 6 {
		s.user(fmt.Sprint("u", i))
		s.call(fmt.Sprint("a", i), fmt.Sprint("b", i))
		s.result(fmt.Sprint("b", i))
		s.result(fmt.Sprint("a", i))
		s.say(fmt.Sprint("done ", i))
	}
	path := mustGet(s.Forward(""))(t)
	accepted := 0
	for _, e := range path {
		leaf := s.LeafID()
		if _, err := s.AppendCompaction("sum", e.ID, 1); err == nil {
			accepted++
			checkPairs(t, mustGet(s.GetContext())(t))
			if c := s.at(""); len(c.Problems) != 0 {
				t.Errorf("problems %v", c.Problems)
			}
		}
		s.branch(leaf)
	}
	if accepted != 18 { // before each question, each step and each last answer
		t.Errorf("%d cuts were accepted, want 18", accepted)
	}
}

// earendil-works/pi#8667: an old compaction that lies within what a later one
// keeps is rendered in the middle of a pair.
func TestPain_OldCompactionInsidePair_Pi8667(t *testing.T) {
	t.Parallel()
	const stamp = `"timestamp":"2024-01-01T10:00:02.000Z"`
	s := loadScribe(t, writeLog(t, headerLine, messageLine("u", "", "user", "one"),
		`{"type":"message","id":"call","parent_id":"u",`+stamp+`,"message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"c","name":"n","input":{}}}]}}`,
		`{"type":"compaction","id":"old","parent_id":"call",`+stamp+`,"compaction":{"summary":"old","first_kept_entry_id":"u","tokens_before":1}}`,
		`{"type":"message","id":"result","parent_id":"old",`+stamp+`,"message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c","content":"out"}}]}}`,
		messageLine("a", "result", "assistant", "two"),
		`{"type":"compaction","id":"new","parent_id":"a",`+stamp+`,"compaction":{"summary":"new","first_kept_entry_id":"u","tokens_before":1}}`))
	s.sees("summary: new", "user: one", "assistant: call c", "tool: c = out", "assistant: two")
}

// earendil-works/pi#6832: chained compactions, 33 of them, beyond recovery.
func TestPain_ThirtyThreeCompactions_Pi6832(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("start")
	for i := range 33 {
		kept := s.user(fmt.Sprint("question ", i))
		s.call(fmt.Sprint("c", i))
		s.result(fmt.Sprint("c", i))
		s.say(fmt.Sprint("answer ", i))
		s.compact(fmt.Sprint("sum ", i), kept)
		compareTail(s.t.(*testing.T), s)
	}
	s.again().sees("summary: sum 32", "user: question 32", "assistant: call c32", "tool: c32 = out of c32", "assistant: answer 32")
	for i := range 33 { // and each can be undone
		mustGet(s.Undo())(t)
		if c := s.at(""); i < 32 && c.Entries[0].Compaction.Summary != fmt.Sprint("sum ", 31-i) {
			t.Fatalf("after %d undos: %q", i+1, view(c.Entries)[0])
		}
	}
	if got := len(mustGet(s.again().GetContext())(t)); got != 1+33*4 {
		t.Errorf("%d entries", got)
	}
}

// gugu91/pinet#941: the writer stops saving while it compacts. See also
// TestBackgroundCompactionNeverSplitsAPair.
func TestPain_WorkDuringCompactionIsKept_Pinet941(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	s.user("two")
	plan := mustGet(s.PlanCompaction(session.PlanOptions{KeepTokens: 1, Count: one}))(t)
	s.user("while the summary is being written")
	s.say("an answer meanwhile")
	s.compact("sum", plan.FirstKept)
	s.again().sees("summary: sum", "user: two", "user: while the summary is being written", "assistant: an answer meanwhile")
}

// google/adk-python#4740, #5602: a call that waits for approval is compacted
// away. picoclaw: a summary that races an append leaves a result without a call.
func TestPain_PendingCallCompactedAway_AdkPython4740(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u := s.user("delete everything")
	waits := s.call("approval")
	for _, first := range []string{s.user("well?"), ""} {
		if _, err := s.AppendCompaction("sum", first, 1); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("the call that waits was compacted away: %v", err)
		}
	}
	s.branch(waits)
	s.compact("sum", u)
	s.result("approval")
	s.sees("summary: sum", "user: delete everything", "assistant: call approval", "tool: approval = out of approval")
}

// google/adk-python#7236: one call that was never answered disables compaction
// for ever, in silence.
func TestPain_OrphanCallDisablesCompaction_AdkPython7236(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	s.call("never answered")
	s.user("go on")
	for i := range 10 {
		s.say(fmt.Sprint("a", i))
		s.user(fmt.Sprint("u", i))
	}
	plan := mustGet(s.PlanCompaction(session.PlanOptions{KeepTokens: 4, Count: one}))(t)
	s.compact("sum", plan.FirstKept)
	if got := len(mustGet(s.again().GetContext())(t)); got != 4 { // the summary and two turns
		t.Errorf("%d entries", got)
	}
}

// dotnet/extensions#6890 drops all tool messages, microsoft/semantic-kernel#13062
// and dotnet#12612 the system prompt: nothing that is kept may be dropped, and
// index 0 is not special (picoclaw).
func TestPain_ReducerDropsMessages_DotnetExtensions6890(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.message(session.RoleSystem, session.Text("rules"))
	s.user("one")
	s.message(session.RoleSystem, session.Text("more rules"))
	kept := s.user("two")
	s.message(session.RoleSystem, session.Text("even more rules"))
	s.call("c")
	s.result("c")
	s.compact("sum", kept)
	s.sees("system: rules", "system: more rules", "summary: sum", "user: two", "system: even more rules", "assistant: call c", "tool: c = out of c")
}

// openai/openai-agents-python#4827, vercel/ai#10638, MoonshotAI/kimi-code#768: an
// interrupted call makes the next turn fail.
func TestPain_AbortedCallBricksSession_VercelAI10638(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	s.call("aborted", "done")
	s.result("done")
	s.user("again, please")
	s.sees("user: one", "assistant: call aborted, call done", "tool: done = out of done", "tool: aborted = "+interrupted, "user: again, please")
	checkPairs(t, mustGet(s.again().GetContext())(t))
}

// openai/openai-agents-js#929: a reasoning item without its follower.
func TestPain_ReasoningWithoutFollower_OpenAIAgentsJS929(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	thought := s.message(session.RoleAssistant, session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm", Signature: "sig"}})
	mustGet(s.SetLabel(thought, "a label in between"))(t)
	label := s.LeafID()
	call := s.call("c")
	s.result("c")
	for _, first := range []string{label, call} {
		if _, err := s.AppendCompaction("sum", first, 1); err == nil {
			t.Error("thinking was separated from its call")
		}
	}
	s.compact("sum", thought)
	s.sees("summary: sum", "user: one", "assistant: thinking hm", "assistant: call c", "tool: c = out of c")
}

// openai/codex#28866, #30932, earendil-works/pi#5804: resuming costs the history.
// Here the history before the compaction is not even looked at: it can be
// destroyed, and nobody notices until it is asked for.
func TestPain_ResumeReadsEverything_Codex28866(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	for i := range 500 {
		s.user(fmt.Sprint(i, strings.Repeat("x", 2000)))
	}
	end := mustGet(os.Stat(s.File()))(t).Size()
	s.compact("sum", s.user("kept"))
	for i := range 20 {
		s.user(fmt.Sprint(i, strings.Repeat("y", 2000)))
	}
	want := tell(t, s.at(""))
	mustDo(t, s.Close())
	data := readBytes(t, s.File())
	header, _, _ := strings.Cut(string(data), "\n")
	clear(data[len(header)+1 : end-1])
	mustDo(t, os.WriteFile(s.File(), data, 0o600))
	again := s.again()
	if diff := cmp.Diff(want, tell(t, again.at(""))); diff != "" {
		t.Errorf("resumed (-before +after):\n%s", diff)
	}
	again.user("goes on")
	if kinds := again.problemKinds(); !slices.Contains(kinds, session.ProblemDamaged) {
		t.Errorf("problems %q", kinds)
	}
}

// openai/codex#40323, #33735: the same images inlined in every compaction, 18.65
// GB instead of 112 MB.
func TestPain_ImagesInlinedAgain_Codex40323(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	for i := range 40 {
		s.message(session.RoleUser, picture(1, 40_000), session.Text(fmt.Sprint("screenshot ", i)))
	}
	if size := len(readBytes(t, s.File())); size > 40*1000 {
		t.Errorf("the log has %d bytes", size)
	}
	if got := len(blobFiles(t, filepath.Dir(s.File()))); got != 1 {
		t.Errorf("%d blobs", got)
	}
}

// openai/codex#29531, #34061: resuming duplicates the history.
func TestPain_ResumeDuplicatesHistory_Codex29531(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	before := readBytes(t, s.File())
	for range 10 {
		again := s.again()
		mustGet(again.GetContext())(t)
		mustDo(t, again.Close())
	}
	if diff := cmp.Diff(string(before), string(readBytes(t, s.File()))); diff != "" {
		t.Errorf("resuming wrote:\n%s", diff)
	}
}

// QwenLM/qwen-code#7164, earendil-works/pi#9596, #8848, bug-ops/zeph#5487,
// langchain-ai/langgraph#8796: two writers both succeed and one branch becomes
// unreachable. google/adk-go#1229: no way for a legitimate second writer.
func TestPain_TwoWritersHideAnswers_QwenCode7164(t *testing.T) {
	t.Parallel()
	a := newScribe(t)
	a.user("start")
	b := a.again()
	shown := a.say("an answer that was shown")
	if _, err := b.AppendMessage(session.RoleUser, []session.Content{session.Text("b")}); !errors.Is(err, session.ErrConflict) {
		t.Fatalf("the second writer was not told: %v", err)
	}
	branch := b.user("b") // it insists
	again := a.again()
	if leaves := mustGet(again.Leaves())(t); !slices.Equal(leaves, []string{shown, branch}) {
		t.Errorf("leaves %v", leaves)
	}
	again.branch(shown)
	again.sees("user: start", "assistant: an answer that was shown")
}

// google/adk-python#3717, #4751: false conflicts. One writer never has one, nor
// do many goroutines of it.
func TestPain_FalseConflicts_AdkPython3717(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	for i := range 50 {
		s.user(fmt.Sprint(i))
		reader := s.again()
		mustGet(reader.GetTree())(t)
		mustDo(t, reader.Close())
	}
}

// NousResearch/hermes-agent#45110, openai/openai-agents-python#1656,
// ai-ecoverse/slicc#1987: the prompt or the turn is lost when the reply never
// completes.
func TestPain_PromptLostBeforeReply_HermesAgent45110(t *testing.T) {
	t.Parallel()
	s := mustGet(session.New(t.TempDir(), ""))(t) // with the default durability
	mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text("the prompt")}))(t)
	loadScribe(t, s.File()).sees("user: the prompt") // nobody closed it
	mustDo(t, s.Close())
}

// anthropics/claude-code#58554: 213 of 241 sessions have dangling parents, and
// 0.1 to 2 % of them can be reached.
func TestPain_DanglingParents_ClaudeCode58554(t *testing.T) {
	t.Parallel()
	lines := []string{headerLine}
	for i := range 100 {
		lines = append(lines, messageLine(fmt.Sprint("m", i), fmt.Sprint("lost", i), "user", fmt.Sprint(i)))
	}
	s := loadScribe(t, writeLog(t, lines...))
	reached := 0
	for _, e := range flatten(mustGet(s.GetTree())(t)) {
		if e.Message != nil {
			reached++
		}
	}
	if reached != 100 {
		t.Errorf("%d of 100 entries can be reached", reached)
	}
}

// anthropics/claude-code#88597, #91632: the loader keeps one branch; queued turns
// with a stale parent strand hours of work.
func TestPain_BranchesStranded_ClaudeCode91632(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	a := s.user("a")
	for i := range 5 {
		s.branch(a)
		s.user(fmt.Sprint("branch ", i))
		s.say("answer")
	}
	again := s.again()
	leaves := mustGet(again.Leaves())(t)
	if len(leaves) != 5 {
		t.Fatalf("%d leaves", len(leaves))
	}
	for i, leaf := range leaves {
		if got := view(again.at(leaf).Entries); !slices.Equal(got, []string{"user: a", fmt.Sprint("user: branch ", i), "assistant: answer"}) {
			t.Errorf("branch %d: %q", i, got)
		}
	}
}

// can1357/oh-my-pi#7474: a branch that is cut at a call that has no result.
func TestPain_BranchAtUnresolvedCall_OhMyPi7474(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	call := s.call("c")
	s.result("c")
	s.branch(call)
	s.user("something else")
	s.sees("user: one", "assistant: call c", "tool: c = "+interrupted, "user: something else")
	checkPairs(t, mustGet(loadScribe(t, mustGet(s.CreateBranchedSession(call))(t)).GetContext())(t))
}

// google-gemini/gemini-cli#27368: resume, then list, wipes the session.
func TestPain_ListWipesSession_GeminiCLI27368(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	before := snapshotDir(t, filepath.Dir(s.File()))
	again := s.again()
	mustGet(session.List(filepath.Dir(s.File())))(t)
	mustDo(t, again.Close())
	if diff := cmp.Diff(before, snapshotDir(t, filepath.Dir(s.File()))); diff != "" {
		t.Error(diff)
	}
}

// can1357/oh-my-pi#7862: after a downgrade the sessions cannot be read. A newer
// version is refused; what is only unknown is not.
func TestPain_Downgrade_OhMyPi7862(t *testing.T) {
	t.Parallel()
	path := writeLog(t,
		`{"type":"session","id":"s","version":1,"timestamp":"2024-01-01T10:00:00Z","from_the_future":{"a":1}}`,
		messageLine("a", "", "user", "one"),
		`{"type":"quantum_state","id":"q","parent_id":"a","timestamp":"2024-01-01T10:00:02.000Z","quantum_state":{"spin":"up"}}`,
		`{"type":"message","id":"b","parent_id":"q","timestamp":"2024-01-01T10:00:02.000Z","message":{"role":"oracle","content":[{"type":"smell","smell":{"of":"rain"}}],"mood":"calm"}}`)
	survives(t, path)
	e := mustGet(loadScribe(t, path).Entry("b"))(t)
	if got := encode(t, e); !strings.Contains(got, `{"type":"smell","smell":{"of":"rain"}}`) || !strings.Contains(got, `"mood":"calm"`) {
		t.Error(got)
	}
}

// anomalyco/opencode#32368, #41266, NousResearch/hermes-agent#81130: compaction
// cannot be undone; anthropics/claude-code#9796 and others: it loses the last
// request.
func TestPain_CompactionCannotBeUndone_OpenCode32368(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("instructions that matter")
	s.say("ok")
	last := s.user("the last request")
	before := s.at("")
	s.compact("a bad summary", last)
	s.sees("summary: a bad summary", "user: the last request")
	mustGet(s.again().Undo())(t)
	mustGet(s.Refresh())(t)
	if d := before.Diff(s.at("")); d.Why != "" {
		t.Errorf("the undone compaction left a trace: %+v", d)
	}
}

// anomalyco/opencode#27924, openclaw/openclaw#78367 (89 compactions in 24 hours):
// a plan that compacts nothing must not be made, or it is made for ever.
func TestPain_CompactionLoop_OpenCode27924(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("start")
	s.say("answer")
	s.user(strings.Repeat("one huge request ", 1000))
	count := func(e session.Entry) int { return len(encode(t, e)) }
	for range 5 {
		plan, err := s.PlanCompaction(session.PlanOptions{KeepTokens: 100, Count: count})
		if errors.Is(err, session.ErrNothingToCompact) {
			return
		}
		mustDo(t, err)
		s.compact("sum", plan.FirstKept)
	}
	t.Errorf("compacted five times: %d entries left", len(mustGet(s.GetContext())(t)))
}

// anthropics/claude-code#64371: users want to take single messages out.
func TestPain_DeleteChosenMessages_ClaudeCode64371(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	wrong := s.say("nonsense")
	s.user("two")
	mustGet(s.AppendEntry(session.ContextEdit(wrong)))(t)
	s.again().sees("user: one", "user: two")
	if e := mustGet(s.Entry(wrong))(t); viewMessage(e.Message) != "assistant: nonsense" {
		t.Error("it is gone from the log")
	}
}

// anomalyco/opencode#32515, cloudflare/agents#2200: what was sent before changes
// without a reason, and the cache misses. Appending keeps every prefix.
func TestPain_PrefixMutates_OpenCode32515(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	var before []session.Fingerprint
	for i := range 20 {
		s.user(fmt.Sprint("u", i))
		s.call(fmt.Sprint("c", i))
		s.result(fmt.Sprint("c", i))
		s.say("a")
		now := s.at("").Fingerprints
		if !slices.Equal(now[:len(before)], before) {
			t.Fatalf("turn %d changed what was sent before", i)
		}
		before = now
	}
}

// anthropics/claude-code#42338, #44045, #43657: a resume renders differently.
func TestPain_ResumeRendersDifferently_ClaudeCode42338(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	s.user("one")
	s.message(session.RoleAssistant, session.ToolUse("c", "n", map[string]any{"z": 1, "a": map[string]any{"y": 1.5, "x": "é<&>\u2028"}}))
	s.message(session.RoleTool, session.ToolResult("c", strings.Repeat("x", 100_000), false), picture(1, 100_000))
	s.call("interrupted")
	if d := s.at("").Diff(s.again().at("")); d.Why != "" || d.Index != 5 {
		t.Errorf("%+v", d)
	}
	if diff := cmp.Diff(tell(t, s.at("")), tell(t, s.again().at(""))); diff != "" {
		t.Error(diff)
	}
}

// Of the first implementations: trimming was saved to disk, 13 of 30 messages
// were kept.
func TestPain_TrimmingWasSaved(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	for i := range 30 {
		s.user(fmt.Sprint(i))
	}
	plan := mustGet(s.PlanCompaction(session.PlanOptions{KeepTokens: 13, Count: one}))(t)
	s.compact("sum", plan.FirstKept)
	again := s.again()
	if got := mustGet(again.MessageCount())(t); got != 30 {
		t.Errorf("%d messages are left of 30", got)
	}
}

// One unknown JSON key sent a whole file to recovery.
func TestPain_UnknownKeySendsToRecovery(t *testing.T) {
	t.Parallel()
	path := writeLog(t, strings.Replace(headerLine, `"version"`, `"surprise":1,"version"`, 1), strings.Replace(messageLine("a", "", "user", "one"), `"role"`, `"surprise":1,"role"`, 1))
	s := scribe{closeWith(t, mustGet(session.LoadOrRecover(path))(t)), t}
	s.sees("user: one")
	if s.ID() != "s" {
		t.Error("a recovery session was made")
	}
}

// Ids of the recovery sessions of several files collided within a second, and
// continuation_index was always 1.
func TestPain_RecoveryIDsCollide(t *testing.T) {
	t.Parallel()
	dir, seen := t.TempDir(), make(map[string]bool)
	for i := range 5 {
		path := filepath.Join(dir, fmt.Sprintf("s%d.jsonl", i))
		mustDo(t, os.WriteFile(path, []byte("garbage"), 0o600))
		s := closeWith(t, mustGet(session.LoadOrRecover(path))(t))
		if seen[s.ID()] {
			t.Fatalf("id %s twice", s.ID())
		}
		seen[s.ID()] = true
	}
	s := newScribe(t).Session
	for i := 1; i < 5; i++ {
		next := closeWith(t, mustGet(s.Continue())(t))
		if next.Header().Continuation != i {
			t.Errorf("continuation %d has index %d", i, next.Header().Continuation)
		}
		s = next
	}
}

// A line over 64 KiB made the load fail.
func TestPain_LongLine(t *testing.T) {
	t.Parallel()
	for _, size := range []int{64<<10 - 100, 64 << 10, 70_000, 1 << 20} {
		s := newScribe(t)
		s.user(strings.Repeat("x", size))
		s.user("after")
		if got := mustGet(s.again().GetContext())(t); len(got) != 2 || len(got[0].Message.Content[0].Text.Content) != size {
			t.Errorf("%d bytes: %d entries", size, len(got))
		}
	}
}

// Load("../x") escaped the directory. See TestBadNames.
func TestPain_LoadEscapes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustDo(t, os.WriteFile(filepath.Join(dir, "x.jsonl"), []byte(headerLine+"\n"), 0o600))
	if _, err := session.NewManager(filepath.Join(dir, "sessions")).Load("../x"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// A fork re-parented a second root. See TestForkFrom.
func TestPain_ForkReparentsRoot(t *testing.T) {
	t.Parallel()
	path := writeLog(t, headerLine, messageLine("a", "", "user", "one"), messageLine("b", "", "user", "two"))
	fork := scribe{closeWith(t, mustGet(session.ForkFrom(path, t.TempDir()))(t)), t}
	fork.sees("user: two")
	if got := len(mustGet(fork.GetTree())(t)); got != 2 {
		t.Errorf("%d roots", got)
	}
}

// Compaction and branch summaries never reached the model.
func TestPain_SummariesNeverSent(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	u := s.user("one")
	s.say("two")
	mustGet(s.BranchWithSummary(u, "tried two"))(t)
	s.compact("so far", "")
	kept := s.user("three")
	s.sees("summary: so far", "user: three")
	_ = kept
	mustGet(s.Undo())(t)
	s.sees("user: one", "branch: tried two", "user: three")
}

// pi 1.5: two managers on one file, neither sees the other's entries.
func TestPain_TwoManagersBlind(t *testing.T) {
	t.Parallel()
	a := newScribe(t)
	a.user("start")
	b := a.again()
	for i := range 5 {
		mustGet(a.Refresh())(t)
		a.user(fmt.Sprint("a", i))
		mustGet(b.Refresh())(t)
		b.user(fmt.Sprint("b", i))
	}
	mustGet(a.Refresh())(t)
	if got := len(mustGet(a.GetContext())(t)); got != 11 {
		t.Errorf("%d of 11 entries are on the active branch", got)
	}
}

// pi 1.5: a file deleted while it is open is made again without a header, and can
// never be opened again. See TestBadFileVanishes.
func TestPain_FileRecreatedWithoutHeader(t *testing.T) {
	t.Parallel()
	s := newScribe(t, func(c *session.Config) { c.Files.Sync = file.Always })
	s.user("one")
	mustDo(t, os.Remove(s.File()))
	for range 2 {
		if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("two")}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v, want fs.ErrNotExist", err)
		}
	}
	if _, err := os.Stat(s.File()); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the file was made again")
	}
}

// Session save was not atomic: a session that cannot be made leaves nothing.
func TestPain_HalfMadeSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := writeLog(t, headerLine, messageLine("a", "", "user", strings.Repeat("x", 2<<20)))
	mgr := session.NewManager(dir)
	mgr.Files.MaxLine = 1 << 20
	if _, err := mgr.ForkFrom(source); !errors.Is(err, session.ErrTooLarge) {
		t.Errorf("%v, want ErrTooLarge", err)
	}
	if infos := mustGet(session.List(dir))(t); len(infos) != 0 {
		t.Errorf("half a session was left: %+v", infos)
	}
}
