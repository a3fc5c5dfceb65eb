package render_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/bench/shapes"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/html"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/memory"
)

// htmlTalk is a session in memory to which a test appends.
type htmlTalk struct {
	t testing.TB
	render.Conversation
}

func htmlNewTalk(t testing.TB) htmlTalk {
	t.Helper()
	st := memory.New(nil)
	s, err := session.Create(context.Background(), st, session.Header{ID: "talk"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return htmlTalk{t, render.Conversation{Session: s, Blobs: st.Blobs(), Title: "A talk"}}
}

// say appends a message and returns its id.
func (k htmlTalk) say(role string, content ...session.Content) string {
	k.t.Helper()
	id, err := k.AppendMessage(role, content)
	if err != nil {
		k.t.Fatal(err)
	}
	return id
}

func (k htmlTalk) append(e session.Entry) string {
	k.t.Helper()
	id, err := k.AppendEntry(e)
	if err != nil {
		k.t.Fatal(err)
	}
	return id
}

func (k htmlTalk) branch(at string) {
	k.t.Helper()
	if err := k.Branch(at); err != nil {
		k.t.Fatal(err)
	}
}

// page is the whole page, and body what the talk is on it.
func (k htmlTalk) page() string {
	k.t.Helper()
	var b strings.Builder
	if err := html.Write(context.Background(), &b, k.Conversation, nil); err != nil {
		k.t.Fatal(err)
	}
	return b.String()
}

func (k htmlTalk) body() string {
	k.t.Helper()
	_, body, _ := strings.Cut(k.page(), "<main>")
	body, _, _ = strings.Cut(body, "</main>")
	return body
}

var text = session.Text

// opened is a session that somebody else wrote.
func opened(t testing.TB, lines string) render.Conversation {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.jsonl"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(context.Background(), st, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return render.Conversation{Session: s, Blobs: st.Blobs()}
}

func articles(body string) []string {
	return regexp.MustCompile(`(?s)<article .*?</article>`).FindAllString(body, -1)
}

func wantAll(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
}

func wantNone(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("there is %q in\n%s", part, text)
		}
	}
}

func TestACallAndItsResultShareACard(t *testing.T) {
	t.Parallel()
	k := htmlNewTalk(t)
	k.say("user", text("What is here?"))
	k.say("assistant", text("Let me look."),
		session.ToolUse("a", "bash", map[string]any{"command": "ls"}), session.ToolUse("b", "read", map[string]any{"path": "x.go"}))
	k.say("tool", session.ToolResult("b", "package x", false), session.ToolResult("a", "x.go\ny.go", false))
	k.say("assistant", text("Two files."))
	cards := articles(k.body())
	if len(cards) != 3 {
		t.Fatalf("%d cards:\n%s", len(cards), strings.Join(cards, "\n"))
	}
	ls, read, ok := strings.Cut(cards[1], "<b>read</b>")
	if !ok {
		t.Fatal(cards[1])
	}
	wantAll(t, ls, "<b>bash</b>", "<code dir=auto>ls</code>", "2 lines", "x.go\ny.go")
	wantAll(t, read, "package x")
}

// A call that was answered on two branches shows the result of the branch that is
// shown.
func TestAResultIsShownWithItsBranch(t *testing.T) {
	t.Parallel()
	k := htmlNewTalk(t)
	k.say("user", text("Go."))
	call := k.say("assistant", session.ToolUse("a", "bash", map[string]any{"command": "date"}))
	k.say("tool", session.ToolResult("a", "Monday", false))
	k.branch(call)
	k.say("tool", session.ToolResult("a", "Tuesday", false))
	outs := regexp.MustCompile(`(?s)<div class=out id=e\d data-s=\d( hidden)?><pre dir=auto>(\w+)`).FindAllStringSubmatch(k.body(), -1)
	if len(outs) != 2 || outs[0][1] == "" || outs[0][2] != "Monday" || outs[1][1] != "" || outs[1][2] != "Tuesday" {
		t.Errorf("%q", outs)
	}
}

// A result whose entry belongs to the calls of many others is read a few times
// and no more, and is shown once wherever it is.
func TestResultsOfManyCallsAreEachShownOnce(t *testing.T) {
	t.Parallel()
	k := htmlNewTalk(t)
	k.say("user", text("Go."))
	const n = 40
	var results []session.Content
	for i := range n {
		id := fmt.Sprintf("c%d", i)
		k.say("assistant", session.ToolUse(id, "bash", map[string]any{"command": "x"}))
		results = append(results, session.ToolResult(id, fmt.Sprintf("result-%d.", i), false))
	}
	k.say("tool", results...)
	body := k.body()
	for i := range n {
		if got := strings.Count(body, fmt.Sprintf("<pre dir=auto>result-%d.</pre>", i)); got != 1 {
			t.Errorf("result %d is shown %d times", i, got)
		}
	}
}

