package ipc

import (
	"context"
	"encoding/json"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// The messages of the tagged protocol that are about the model. Its answer comes in pieces while
// other requests are answered.
type (
	initialize struct {
		DemoMode bool `json:"demo_mode"`
		// The rest is optional: the model and the tools of the queries that follow.
		home.ChatRequest
	}
	initialized struct {
		Type     string `json:"type"`
		DemoMode bool   `json:"demo_mode"`
	}
	query struct {
		Query string `json:"query"`
	}
	toolApprove struct {
		ToolID   string `json:"tool_id"`
		Approved bool   `json:"approved"`
		// The rest is optional: why not, for the model, and which rules allow other calls from
		// now on, until the query ends.
		Reason string   `json:"reason,omitempty"`
		Rules  []string `json:"rules,omitempty"`
	}

	streamToken struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	streamReset struct {
		Type string `json:"type"`
	}
	streamComplete struct {
		Type      string `json:"type"`
		SessionID string `json:"session_id"`
		Content   string `json:"content"` // what the model said last, whole
		Stop      string `json:"stop"`
		// MessageCount is missing if it is not known.
		MessageCount *int `json:"message_count,omitempty"`
	}
	toolRequestApproval struct {
		Type   string          `json:"type"`
		ToolID string          `json:"tool_id"`
		Tool   string          `json:"tool"`
		Input  json.RawMessage `json:"input"`
		Reason string          `json:"reason,omitempty"`
		Dir    string          `json:"dir,omitempty"` // where it would work
		// Rules would allow it and calls like it; NoRules is why there are none.
		Rules   []string      `json:"rules,omitempty"`
		NoRules string        `json:"no_rules,omitempty"`
		Edits   []render.Edit `json:"edits,omitempty"` // the changes to files that it would make
	}
	toolResult struct {
		Type    string `json:"type"`
		ToolID  string `json:"tool_id"`
		Tool    string `json:"tool"`
		Content string `json:"content"`
		Success bool   `json:"success"`
	}
)

// runningQuery is a query that is under way.
type runningQuery struct {
	session string // "" until it is created
	asked   string // the call about which it asks, or ""
}

// initialize sets the model and the tools of the queries that follow.
func (c *conn) initialize(_ context.Context, line []byte) (any, error) {
	var r initialize
	if err := read(line, &r); err != nil {
		return nil, err
	}
	if r.DemoMode {
		r.Provider, r.Model = offline.Name, offline.ModelName
	}
	r.Session = "" // session_load chooses it
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tagged.chat = r.ChatRequest
	return initialized{"initialized", r.DemoMode}, nil
}

// query says something in the current session, or in a new one, and lets the model answer.
func (c *conn) query(ctx context.Context, line []byte) (any, error) {
	var r query
	if err := read(line, &r); err != nil {
		return nil, err
	}
	return nil, c.runTurn(ctx, "query", func(ctx context.Context, o home.TurnOptions, send func(home.TurnEvent) error) (*home.TurnResult, error) {
		return c.server.home.Turns.Prompt(ctx, home.PromptRequest{TurnOptions: o, Text: r.Query}, send)
	})
}

// toolApprove decides about a call. If the turn that asked has ended in the meantime, it
// continues.
func (c *conn) toolApprove(ctx context.Context, line []byte) (any, error) {
	var r toolApprove
	if err := read(line, &r); err != nil {
		return nil, err
	}
	approve := home.ApproveRequest{Session: c.turnSession(), Call: r.ToolID, Decision: agent.Deny, Reason: r.Reason, Rules: r.Rules}
	if r.Approved {
		approve.Decision = agent.Allow
	}
	if approve.Session == "" {
		return nil, invalid("", "there is no session: send query or session_load first")
	}
	done, err := c.server.home.Turns.Approve(ctx, approve)
	if err != nil || done.Running {
		return nil, err
	}
	return nil, c.runTurn(ctx, "tool_approve", func(ctx context.Context, o home.TurnOptions, send func(home.TurnEvent) error) (*home.TurnResult, error) {
		return c.server.home.Turns.Resume(ctx, home.ResumeTurnRequest{TurnOptions: o}, send)
	})
}

// turnSession returns the session of the query under way, or else the current one.
func (c *conn) turnSession() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tagged.turn != nil && c.tagged.turn.session != "" {
		return c.tagged.turn.session
	}
	return c.tagged.session
}

