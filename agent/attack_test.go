package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

// TestHookThatFails: what runs while somebody is asked gets its result, and the other call
// still waits.
func TestHookThatFails(t *testing.T) {
	t.Parallel()
	risky := echo("risky")
	risky.Ask = agent.AskAlways
	begun, asked := make(chan bool), make(chan bool)
	one := echo("one")
	one.Run = func(context.Context, agent.Call) (agent.Result, error) {
		close(begun)
		<-asked
		return agent.Result{Text: "1"}, nil
	}
	nobody := errors.New("nobody is there")
	a := start(t, agent.Options{Tools: []agent.Tool{one, risky}, Approve: func(context.Context, agent.Call) (agent.Decision, error) {
		defer close(asked)
		<-begun
		return agent.Allow, nobody
	}})
	_, err := a.Send(t.Context(), session.Text("call one {}\ncall risky {\"text\":\"2\"}"))
	if !errors.Is(err, nobody) {
		t.Errorf("the hook's error is lost: %v", err)
	}
	if pending, err := a.Pending(); err != nil || len(pending) != 1 || pending[0].Name != "risky" || pending[0].State != agent.CallWaiting {
		t.Errorf("pending: %+v, %v", pending, err)
	}
}

// TestApprovalThatBlocks: a hook that does not notice that the turn was cancelled holds nobody
// up, and its late decision does not count.
func TestApprovalThatBlocks(t *testing.T) { synctest.Test(t, approvalThatBlocks) }

func approvalThatBlocks(t *testing.T) {
	risky := echo("risky")
	risky.Ask = agent.AskAlways
	risky.Run = func(context.Context, agent.Call) (agent.Result, error) { panic("nobody waited for that") }
	release := make(chan bool)
	ctx, cancel := context.WithCancel(t.Context())
	a := start(t, agent.Options{Tools: []agent.Tool{risky}, Approve: func(context.Context, agent.Call) (agent.Decision, error) {
		cancel()
		<-release
		return agent.Allow, nil
	}})
	_, err := a.Send(ctx, session.Text("call risky {}"))
	close(release)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if pending, err := a.Pending(); err != nil || len(pending) != 1 || pending[0].State != agent.CallWaiting {
		t.Errorf("pending: %+v, %v", pending, err)
	}
}