func TestWhatSaysNothingHasNoCard(t *testing.T) {
	t.Parallel()
	k := htmlNewTalk(t)
	k.say("user", text("Hello."))
	k.say("assistant", session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{}}, text(" \n"))
	k.say("assistant", text("Hello to you."))
	if cards := articles(k.body()); len(cards) != 2 {
		t.Errorf("%d cards:\n%s", len(cards), strings.Join(cards, "\n"))
	}
}

func TestFailedTurnsSayWhy(t *testing.T) {
	t.Parallel()
	k := htmlNewTalk(t)
	k.say("user", text("Go."))
	k.append(session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
		Role: "assistant", StopReason: "error", Metadata: map[string]any{"error": "the model is <overloaded>"},
	}})
	wantAll(t, k.body(), "class=stop", "the model is &lt;overloaded&gt;")
}

func TestEditsAreDiffs(t *testing.T) {
	t.Parallel()
	k := htmlNewTalk(t)
	k.say("user", text("Fix it."))
	k.say("assistant", session.ToolUse("a", "Edit", map[string]any{"file_path": "a.go", "old_string": "x <= 1\ny\n", "new_string": "x < 1\ny\n"}))
	body := k.body()
	wantAll(t, body, "<del>-x &lt;= 1\n</del><ins>+x &lt; 1\n</ins><span> y\n</span>", "<code dir=auto>a.go</code>", "<ins>+1</ins>")
	wantNone(t, body, "old_string", `\n`)
}

func TestPlansAreLists(t *testing.T) {
	t.Parallel()
	k := htmlNewTalk(t)
	k.say("user", text("Plan it."))
	k.say("assistant", session.ToolUse("a", "TodoWrite", map[string]any{"todos": []any{
		map[string]any{"content": "Think", "status": "completed"}, map[string]any{"content": "Do <it>", "status": "pending"},
	}}))
	wantAll(t, k.body(), "<li class=done dir=auto>Think</li><li class=todo dir=auto>Do &lt;it&gt;</li>", "2 todos")
}

func TestACallNamesTheSessionOfItsSubagent(t *testing.T) {
	t.Parallel()
	k := htmlNewTalk(t)
	k.say("user", text("Ask another."))
	k.say("assistant", session.ToolUse("a", "Task", map[string]any{"prompt": "Look."}), session.ToolUse("b", "Task", map[string]any{"prompt": "Look too."}))
	k.say("tool", result("a", "Looked."), result("b", "Looked too."))
	k.Subagents = map[string]string{"b": "0199beef"}
	first, second, _ := strings.Cut(k.body(), "Look too.")
	wantAll(t, second, "↳ subagent: <code>0199beef</code>")
	wantNone(t, first, "subagent")
}

// A branch that begins with thinking is known by what follows it.
func TestBranchesAreNamedByWhatTheySay(t *testing.T) {
	t.Parallel()
	k := htmlNewTalk(t)
	first := k.say("user", text("Go."))
	k.say("assistant", thinking("Hm."))
	k.say("assistant", text("The first answer."))
	k.say("user", text("Go on."))
	k.branch(first)
	k.say("assistant", text("The second answer."))
	_, list, _ := strings.Cut(k.body(), "<nav class=branches")
	list, _, _ = strings.Cut(list, "</nav>")
	wantAll(t, list, "2 branches", "The first answer.", "The second answer.", "3 entries")
}

func TestCompactionsDivideThePage(t *testing.T) {
	t.Parallel()
	k := htmlNewTalk(t)
	first := k.say("user", text("Hello."))
	k.say("assistant", text("Hello to you."))
	if _, err := k.AppendCompaction("They **greeted** each other.", first, 1234); err != nil {
		t.Fatal(err)
	}
	wantAll(t, k.body(), `class="compaction`, "1,234 tokens", "They <strong>greeted</strong> each other.")
	wantAll(t, k.page(), "<li class=compaction")
}