// runTurn lets the model work beside other requests. Only one query at a time: without ids,
// a client could not tell the pieces of two answers apart.
func (c *conn) runTurn(ctx context.Context, request string, take func(context.Context, home.TurnOptions, func(home.TurnEvent) error) (*home.TurnResult, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tagged.turn != nil {
		return &home.ErrorInfo{
			Kind: home.KindLocked, Message: "a query is under way on this connection",
			Hint: "wait for stream_complete, or use turns.steer to tell the model more and turns.cancel to stop it",
		}
	}
	turn := &runningQuery{session: c.tagged.session}
	c.tagged.turn = turn
	options := home.TurnOptions{ChatRequest: c.tagged.chat}
	options.Session = turn.session
	c.work.Go(func() {
		answer, err := c.guarded(request, func() (any, error) {
			result, err := take(ctx, options, func(e home.TurnEvent) error { return c.sendEvent(ctx, turn, &e) })
			if err != nil {
				return nil, err
			}
			return c.complete(ctx, result), nil
		})
		c.mu.Lock()
		c.tagged.turn = nil
		c.mu.Unlock()
		if err != nil {
			answer = taggedFailure(request, err)
		}
		c.write(answer)
	})
	return nil
}

// sendEvent passes on an event of a turn.
func (c *conn) sendEvent(ctx context.Context, turn *runningQuery, e *home.TurnEvent) error {
	if err := c.announceSession(ctx, turn, e.Session); err != nil {
		return err
	}
	var m any
	switch {
	case e.Type == agent.MessageUpdate && e.Update.Type == provider.EventText:
		m = streamToken{"stream_token", e.Update.Text}
	case e.Type == agent.MessageDropped:
		m = streamReset{"stream_reset"}
	case e.Type == agent.ToolWaiting:
		q := e.Question
		m = toolRequestApproval{"tool_request_approval", e.Call.ID, e.Call.Name, e.Call.Input, e.Call.Reason, q.Dir, q.Rules, q.NoRules, q.Edits}
		c.asks(ctx, turn, e.Call.ID)
	case e.Type == agent.ToolEnd:
		m = toolResult{"tool_result", e.Call.ID, e.Call.Name, textOf(e.Result), !e.Result.IsError}
		c.asks(ctx, turn, "")
	case e.Type == home.TurnNotice:
		c.server.notify(*e.Notice)
	}
	if m == nil {
		return nil
	}
	return c.out.send(ctx, encode(m))
}

func textOf(r *agent.Result) string {
	if len(r.Parts) > 0 {
		return session.TextOf(r.Parts)
	}
	return r.Text
}

// announceSession tells the client about a session that the query has created.
func (c *conn) announceSession(ctx context.Context, turn *runningQuery, made string) error {
	c.mu.Lock()
	if turn.session != "" || made == "" {
		c.mu.Unlock()
		return nil
	}
	turn.session = made
	if c.tagged.session == "" { // the client may have chosen another one in the meantime
		c.tagged.session = made
	}
	c.mu.Unlock()
	return c.out.send(ctx, encode(sessionCreated{"session_created", made}))
}

// asks records the call about which the turn asks. If no more requests are read, it can only
// be decided later.
func (c *conn) asks(ctx context.Context, turn *runningQuery, call string) {
	c.mu.Lock()
	turn.asked = call
	drained := c.drained
	c.mu.Unlock()
	if drained {
		c.leaveUndecided(ctx, turn)
	}
}

// leaveUndecided ends a turn that waits for a decision which this client can no longer send. The
// question stays in the log.
func (c *conn) leaveUndecided(ctx context.Context, turn *runningQuery) {
	c.mu.Lock()
	r := home.ApproveRequest{Session: turn.session, Call: turn.asked, Decision: agent.Later}
	c.mu.Unlock()
	if r.Call != "" {
		_, _ = c.server.home.Turns.Approve(ctx, r) // another client may have decided
	}
}

// complete is the last message of a query.
func (c *conn) complete(ctx context.Context, result *home.TurnResult) streamComplete {
	m := streamComplete{Type: "stream_complete", SessionID: result.Session, Stop: result.Stop}
	if result.Message != nil {
		m.Content = session.TextOf(result.Message.Content)
	}
	if messages, err := c.messages(ctx, result.Session); err == nil {
		m.MessageCount = &messages
	}
	return m
}
