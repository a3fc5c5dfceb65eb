package demo

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// tales are the sessions of the demo, the oldest first: ids grow with time.
var tales = []func(*teller){taleLicence, taleBuild, taleTokenizer, taleKyoto, taleMigration, taleRelease}

func taleLicence(tt *teller) {
	tt.at(9, 300)
	t := tt.begin("licence", "archived: a short question", session.Header{CWD: "/home/ada/forge"})
	t.name("Choosing a licence", "legal")
	t.user("MIT or Apache-2.0 for a Go library that companies will vendor?")
	t.answer(session.Text("Apache-2.0, if you expect companies: it grants patents explicitly, and their lawyers know it. MIT is shorter and just as permissive otherwise."))
	t.user("Apache it is. Thanks!")
	if a, ok := store.As[store.Archiver](t.store); ok {
		t.do(func() (string, error) { return "", a.Archive(t.ctx, t.s.ID()) })
	}
}

func taleBuild(tt *teller) {
	tt.at(6, 200)
	t := tt.begin("nightly", "branches, tool calls, thinking, labels", session.Header{CWD: "/home/ada/forge"})
	t.name("Why is the nightly build slow?", "build", "ci")
	t.uses("anthropic", "claude-sonnet-4-5", "high")
	t.system("You are a build engineer. Measure before you change anything.")
	question := t.user("The nightly build went from 6 to 19 minutes last week. Find out why, please.")
	t.answer(session.Thinking("Three usual suspects: the cache is cold, a dependency became heavy, or tests that used to be parallel are not.\nMeasure first.", ""),
		session.ToolUse("call_build_log", "bash", map[string]any{"command": "gh run view 8123 --log | ts-summary"}))
	t.message(&session.MessageEntry{
		Role:    session.RoleTool,
		Content: []session.Content{session.ToolResult("call_build_log", buildLog(), false)},
	})
	found := t.answer(session.Text("The link step is fine. `generate` now runs **protoc in a container that is pulled every night**: 11 of the 13 new minutes.\n\n```yaml\n- run: docker run --pull=always ghcr.io/forge/protoc:latest\n```\n\nPin the image and cache it, or install protoc on the runner."))
	t.label(found, "root cause")
	pin := t.user("Pin it, then.")
	t.tool("Pinning by digest, so that it is reproducible.", "edit", map[string]any{
		"path": ".github/workflows/nightly.yml", "old": "--pull=always ghcr.io/forge/protoc:latest", "new": "ghcr.io/forge/protoc@sha256:9f2c…",
	}, "1 replacement", false)
	t.answer(session.Text("Done. The next nightly should take about 8 minutes: the image is still pulled once per runner."))

	t.back(pin)
	t.tool("Let me see whether the runner could keep the image.", "bash", map[string]any{"command": "docker info --format '{{.Driver}}'"},
		"permission denied while trying to connect to the Docker daemon socket", true)
	t.answer(session.Text("I may not talk to the daemon there, so I cannot tell."))

	t.back(found)
	t.user("No containers at all, please. Install protoc on the runner.")
	t.tool("", "bash", map[string]any{"command": "apt-cache policy protobuf-compiler", "timeout": 20},
		"protobuf-compiler:\n  Installed: (none)\n  Candidate: 3.21.12-8", false)
	end := t.answer(session.Text("`apt-get install protobuf-compiler` gives 3.21, which is what we use. I replaced the container step; the nightly took **6 min 12 s**."))
	t.label(end, "fixed")
	t.label(question, "where it began")
}