func TestTheOutlineHasThePromptsOfTheBranchShown(t *testing.T) {
	t.Parallel()
	k := htmlNewTalk(t)
	first := k.say("user", text("The **first** prompt"))
	k.say("assistant", text("No."))
	k.branch(first)
	k.say("assistant", text("Yes."))
	k.say("user", text("The second prompt"))
	k.branch(first)
	k.say("user", text("Another prompt"))
	_, side, _ := strings.Cut(k.page(), "<ol class=marks>")
	side, _, _ = strings.Cut(side, "</ol>")
	for prompt, hidden := range map[string]bool{"The **first** prompt": false, "The second prompt": true, "Another prompt": false} {
		line := regexp.MustCompile(`<li class=prompt data-s=\d( hidden)?><a dir=auto href="#e\d">` + regexp.QuoteMeta(prompt)).FindStringSubmatch(side)
		if line == nil || (line[1] != "") != hidden {
			t.Errorf("%s: %q in\n%s", prompt, line, side)
		}
	}
}

func TestMessagesAreMarkdown(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, markdown, want string }{
		{"list", "- a\n- b", "<ul><li>a</li><li>b</li></ul>"},
		{"numbers", "3. a\n4. b", `<ol start="3"><li>a</li><li>b</li></ol>`},
		{"tasks", "- [x] done\n- [ ] open", "<li><span class=box>☑</span> done</li><li><span class=box>☐</span> open</li>"},
		{"table", "|a|b|\n|-|-:|\n|1|2|", "<table><tr><th>a</th><th class=right>b</th></tr><tr><td>1</td><td class=right>2</td></tr></table>"},
		{"quote", "> a", "<blockquote><p>a</p></blockquote>"},
		{"heading", "# a", "<h3>a</h3>"},
		{"marks", "**a** *b* ~~c~~ `d<`", "<p><strong>a</strong> <em>b</em> <del>c</del> <code>d&lt;</code></p>"},
		{"lines", "a\nb", "<p>a<br>b</p>"},
		{"code", "```go\nfunc x() {}\n```", `<pre data-lang="go"><code><i class=k>func</i> <i class=f>x</i>() {}</code></pre>`},
		{"code of no language", "```\n<b>\n```", "<pre><code>&lt;b&gt;</code></pre>"},
		{"link", "[a](https://example.com/?a=1&b=2)", `<a href="https://example.com/?a=1&amp;b=2" target=_blank rel="noopener noreferrer nofollow">a</a>`},
		{"address", "see https://example.com/x.", `<a href="https://example.com/x" target=_blank rel="noopener noreferrer nofollow">https://example.com/x</a>.`},
		{"link to a file", "[a](src/a.go)", `<span class=ref title="src/a.go">a</span>`},
		{"script", "[a](javascript:alert(1))", `<span class=ref title="javascript:alert(1)">a</span>`},
		{"hidden script", "[a](java&Tab;script:alert(1))", `<span class=ref title="java`},
		{"data", "<data:text/html,x>", `<span class=ref title="data:text/html,x">data:text/html,x</span>`},
		{"picture", "![a](https://example.com/x.png)", `<a href="https://example.com/x.png"`},
		{"tag", "a <img src=x onerror=alert(1)> b", "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>"},
		{"block of HTML", "<script>\nalert(1)\n</script>", "<p>&lt;script&gt;<br>alert(1)<br>&lt;/script&gt;</p>"},
		{"entity", "&lt;b&gt; &amp;lt;", "<p>&lt;b&gt; &amp;lt;</p>"},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := htmlNewTalk(t)
			k.say("user", text(test.markdown))
			wantAll(t, k.body(), test.want)
			wantNone(t, k.body(), "<img", `="javascript:`+"alert(1)\" ", `href="java`, `href="data`)
		})
	}
}