// TestStateOfACallWithAnOldID: a call has the id of an earlier one, which was running. This
// one never started.
func TestStateOfACallWithAnOldID(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	call := []session.Content{session.ToolUse("c", "one", map[string]any{"text": "1"})}
	for range 2 {
		_, err := s.AppendMessage(session.RoleAssistant, call)
		if err == nil {
			_, err = s.AppendCustomEntry(session.CustomCalls, map[string]any{"state": "running", "calls": []any{"c"}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.AppendMessage(session.RoleAssistant, call); err != nil {
		t.Fatal(err)
	}
	pending, err := startIn(t, s, agent.Options{Tools: []agent.Tool{echo("one")}}).Pending()
	if err != nil || len(pending) == 0 || pending[len(pending)-1].State != agent.CallNew {
		t.Errorf("pending: %+v, %v", pending, err)
	}
}

// TestOddResults: whatever a tool returns, the call gets a result that every provider takes,
// and the other calls get theirs.
func TestOddResults(t *testing.T) {
	t.Parallel()
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	long := strings.Repeat("0123456789", 1000)
	results := map[string]agent.Result{
		"nothing": {},
		"image":   {Parts: []session.Content{session.Text("a picture"), session.Image("image/png", pixel)}},
		"noname":  {Parts: []session.Content{{}}},
		"call":    {Parts: []session.Content{session.ToolUse("x", "one", nil)}},
		"result":  {Parts: []session.Content{session.ToolResult("x", "one", false)}},
		"thought": {Parts: []session.Content{{Type: session.ContentTypeThinking, Thinking: &session.ThinkingContent{Content: "hm"}}}},
		"empty":   {Parts: []session.Content{session.Text("")}},
		"binary":  {Text: "\xff\xfe\x00\x1b[31m"},
		"parts":   {Parts: []session.Content{session.Text(long), session.Text(long), session.Text(long)}},
	}
	var tools []agent.Tool
	for name, result := range results {
		tool := echo(name)
		tool.Run = func(context.Context, agent.Call) (agent.Result, error) { return result, nil }
		tools = append(tools, tool)
	}
	slices.SortFunc(tools, func(a, b agent.Tool) int { return strings.Compare(a.Name, b.Name) })
	gone := echo("gone")
	gone.Run = func(context.Context, agent.Call) (agent.Result, error) {
		runtime.Goexit()
		return agent.Result{}, nil
	}
	failing := echo("failing")
	failing.Run = func(context.Context, agent.Call) (agent.Result, error) {
		return agent.Result{Parts: []session.Content{session.Text("so far")}}, errors.New("no further")
	}
	tools = append(tools, gone, failing)
	answer := func(r *providertest.Request) providertest.Answer {
		m := session.MessageEntry{Role: session.RoleAssistant, StopReason: provider.StopEndTurn, Content: []session.Content{session.Text("done")}}
		if steps(r) == 0 {
			m.Content, m.StopReason = nil, provider.StopToolUse
			for i := range tools {
				m.Content = append(m.Content, session.ToolUse("call_"+tools[i].Name, tools[i].Name, map[string]any{}))
			}
		}
		return providertest.Answer{Message: m}
	}
	dialects(t, answer, func(t *testing.T, _ *providertest.Server, model provider.Model) {
		a := start(t, agent.Options{Model: model, Tools: tools, MaxOutput: 2000})
		if out := send(t, a, "go"); out.Steps != 2 {
			t.Errorf("%+v", out)
		}
		check(t, a.Session())
		entries, err := a.Session().GetContext()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range entries {
			if entries[i].Message == nil || entries[i].Message.Role != session.RoleTool {
				continue
			}
			n++
			r := entries[i].Message.Content[0].ToolResult
			fails := slices.Contains([]string{"call_noname", "call_call", "call_result", "call_thought", "call_gone", "call_failing"}, r.ToolUseID)
			if r.IsError != fails || len(r.Content) > 2500 {
				t.Errorf("%s: an error: %t, %d bytes: %.100q", r.ToolUseID, r.IsError, len(r.Content), r.Content)
			}
			if r.ToolUseID == "call_image" && (len(r.Parts) != 2 || r.Parts[1].Image == nil) {
				t.Errorf("the image is lost: %+v", r.Parts)
			}
		}
		if n != len(tools) {
			t.Errorf("%d results of %d", n, len(tools))
		}
	})
}

// rich is a turn with everything in it: parallel calls, one that must be approved, one that
// there is no tool for, and a compaction.
func rich(t *testing.T, s *session.Session, overflows bool) *agent.Agent {
	risky := echo("risky")
	risky.Ask = agent.AskAlways
	alone := echo("alone")
	alone.Alone = true
	said := 0
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(ctx context.Context, r *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
		said++
		if err := errors.Join(tell("I "), tell("think "), tell("so. ")); err != nil {
			return nil, err
		}
		last := r.Entries[len(r.Entries)-1].Message
		switch {
		case overflows && said == 1:
			return nil, &provider.Error{Kind: provider.ErrOverflow, Provider: "p"}
		case last.Role == session.RoleUser:
			m := &session.MessageEntry{Content: []session.Content{session.Text("I think so. ")}}
			for _, name := range []string{"one", "one", "risky", "alone", "missing"} {
				id := fmt.Sprintf("c%d", len(m.Content))
				m.Content = append(m.Content, session.ToolUse(id, name, map[string]any{"text": id}))
			}
			return m, nil
		}
		return nil, nil
	}}
	a, err := agent.New(s, agent.Options{
		Model: model, Tools: []agent.Tool{echo("one"), risky, alone}, Draft: 1, System: "be brief", RetryWait: 1,
		Compaction: agent.Compaction{Keep: 20, Model: &offline.Model{}},
		Approve:    func(context.Context, agent.Call) (agent.Decision, error) { return agent.Allow, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// earlier puts a conversation into a session, so that there is something to compact.
func earlier(t *testing.T, s *session.Session) {
	t.Helper()
	for i := range 4 {
		_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(fmt.Sprint(i, strings.Repeat(" words and words", 10)))})
		if err == nil {
			_, err = s.AppendMessage(session.RoleAssistant, []session.Content{session.Text("yes")})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// finish resumes a session with an agent that has no faults, and holds the log to what must
// be true of it.
func finish(t *testing.T, s *session.Session) {
	t.Helper()
	a := rich(t, s, false)
	defer a.Close()
	if _, err := a.Resume(t.Context()); err != nil {
		t.Errorf("resume: %v", err)
	}
	if pending, err := a.Pending(); err != nil || len(pending) > 0 {
		t.Errorf("pending: %v, %v", pending, err)
	}
	if _, err := a.Send(t.Context(), session.Text("go on")); err != nil {
		t.Errorf("the next turn: %v", err)
	}
	check(t, s)
}

// TestCancelAtEveryEvent cancels a rich turn when its k-th event is published, for all k.
func TestCancelAtEveryEvent(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for k := 1; ; k++ {
		s := newSession(t)
		earlier(t, s)
		a := rich(t, s, true)
		ctx, cancel := context.WithCancelCause(t.Context())
		news := a.Subscribe(1 << 16)
		var heard sync.WaitGroup
		n := 0
		heard.Go(func() {
			for range news.Events(context.Background()) {
				if n++; n == k {
					cancel(enough)
				}
			}
		})
		out, err := a.Send(ctx, session.Text("go"))
		if err != nil && !errors.Is(err, enough) {
			t.Fatalf("cancelled at event %d: %v", k, err)
		}
		if err == nil && out.Stop != provider.StopEndTurn {
			t.Errorf("cancelled at event %d: %+v", k, out)
		}
		_ = a.Close()
		heard.Wait()
		cancel(nil)
		finish(t, s)
		if t.Failed() {
			t.Fatalf("cancelled at event %d of %d: %s", k, n, strings.Join(said(t, s), "\n"))
		}
		if n < k {
			t.Logf("%d events", n)
			return
		}
	}
}

// TestCloseAtEveryEvent closes the agent instead.
func TestCloseAtEveryEvent(t *testing.T) {
	t.Parallel()
	for k := 1; ; k += 3 {
		s := newSession(t)
		earlier(t, s)
		a := rich(t, s, true)
		news := a.Subscribe(1 << 16)
		var heard sync.WaitGroup
		n, last := 0, agent.Event{}
		heard.Go(func() {
			for last = range news.Events(context.Background()) {
				if n++; n == k {
					heard.Go(func() { _ = a.Close() })
				}
			}
		})
		if _, err := a.Send(t.Context(), session.Text("go")); err != nil && !errors.Is(err, agent.ErrClosed) {
			t.Fatalf("closed at event %d: %v", k, err)
		}
		_ = a.Close()
		heard.Wait()
		if last.Type != agent.TurnEnd {
			t.Errorf("closed at event %d: the last event is %s", k, last.Type)
		}
		if _, err := a.Send(t.Context(), session.Text("more")); !errors.Is(err, agent.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if err := a.SetThinking("low"); !errors.Is(err, agent.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		finish(t, s)
		if n < k || t.Failed() {
			return
		}
	}
}

// TestEveryWriteFails has a disk fail at the n-th write or sync of a turn, for all n: once,
// or from then on. The turn says so or gets through, and when the session is opened again,
// it goes on.
func TestEveryWriteFails(t *testing.T) {
	t.Parallel()
	for _, kind := range []vfstest.OpKind{vfstest.OpWrite, vfstest.OpSync} {
		for _, fail := range []func(int64, vfstest.OpKind, error) func(vfstest.Op) error{vfstest.FailAt, vfstest.FailFrom} {
			for n := int64(1); n < 200; n++ {
				faulty := &vfstest.Faulty{FS: vfstest.NewMemory()}
				st, err := file.Open("/store", &file.Options{FS: faulty})
				if err != nil {
					t.Fatal(err)
				}
				s, err := session.Create(t.Context(), st, session.Header{ID: "s"}, nil)
				if err != nil {
					t.Fatal(err)
				}
				earlier(t, s)
				a := rich(t, s, true)
				before := faulty.Count(kind)
				faulty.Before = fail(n, kind, syscall.ENOSPC)
				_, err = a.Send(t.Context(), session.Text("go"))
				reached := faulty.Count(kind)-before >= n
				_ = a.Close()
				_ = s.Close()
				faulty.Before = nil
				if err == nil && reached && kind == vfstest.OpSync {
					t.Errorf("the sync %d failed, and nobody heard of it", n)
				}
				again := open(t, st, "s")
				finish(t, again)
				if t.Failed() {
					t.Fatalf("%s %d failed, and Send returned %v:\n%s", kind, n, err, strings.Join(said(t, again), "\n"))
				}
				_ = again.Close()
				_ = st.Close()
				if !reached {
					break
				}
			}
		}
	}
}

// TestClosedSession: the session is closed under the agent.
func TestClosedSession(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	one := echo("one")
	one.Run = func(context.Context, agent.Call) (agent.Result, error) {
		return agent.Result{Text: "done"}, s.Close()
	}
	a := startIn(t, s, agent.Options{Tools: []agent.Tool{one}})
	if _, err := a.Send(t.Context(), session.Text("call one {}")); !errors.Is(err, session.ErrClosed) {
		t.Errorf("err = %v", err)
	}
	_, sendErr := a.Send(t.Context(), session.Text("hello"))
	_, statusErr := a.Status()
	_, pendingErr := a.Pending()
	_, unfinishedErr := a.Unfinished()
	_, compactErr := a.Compact(t.Context(), "")
	for what, err := range map[string]error{
		"Send": sendErr, "Status": statusErr, "Pending": pendingErr, "Unfinished": unfinishedErr, "Compact": compactErr,
		"Undo": a.Undo(), "Branch": a.Branch(t.Context(), "x", false), "Decide": a.Decide("x", agent.Allow),
	} {
		if !errors.Is(err, session.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestToolThatReturnsTooLate: a tool does not notice that its time is up. The conversation
// goes on without it, and its late result is dropped.
func TestToolThatReturnsTooLate(t *testing.T) { synctest.Test(t, toolThatReturnsTooLate) }

func toolThatReturnsTooLate(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		release := make(chan bool)
		returned := make(chan bool)
		ctx, cancel := context.WithCancel(t.Context())
		late := echo("late")
		late.Timeout = time.Second
		late.Run = func(context.Context, agent.Call) (agent.Result, error) {
			defer close(returned)
			if cancelled {
				cancel()
			}
			<-release
			return agent.Result{Text: "far too late"}, nil
		}
		a := start(t, agent.Options{Tools: []agent.Tool{late}})
		_, err := a.Send(ctx, session.Text("call late {}"))
		if (err != nil) != cancelled {
			t.Errorf("cancelled %v: %v", cancelled, err)
		}
		close(release)
		<-returned
		send(t, a, "and now?")
		all := strings.Join(said(t, a.Session()), "\n")
		want := map[bool]string{false: "took longer than 1s", true: "cancelled by the user"}[cancelled]
		if strings.Contains(all, "far too late") || !strings.Contains(all, want) || !strings.Contains(all, "did not stop") || !strings.Contains(all, "may still be running") {
			t.Errorf("cancelled %v:\n%s", cancelled, all)
		}
		check(t, a.Session())
		cancel()
	}
}

// TestMaxOutputHoldsForAllParts: however a tool cuts its output into pieces, the model gets no
// more than it was meant to.
func TestMaxOutputHoldsForAllParts(t *testing.T) {
	t.Parallel()
	var texts, mixed, images []session.Content
	for range 5000 {
		texts = append(texts, session.Text("word"))
		images = append(images, session.Image("image/png", "iVBORw0KGgo="))
		mixed = append(mixed, session.Text("a picture"), images[0])
	}
	for what, parts := range map[string][]session.Content{"texts": texts, "images": images, "both": mixed} {
		one := echo("one")
		one.Run = func(context.Context, agent.Call) (agent.Result, error) { return agent.Result{Parts: parts}, nil }
		a := start(t, agent.Options{Tools: []agent.Tool{one}, MaxOutput: 500})
		send(t, a, "call one {}")
		for e, err := range a.Session().Entries() {
			if err != nil {
				t.Fatal(err)
			}
			if e.Message == nil || e.Message.Role != session.RoleTool {
				continue
			}
			r := e.Message.Content[0].ToolResult
			if n := len(session.TextOf(r.Parts)); n > 500+40*101 || len(r.Parts) > 201 || !strings.Contains(r.Content, "left out") {
				t.Errorf("%s: %d parts with %d bytes of text: %.200s", what, len(r.Parts), n, r.Content)
			}
		}
	}
}

// TestToolRemovedMeanwhile: a call was running, or waits, and the tool is gone when the
// session is resumed. One that waits for a person waits on, until they decide.
func TestToolRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"new", "waiting", "allowed", "running"} {
		s := newSession(t)
		_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text("go")})
		if err == nil {
			_, err = s.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse("c", "gone", map[string]any{})})
		}
		if err == nil && state != "new" {
			_, err = s.AppendCustomEntry(session.CustomCalls, map[string]any{"state": state, "calls": []any{"c"}})
		}
		if err != nil {
			t.Fatal(err)
		}
		a := startIn(t, s, agent.Options{})
		if state == "waiting" || state == "allowed" {
			if out, err := a.Resume(t.Context()); err != nil || out.Stop != agent.StopApproval || out.Steps != 0 {
				t.Errorf("%s: %+v, %v", state, out, err)
			}
			if err := a.Decide("c", agent.Deny.Because("there is no tool for it")); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := a.Resume(t.Context()); err != nil || out.Steps != 1 {
			t.Errorf("%s: %+v, %v", state, out, err)
		}
		want := map[bool]string{true: "interrupted", false: "no tool"}[state == "running"]
		if all := strings.Join(said(t, s), "\n"); !strings.Contains(all, want) {
			t.Errorf("%s: the model must know that: %s", state, all)
		}
		check(t, s)
	}
}

// TestCancelKeepsTheErrorOfTheLog: a turn is cancelled, and what it leaves cannot be written.
// Both are told.
func TestCancelKeepsTheErrorOfTheLog(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	model := provider.Func{About: provider.Info{Provider: "p", Model: "m"}, Answer: func(ctx context.Context, _ *provider.Request, tell func(string) error) (*session.MessageEntry, error) {
		err := tell("half")
		cancel(enough)
		return nil, errors.Join(err, s.Close(), ctx.Err())
	}}
	a := startIn(t, s, agent.Options{Model: model})
	if _, err := a.Send(ctx, session.Text("hello")); !errors.Is(err, enough) || !errors.Is(err, session.ErrClosed) {
		t.Errorf("err = %v", err)
	}
}

// TestNegativeOptions are refused, those of compactions and tools too.
func TestNegativeOptions(t *testing.T) {
	t.Parallel()
	slow := echo("slow")
	slow.Timeout = -1
	for name, o := range map[string]agent.Options{
		"the reserve":        {Compaction: agent.Compaction{Reserve: -1}},
		"what is kept":       {Compaction: agent.Compaction{Keep: -1}},
		"a tool's time":      {Tools: []agent.Tool{slow}},
		"a tool's arguments": {Tools: []agent.Tool{{Tool: provider.Tool{Name: "a", Schema: json.RawMessage(`[]`)}, Run: echo("a").Run}}},
	} {
		o.Model = &offline.Model{}
		if _, err := agent.New(newSession(t), o); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a := start(t, agent.Options{})
	for what, err := range map[string]error{
		"no model": a.SetModel(nil), "a level": a.SetThinking("hard"), "a tool": a.SetTools(slow),
	} {
		if !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := a.Send(t.Context()); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("an empty message: %v", err)
	}
}

func TestCancelWithACause(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	var a *agent.Agent
	one := echo("one")
	one.Run = func(ctx context.Context, _ agent.Call) (agent.Result, error) {
		a.Cancel(enough)
		<-ctx.Done()
		return agent.Result{Text: "so far"}, context.Cause(ctx)
	}
	a = start(t, agent.Options{Tools: []agent.Tool{one}})
	a.Cancel(enough) // nobody is at work
	if _, err := a.Send(t.Context(), session.Text("call one {}")); !errors.Is(err, enough) {
		t.Errorf("err = %v", err)
	}
	if all := strings.Join(said(t, a.Session()), "\n"); !strings.Contains(all, "so far") || !strings.Contains(all, "cancelled") {
		t.Errorf("the conversation is\n%s", all)
	}
	check(t, a.Session())
}