// buildLog is a tool result that is long enough to be folded.
func buildLog() string {
	var b strings.Builder
	steps := []struct {
		name    string
		seconds int
	}{
		{"checkout", 9},
		{"setup-go", 14},
		{"restore cache", 31},
		{"generate", 683},
		{"vet", 22},
		{"build linux/amd64", 48},
		{"build linux/arm64", 51},
		{"build darwin/arm64", 47},
		{"test ./parse", 36},
		{"test ./store", 92},
		{"test ./cmd", 61},
		{"upload", 18},
	}
	for _, step := range steps {
		fmt.Fprintf(&b, "%-20s %4d s  %s\n", step.name, step.seconds, strings.Repeat("▇", 1+step.seconds/30))
	}
	return b.String()
}

func taleTokenizer(tt *teller) {
	tt.at(5, 90)
	t := tt.begin("tokenizer", "a compaction and an edit of the context", session.Header{CWD: "/home/ada/forge"})
	t.name("Off-by-one in the tokenizer", "parser")
	t.uses("anthropic", "claude-sonnet-4-5", "")
	t.user("TestTokens/unterminated fails since yesterday. Why?")
	t.tool("Let me run it.", "bash", map[string]any{"command": "go test ./parse -run TestTokens"},
		"--- FAIL: TestTokens/unterminated (0.00s)\n    tokens_test.go:58: got 3 tokens, want 4\nFAIL", false)
	t.tool("", "read_file", map[string]any{"path": "parse/tokens.go", "from": 31, "to": 42},
		"func (l *lexer) run() {\n\tfor l.pos < len(l.text)-1 {\n\t\tl.step()\n\t}\n}", false)
	t.answer(session.Text("The loop stops one rune early:\n\n```go\nfor l.pos < len(l.text)-1 { // should be < len(l.text)\n```\n\nIt was introduced when `peek` was inlined."))
	kept := t.user("Fix it, and add a test with an empty string.")
	t.tool("", "edit", map[string]any{"path": "parse/tokens.go", "old": "len(l.text)-1", "new": "len(l.text)"}, "1 replacement", false)
	noisy := t.tool("", "bash", map[string]any{"command": "go test ./parse -run TestTokens -v"},
		strings.Repeat("    tokens_test.go:61: trace: next rune\n", 30)+"--- PASS: TestTokens (0.00s)\nPASS", false)
	t.answer(session.Text("Fixed. `TestTokens/empty` is new and passes."))
	t.do(func() (string, error) { return t.s.AppendEntry(session.ContextEdit(noisy)) })
	cut := t.do(func() (string, error) {
		return t.s.AppendCompaction("TestTokens/unterminated failed because lexer.run stopped one rune early (parse/tokens.go:32), since peek was inlined. The user wanted it fixed with a test for the empty string.", kept, t.input)
	})
	t.label(cut, "compacted")
	t.user("Anything else in that file that smells?")
	t.answer(session.Thinking("step() indexes text[pos+1] without a check.", ""),
		session.Text("One thing: `step` reads `text[pos+1]` without checking. It cannot fail today, but only because `run` used to stop early."))
	fork(t, cut)
}

func fork(t *tale, cut string) {
	t.at(4, 30)
	var f *tale
	t.do(func() (string, error) {
		h := session.Header{ID: "table", ParentSession: t.s.ID(), Relation: session.RelationFork, CWD: t.s.Header().CWD}
		s, err := t.s.Fork(t.ctx, t.store, &session.ForkOptions{Header: &h, Options: t.options(h.ID)})
		f = t.adopt("a fork of the one before", s, err)
		return "", err
	})
	if t.err != nil {
		return
	}
	f.back(cut)
	f.name("Tokenizer as a table", "parser", "idea")
	f.user("What if the tokenizer were a state table instead?")
	f.answer(session.Text("Then `run` is five lines and cannot be off by one:\n\n```go\nfor _, r := range text {\n\tstate = table[state][class(r)]\n}\n```\n\nThe price is a table of 12 × 9 states that nobody wants to edit by hand."))
}