// htmlHostile has markup wherever a session can hold a text.
const htmlHostile = `{"type":"session","id":"x","version":1,"timestamp":"2025-10-04T11:42:00.000Z","cwd":"/tmp/EVIL","parent_session":"EVIL","relation":"EVIL"}
{"type":"session_info","id":"h-1","parent_id":null,"timestamp":"2025-10-04T11:42:07.000Z","session_info":{"name":"title EVIL"}}
{"type":"custom","id":"h-2","parent_id":"h-1","timestamp":"2025-10-04T11:42:14.000Z","custom":{"custom_type":"coppice.tags","data":{"tags":["EVIL"]}}}
{"type":"message","id":"h-3EVIL","parent_id":"h-2","timestamp":"2025-10-04T11:42:21.000Z","message":{"role":"user","content":[{"type":"text","text":{"content":"EVIL\n# EVIL\nsetext\n===\n---\n<!-- comment\n[x]: EVIL\n|a|\n|-|\n|EVIL|\n\n[a](EVIL) <EVIL> ![EVIL](EVIL) \u0060EVIL\u0060 **EVIL**\n\u0060\u0060\u0060EVIL\nopen fence EVIL"}}]}}
{"type":"message","id":"h-4","parent_id":"h-3EVIL","timestamp":"2025-10-04T11:42:28.000Z","message":{"role":"userEVIL","content":[{"type":"text","text":{"content":"\u001b]0;owned\u0007\u001b[2J \u202e"}}]}}
{"type":"message","id":"h-5","parent_id":"h-4","timestamp":"2025-10-04T11:42:35.000Z","message":{"role":"assistant","stop_reason":"EVIL","metadata":{"error":"EVIL"},"content":[{"type":"thinking","thinking":{"content":"EVIL"}},{"type":"tool_use","tool_use":{"id":"c","name":"EVIL","input":{"command":"EVIL\nEVIL","kEVIL":"EVIL","o":{"EVIL":["EVIL"]}}}},{"type":"tool_use","tool_use":{"id":"d","name":"edit","input":{"file_path":"EVIL","old_string":"EVIL","new_string":"EVIL2"}}},{"type":"image","image":{"source":{"type":"base64","media_type":"image/pngEVIL","data":"AAAA"}}},{"type":"image","image":{"source":{"type":"url","media_type":"image/png","data":"javascript:alert(1)"}}},{"type":"image","image":{"source":{"type":"base64","media_type":"image/png","data":"EVIL"}}},{"type":"file","file":{"name":"EVIL","source":{"type":"base64","media_type":"text/html","data":"AAAA"}}}],"model":"EVIL"}}
{"type":"message","id":"h-6","parent_id":"h-5","timestamp":"2025-10-04T11:42:42.000Z","message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c","is_error":true,"content":"</pre>EVIL\n\u001b[31mred\u001b[0m"}},{"type":"tool_result","tool_result":{"tool_use_id":"none","is_error":true,"content":"EVIL"}}]}}
{"type":"label","id":"h-7","parent_id":"h-6","timestamp":"2025-10-04T11:42:49.000Z","label":{"target_id":"h-6","label":"EVIL"}}
{"type":"compaction","id":"h-8","parent_id":"h-7","timestamp":"2025-10-04T11:42:56.000Z","compaction":{"summary":"EVIL","first_kept_entry_id":"","tokens_before":1}}
{"type":"custom","id":"h-9","parent_id":"h-8","timestamp":"2025-10-04T11:43:03.000Z","custom":{"custom_type":"EVIL","data":{"EVIL":"EVIL"}}}
{"type":"model_change","id":"h-10","parent_id":"h-9","timestamp":"2025-10-04T11:43:03.000Z","model_change":{"provider":"EVIL","model_id":"EVIL"}}
{"type":"nonsenseEVIL","id":"h-11","parent_id":"h-5","timestamp":"2025-10-04T11:43:10.000Z","nonsense":"EVIL"}
{"type":"message","id":"h-12","parent_id":"missingEVIL","timestamp":"badEVIL","message":{"role":"user","content":"EVIL"}}
`

