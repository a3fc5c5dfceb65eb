package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// fixture is a conversation with all that is hard to hand over: parallel calls with ids
// that some providers refuse, a compaction that keeps a tail, an image, thoughts, a block
// that only one provider knows, a branch that was left and has a compaction, a subagent,
// and a call that was interrupted. Every text in it is there once.
type fixture struct {
	id   string
	sub  string   // the session of the subagent
	gone []string // what the model must not be sent: it was summarised, or is on the other branch
}

// writeFixture writes the conversation into a store.
func writeFixture(ctx context.Context, st store.Store, cwd string) (*fixture, error) {
	// So long ago that programs which delete what is old would have done so.
	t := &teller{clock: time.Now().AddDate(0, 0, -100).Truncate(time.Second)}
	s, err := session.Create(ctx, st, session.Header{CWD: cwd}, t.options())
	if err != nil {
		return nil, err
	}
	defer s.Close()
	t.s = s
	f := &fixture{id: s.ID(), gone: []string{"where the saw is kept", "In the cellar, I think", "left hook", "the attic instead", "the attic is locked", "The attic was given up", "Try the loft"}}
	t.do(s.AppendModelChange("anthropic", "claude-sonnet-4-5"))
	t.do(s.AppendSessionInfo("The shed"))
	t.user(session.Text("Find out where the saw is kept."))
	t.answer(session.Text("In the cellar, I think."), session.ToolUse("call_cellar", "Read", map[string]any{"file_path": cwd + "/cellar.txt"}))
	t.result("call_cellar", "the saw hangs on the left hook")
	kept := t.user(session.Text("Count the planks in both sheds, please."))
	t.answer(
		session.Thinking("two sheds, two counts", "c2lnbmF0dXJl"),
		session.Text("Counting both at once."),
		session.ToolUse("call_north|fc_1", "Bash", map[string]any{"command": "ls north | wc -l", "timeout": 5}),
		session.ToolUse("call_south|fc_2", "Bash", map[string]any{"command": "ls south | wc -l"}),
	)
	t.result("call_north|fc_1", "north has 17 planks")
	t.result("call_south|fc_2", "south has 23 planks")
	t.answer(session.Text("There are 40 planks in all."))
	t.do(s.AppendCompaction("Earlier, the saw was found.", kept, 1200))
	t.user(session.Text("This is the gate that I want to build."), session.Image("image/png", picture()))
	at := t.answer(
		session.Content{Type: "web_search_call", Raw: []byte(`{"type":"web_search_call","id":"ws_1","status":"completed"}`)},
		session.Text("A nice gate; it needs 12 planks."),
	)

	t.user(session.Text("Look into the attic instead."))
	t.answer(session.Text("But the attic is locked."))
	t.do(s.AppendCompaction("The attic was given up.", "", 300))
	t.user(session.Text("Try the loft."))
	t.do("", s.Branch(at))

	t.user(session.Text("Let a helper measure the posts."))
	t.answer(session.ToolUse("call_helper", "Agent", map[string]any{"description": "measure", "prompt": "Measure the posts.", "subagent_type": "general-purpose"}))
	f.sub = t.subagent(ctx, st, s, cwd)
	t.result("call_helper", "the posts are 180 cm high")
	t.answer(session.Text("The posts are high enough."))
	t.user(session.Text("Then saw the first plank."))
	t.answer(session.Text("Sawing now."), session.ToolUse("call_saw", "Bash", map[string]any{"command": "saw --length 180"}))
	t.user(session.Text("Stop, it rains. We go on tomorrow."))
	t.answer(session.Text("Stopped; the plank is half sawn."))
	return f, t.err
}

// teller writes a conversation. Its clock goes on with every entry; the first error ends
// it.
type teller struct {
	s     *session.Session
	clock time.Time
	n     int
	err   error
}

func (t *teller) options() *session.Options {
	return &session.Options{Now: func() time.Time {
		t.clock = t.clock.Add(time.Second)
		return t.clock
	}}
}

func (t *teller) do(id string, err error) string {
	if t.err == nil {
		t.err = err
	}
	return id
}

func (t *teller) message(m *session.MessageEntry) string {
	if t.err != nil {
		return ""
	}
	return t.do(t.s.AppendEntry(session.Entry{Type: session.TypeMessage, Message: m}))
}

func (t *teller) user(content ...session.Content) string {
	return t.message(&session.MessageEntry{Role: session.RoleUser, Content: content})
}

func (t *teller) answer(content ...session.Content) string {
	t.n++
	return t.message(&session.MessageEntry{
		Role: session.RoleAssistant, Content: content, Provider: "anthropic", Model: "claude-sonnet-4-5",
		ResponseID: fmt.Sprintf("msg_fixture%03d", t.n), Usage: &session.Usage{Input: 100, Output: 10},
	})
}

func (t *teller) result(call, text string) string {
	return t.message(&session.MessageEntry{Role: session.RoleTool, Content: []session.Content{session.ToolResult(call, text, false)}})
}

// subagent writes the session of the subagent and returns its id.
func (t *teller) subagent(ctx context.Context, st store.Store, parent *session.Session, cwd string) string {
	if t.err != nil {
		return ""
	}
	h := session.Header{CWD: cwd, ParentSession: parent.ID(), Relation: session.RelationSubagent}
	sub, err := session.Create(ctx, st, h, t.options())
	if err != nil {
		return t.do("", err)
	}
	defer sub.Close()
	t.s = sub
	defer func() { t.s = parent }()
	t.user(session.Text("Measure the posts."))
	t.answer(session.Text("Measured: the posts are 180 cm high."))
	return sub.ID()
}

// picture is a small image, as base64.
func picture() string {
	img := image.NewRGBA(image.Rect(0, 0, 16, 16))
	for i := range 16 {
		img.Set(i, i, color.RGBA{0x88, 0x44, 0x22, 0xff})
		img.Set(15-i, i, color.RGBA{0x88, 0x44, 0x22, 0xff})
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img) // a buffer takes everything
	return base64.StdEncoding.EncodeToString(b.Bytes())
}
