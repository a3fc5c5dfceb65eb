package home

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/lease"
	"github.com/coppice-dev/coppice/window"
)

// Card is what a person needs to take up a conversation again: what was asked, what was done,
// what is open, and where it ended.
//
// The index knows the counts. The rest comes from the last entries of the path to the leaf, so a
// long conversation costs as little as a short one: Read is how many were read, and Whole says
// that there are no others.
type Card struct {
	Session SessionInfo `json:"session"`
	First   string      `json:"first,omitempty"` // what the user asked first, in a line
	Last    string      `json:"last,omitempty"`  // what the user asked last, in a line
	// Answer is the beginning of what the model said last, and AnswerEntry the entry that has
	// all of it.
	Answer      string `json:"answer,omitempty"`
	AnswerEntry string `json:"answer_entry,omitempty"`
	// Step is the last call of a tool.
	Step *CardStep `json:"step,omitempty"`
	// Todos are the items of the last list with which an agent planned its work.
	Todos []CardTodo `json:"todos"`
	// Open are the calls without a result, at most 20 of them. Unfinished says that the
	// conversation waits for the model, or for one of those; it is false while a program works
	// there, because then it is not known.
	Open       []CardStep `json:"open"`
	Unfinished bool       `json:"unfinished"`
	// Asked is the call about which a turn of this home asks now, and Working the program that
	// has a turn there.
	Asked   *agent.Call   `json:"asked,omitempty"`
	Working *lease.Holder `json:"working,omitempty"`
	// Files are the files that were changed, the latest first.
	Files []CardFile `json:"files"`
	Spent Usage      `json:"spent"`
	// Model answered last. Window is the size of its window in tokens, if that is known:
	// Session.Context says how much of it is full.
	Model  string `json:"model,omitempty"`
	Window int64  `json:"window,omitempty"`

	Read  int  `json:"read"`
	Whole bool `json:"whole"`
}

// CardStep is a call of a tool.
type CardStep struct {
	Entry   string          `json:"entry"` // the message that has the call
	Tool    string          `json:"tool"`
	Gist    string          `json:"gist"`              // the call in a line
	Outcome string          `json:"outcome,omitempty"` // the result in a line; "" if there is none
	Failed  bool            `json:"failed"`            // the result is an error
	State   agent.CallState `json:"state,omitempty"`   // of a call without a result: how far it has come
}

// CardTodo is an item of a list with which an agent plans its work.
type CardTodo struct {
	Text  string           `json:"text"`
	State render.TodoState `json:"state"` // open, active or done
}

// CardFile is a file that was changed.
type CardFile struct {
	Path    string `json:"path"`
	Changes int    `json:"changes"` // how many calls changed it
	Entry   string `json:"entry"`   // the message with the last of them
}

// How much a card reads and says.
const (
	cardEntries = 400
	cardBytes   = 1 << 20
	cardBegin   = 64 // lines, in which the first prompt is looked for
	cardLine    = 500
	cardAnswer  = 2000
	cardOpen    = 20
	cardFiles   = 200
)

// Card returns what a person needs to take up a conversation again.
func (s *Sessions) Card(ctx context.Context, r SessionRequest) (*Card, error) {
	return call(ctx, s.home, "sessions.card", r, s.card)
}