// attacked is the hostile session with an attack in it, as a page.
func attacked(t testing.TB, attack string) string {
	t.Helper()
	quoted := fmt.Sprintf("%q", attack) // it has nothing that Go and JSON quote differently
	c := opened(t, strings.ReplaceAll(htmlHostile, "EVIL", quoted[1:len(quoted)-1]))
	c.Title = "title" + attack
	var b strings.Builder
	if err := html.Write(context.Background(), &b, c, &html.Options{Leaf: "h-10"}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Nothing of a session becomes part of the page: no element, no attribute, no
// script that we did not write.
func TestHostileContentStaysText(t *testing.T) {
	t.Parallel()
	page := attacked(t, `</script></style></title>--><img src=x onerror=alert(1)>"'><svg onload=alert(1)>`)
	head, rest, _ := strings.Cut(page, "</style>")
	rest, script, _ := strings.Cut(rest, "<script>")
	if strings.Count(page, "<script>") != 1 || strings.Count(script, "</script>") != 1 || strings.Count(head, "<style") != 1 {
		t.Error("there is a script or a style that is not ours")
	}
	known := make(map[string]bool)
	for name := range strings.FieldsSeq(`noscript style head body div button b span form input output nav h2 ol li a header h1 p main section article
		small time details summary pre code i dl dt dd blockquote strong em del ins h3 h4 h5 h6 br hr table tr th td mark footer dialog kbd`) {
		known[name], known["/"+name] = true, true
	}
	quoted := regexp.MustCompile(`"[^"]*"`)
	for _, match := range regexp.MustCompile(`<(/?[A-Za-z!][^>\s]*)[^>]*>`).FindAllStringSubmatch(rest, -1) {
		if !known[match[1]] {
			t.Errorf("a tag that is not ours: %s", match[0])
		}
		if outside := quoted.ReplaceAllString(match[0], ""); strings.Contains(outside, "onerror") || strings.Contains(outside, "onload") {
			t.Errorf("an attribute that is not ours: %s", match[0])
		}
	}
	if strings.ContainsFunc(page, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == '\u202e' }) {
		t.Error("a character that acts")
	}
}

// The page must open without a network.
func TestThePageLoadsNothing(t *testing.T) {
	t.Parallel()
	k := htmlNewTalk(t)
	k.say("user", text("See this."), session.Image("image/png", "iVBORw0KGgo="))
	page := k.page()
	if got := regexp.MustCompile(`(?i)(?:src|href)="?[^#d"][^"]*|url\(|@import|https?://`).FindString(page); got != "" {
		t.Errorf("the page refers to %q", got)
	}
	wantAll(t, page, `src="data:image/png;base64,iVBORw0KGgo="`)
	wantAll(t, page, "default-src 'none'", "script-src 'sha256-")
	wantNone(t, page, "unsafe-inline")
}

// Twice the conversation must not take more than twice the work, whatever its
// shape. Allocations are counted, which no other process changes.
func TestTheWorkGrowsWithTheConversation(t *testing.T) {
	const n = 300
	answered := shapes.Shape{Name: "calls that one message answers", Lines: func(n int) string {
		var b strings.Builder
		b.WriteString(`{"type":"session","id":"x","version":1,"timestamp":"2026-01-01T00:00:00Z"}` + "\n")
		parent, results := "null", make([]string, n)
		entry := func(id, role, blocks string) {
			fmt.Fprintf(&b, `{"type":"message","id":%q,"parent_id":%s,"timestamp":"2026-01-01T00:00:00Z","message":{"role":%q,"content":[%s]}}`+"\n", id, parent, role, blocks)
			parent = `"` + id + `"`
		}
		for i := range n {
			entry(fmt.Sprintf("e%d", i), "assistant", fmt.Sprintf(`{"type":"tool_use","tool_use":{"id":"c%d","name":"run","input":{}}}`, i))
			results[i] = fmt.Sprintf(`{"type":"tool_result","tool_result":{"tool_use_id":"c%d","content":"done"}}`, i)
		}
		entry("r", "tool", strings.Join(results, ","))
		return b.String()
	}}
	for _, shape := range append(slices.Clone(shapes.All), answered) {
		t.Run(shape.Name, func(t *testing.T) {
			few, many := work(t, shape.Lines(n)), work(t, shape.Lines(2*n))
			if many > 5*few/2 {
				t.Errorf("%d bytes for %d, %d for twice as many: %.1f times", few, n, many, float64(many)/float64(few))
			}
		})
	}
}

// work is how many bytes it takes to write a page, at least. The garbage collector empties pools,
// and the race detector drops some of what is put into them, so that it is made again.
func work(t *testing.T, lines string) uint64 {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	c := opened(t, lines)
	measure := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := html.Write(context.Background(), io.Discard, c, nil); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	least := measure() // the session reads its log, once
	for range 6 {
		least = min(least, measure())
	}
	return least
}

func TestAnUnreadableEntryLeavesTheRest(t *testing.T) {
	t.Parallel()
	c := opened(t, strings.Join(strings.Split(shapes.All[0].Lines(20), "\n")[:10], "\n")+"\n{broken\n")
	var b strings.Builder
	if err := html.Write(context.Background(), &b, c, nil); err != nil {
		t.Fatal(err)
	}
	if got := len(articles(b.String())); got < 9 {
		t.Errorf("%d cards", got)
	}
}

func thinking(s string) session.Content {
	return session.Content{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: s}}
}

func bash(id, command string) session.Content {
	return session.ToolUse(id, "bash", map[string]any{"command": command})
}

func result(id, s string) session.Content { return session.ToolResult(id, s, false) }