func taleKyoto(tt *teller) {
	tt.at(3, 400)
	t := tt.begin("kyoto", "Japanese, and an image", session.Header{Key: "telegram:123456"})
	t.name("秋の京都旅行", "travel", "日本語")
	t.uses("anthropic", "claude-sonnet-4-5", "off")
	t.user("十一月の京都に三日間行きます。紅葉のおすすめはどこですか？")
	t.answer(session.Text("十一月下旬なら、東福寺・永観堂・常寂光寺が見頃です。朝八時前に着くと静かです。\n\n1. 東福寺：通天橋からの眺め\n2. 永観堂：夜のライトアップ\n3. 常寂光寺：嵐山の竹林から歩いて十分"))
	t.user("これは去年の混雑のグラフです。何曜日がいいですか？", session.Image("image/png", chart()))
	t.answer(session.Text("グラフでは火曜日と水曜日が一番すいています。土曜日の半分以下です。"))
	t.user("Great. And in English for my friend, in one sentence?")
	t.answer(session.Text("Go on a Tuesday or Wednesday, before eight, and begin at Tōfuku-ji. 🍁"))
}

// chart draws visitors by weekday as a small picture.
func chart() string {
	const wide, high = 112, 64
	img := image.NewRGBA(image.Rect(0, 0, wide, high))
	for y := range high {
		for x := range wide {
			img.Set(x, y, color.RGBA{0xfa, 0xf6, 0xee, 0xff})
		}
	}
	for day, height := range []int{30, 18, 20, 28, 36, 54, 50} {
		for x := range 10 {
			for y := range height {
				img.Set(8+day*14+x, high-5-y, color.RGBA{uint8(120 + 2*height), 0x44, 0x2e, 0xff})
			}
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img) // a buffer takes everything
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func taleMigration(tt *teller) {
	tt.at(2, 250)
	t := tt.begin("ledger", "reached its limit and continues in the next", session.Header{CWD: "/home/ada/ledger"})
	t.name("Database migration", "db")
	t.uses("anthropic", "claude-opus-4-5", "high")
	plan := t.user("Plan the move of the ledger from MySQL to SQLite. No downtime.")
	t.answer(session.Text("Four steps: write to both, copy the past, read from SQLite, stop writing to MySQL. Each can be taken back."))
	t.label(plan, "the task")
	t.tool("", "query", map[string]any{"query": "select count(*), min(at), max(at) from entries"}, "4,182,331 | 2017-02-01 | today", false)
	t.answer(session.Text("Four million rows: the copy takes about two minutes."))
	t.at(1, 500)
	var next *tale
	t.do(func() (string, error) {
		s, err := t.s.Continue(session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
			Role: session.RoleSystem, Category: "CONTEXT",
			Content: []session.Content{session.Text("Continued. The plan: write to both, copy the past (4,182,331 rows), read from SQLite, stop writing to MySQL.")},
		}})
		next = t.adopt("the continuation", s, err)
		return "", err
	})
	if t.err != nil {
		return
	}
	next.name("Database migration, part 2", "db")
	next.user("Writing to both since this morning. Copy the past.")
	next.tool("", "bash", map[string]any{"command": "ledger copy --from mysql --to sqlite --until now"}, "copied 4,182,331 rows in 1m54s\nchecksums match", false)
	next.answer(session.Text("Copied, and the checksums match. Reading from SQLite is safe from now on."))
}

func taleRelease(tt *teller) {
	tt.at(0, 35)
	t := tt.begin("release", "from today, pinned, without a name", session.Header{CWD: "/home/ada/forge"})
	t.uses("openai", "gpt-5", "low")
	t.user("Draft the release notes for 0.3.\nKeep them under ten lines.")
	t.tool("", "bash", map[string]any{"command": "git log --oneline v0.2..HEAD | wc -l"}, "87", false)
	t.answer(session.Text("## 0.3\n\n- The nightly build takes 6 minutes again\n- The tokenizer reads the last rune\n- The ledger moved to SQLite"))
	t.do(func() (string, error) { return t.s.AppendEntry(session.Pinned(true)) })
}