func (s *Sessions) card(ctx context.Context, r SessionRequest) (*Card, error) {
	h := s.home
	ctx = h.catchUpOnce(ctx)
	found, err := h.indexed(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	ix, err := h.index(ctx)
	if err != nil {
		return nil, err
	}
	spent, err := usageOf(ctx, ix, found.ID)
	if err != nil {
		return nil, err
	}
	c, err := h.openListed(ctx, found)
	if err != nil {
		return nil, err
	}
	card := &Card{Session: sessionInfo(found), Spent: *spent, Todos: []CardTodo{}, Open: []CardStep{}, Files: []CardFile{}}
	err = card.read(ctx, h, c)
	return card, errors.Join(err, c.Close())
}

// read fills in the fields that the index does not have.
func (card *Card) read(ctx context.Context, h *Home, c *Conversation) error {
	end, err := card.readEnd(c.Session)
	if err != nil {
		return err
	}
	card.addEnd(end)
	card.Window = int64(h.settings.family(card.Model).Window)
	if card.First, err = firstAsked(ctx, h.store, c); err != nil {
		return err
	}
	card.Working, err = c.working(ctx)
	if card.Asked = h.turns.get(c.Handle).status(c.Handle).Asked; card.Working != nil {
		card.Unfinished = false
	}
	return err
}

// quiet returns a context without notices.
func quiet(ctx context.Context) context.Context {
	return WithProgress(WithNotify(ctx, func(Notice) {}), func(string, int64, int64) {})
}

// openListed opens a conversation that the index has. The index knows whether it has several
// sessions; without it, all of the log would have to be read to find that out.
func (h *Home) openListed(ctx context.Context, s *index.Session) (*Conversation, error) {
	if s.Links > 1 || len(s.Missing) > 0 || s.ContinuedTo != "" || s.Relation == session.RelationContinuation {
		return h.openFor(quiet(ctx), OpenRequest{Session: s.ID})
	}
	c, err := h.openSession(ctx, s.Name, session.Linked{})
	if err == nil {
		c.Session = c.Session.WithContext(ctx)
	}
	return c, err
}

// readEnd returns the last entries of the path.
func (card *Card) readEnd(s *session.Session) ([]session.Entry, error) {
	var end []session.Entry
	card.Whole = true
	bytes := 0
	for e, err := range s.Path("") {
		if err != nil {
			return nil, err
		}
		if len(end) == cardEntries || bytes > cardBytes {
			card.Whole = false
			break
		}
		if e.Message != nil {
			for i := range e.Message.Content {
				bytes += lengthOf(&e.Message.Content[i])
			}
		}
		end = append(end, e)
	}
	slices.Reverse(end)
	card.Read = len(end)
	return end, nil
}

// lengthOf returns the length of a block's text, which is nearly all of its size.
func lengthOf(c *session.Content) int {
	switch {
	case c.Text != nil:
		return len(c.Text.Content)
	case c.Thinking != nil:
		return len(c.Thinking.Content)
	case c.ToolResult != nil:
		return len(c.ToolResult.Content)
	}
	return 0
}

// addEnd fills in the fields that come from the last entries.
func (card *Card) addEnd(end []session.Entry) {
	var pairs session.Pairs
	for i := range end {
		e := &end[i]
		pairs.Add(e)
		if e.Message == nil {
			continue
		}
		if title := index.TitleIn(e); title.IsSettled() && e.Message.Role == session.RoleUser {
			card.Last = render.OneLine(title.Text, cardLine)
		}
		if e.Message.Role == session.RoleAssistant {
			card.addAnswer(e)
		}
	}
	refs := pairs.Refs()
	for i := range refs {
		if refs[i].Call {
			card.addStep(refs, i, end)
		}
	}
	slices.Reverse(card.Files)
	card.Files = card.Files[:min(len(card.Files), cardFiles)]
	calls, open := agent.Left(end)
	card.Unfinished = open
	for _, p := range calls[max(len(calls)-cardOpen, 0):] {
		step := CardStep{Entry: p.Entry, Tool: p.Name, State: p.State}
		for i := range refs {
			if use := useOf(refs[i], end); use != nil && refs[i].ID == p.ID && end[refs[i].Entry].ID == p.Entry {
				step.Gist = render.OneLine(render.CallGist(use), cardLine)
			}
		}
		card.Open = append(card.Open, step)
	}
}

func useOf(ref session.Ref, end []session.Entry) *session.ToolUseContent {
	if !ref.Call {
		return nil
	}
	return end[ref.Entry].Message.Content[ref.Block].ToolUse
}

func (card *Card) addAnswer(e *session.Entry) {
	if e.Message.Model != "" && e.Message.Model != card.Model {
		card.Model = e.Message.Model
	}
	var texts []string
	for i := range e.Message.Content {
		if t := e.Message.Content[i].Text; t != nil && strings.TrimSpace(t.Content) != "" {
			texts = append(texts, strings.TrimSpace(t.Content))
		}
	}
	if len(texts) > 0 {
		card.Answer, card.AnswerEntry = clipped(strings.Join(texts, "\n\n"), cardAnswer), e.ID
	}
}

// clipped returns the beginning of a text.
func clipped(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	beginning, _ := window.Ends(text, limit, 0)
	return beginning + "…"
}

// addStep fills in the latest call.
func (card *Card) addStep(refs []session.Ref, at int, end []session.Entry) {
	use, entry := useOf(refs[at], end), end[refs[at].Entry].ID
	if use == nil {
		return
	}
	if todos := render.Todos(use); todos != nil {
		card.Todos = card.Todos[:0]
		for _, t := range todos {
			card.Todos = append(card.Todos, CardTodo{render.OneLine(t.Text, cardLine), t.State})
		}
	}
	card.Step = &CardStep{Entry: entry, Tool: use.Name, Gist: render.OneLine(render.CallGist(use), cardLine)}
	if refs[at].Pair == session.NoPair {
		return
	}
	answer := refs[refs[at].Pair]
	result := end[answer.Entry].Message.Content[answer.Block].ToolResult
	card.Step.Failed = result.IsError
	card.Step.Outcome = render.OneLine(clipped(result.Content, 4*cardLine), cardLine)
	if result.IsError {
		return // it changed nothing
	}
	_, changed := files.Touched(use)
	for _, path := range changed {
		changes := 1
		if had := slices.IndexFunc(card.Files, func(f CardFile) bool { return f.Path == path }); had >= 0 {
			changes += card.Files[had].Changes
			card.Files = slices.Delete(card.Files, had, had+1)
		}
		card.Files = append(card.Files, CardFile{Path: path, Changes: changes, Entry: entry})
	}
}

// firstAsked returns the user's first prompt, if it is among the first lines of the log.
func firstAsked(ctx context.Context, st store.Store, c *Conversation) (string, error) {
	name := c.Handle
	if len(c.Chain.Links) > 0 {
		name = c.Chain.Links[0]
	}
	log, err := st.Open(ctx, name)
	if err != nil {
		return "", err
	}
	lines, best := 0, index.Title{}
	for line, err := range log.Forward(ctx, 0) {
		if err != nil || lines == cardBegin || line.Pos > cardBytes {
			break // what was asked first only adds to the card
		}
		lines++
		var e session.Entry
		if e.UnmarshalJSON(line.Data) != nil || e.Message == nil || e.Message.Role != session.RoleUser {
			continue
		}
		c.Fill(&e)
		if best = index.BetterTitle(best, index.TitleIn(&e)); best.IsSettled() {
			break
		}
	}
	return render.OneLine(best.Text, cardLine), errors.Join(ctx.Err(), log.Close())
}
