package conversation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
	"github.com/coppice-dev/coppice/window"
)

// Chat is one conversation: its messages, and the part of them that is sent to a model. Its
// methods may be called concurrently.
type Chat struct {
	*chatCore
	sessions *Sessions // its context is the chat's
}

// chatCore is what all views of a Chat share.
//
// Locks are taken in this order: the turn of a Manager, order, look, a link's mu, then the
// mutexes that only guard memory (mu here, Sessions.mu, those of the pools). Links of one chain are
// locked from earlier to later.
type chatCore struct {
	window *Window

	order gate.Mutex // held while something is added, so that the prompt comes before the user's first message
	look  gate.Mutex // guards view
	view  view

	mu     sync.Mutex // guards what follows; never held while calling the store
	id     string     // of a session of the conversation; "" until there is one
	prompt string
	title  string // for the session that the first message creates
	config Config // the same
}

// NewChat returns a conversation that has no session yet. The first message creates one, or
// Load finds one.
func NewChat(s *Sessions, w *Window) *Chat { return &Chat{&chatCore{window: w}, s} }

// WithContext returns the same conversation with operations that end when ctx ends: see
// Sessions.WithContext.
func (c *Chat) WithContext(ctx context.Context) *Chat {
	return &Chat{c.chatCore, c.sessions.WithContext(ctx)}
}

// ID returns the id of the conversation as it was created or loaded, or "" if it has no
// session yet.
func (c *Chat) ID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}

// SetSystemPrompt sets the instructions that PrepareConversation sends before anything else.
// They are sent once, and again when they change; new instructions replace the old ones.
func (c *Chat) SetSystemPrompt(prompt string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prompt = prompt
}

// SystemPrompt returns the instructions, and whether they were sent.
func (c *Chat) SystemPrompt() (prompt string, sent bool) {
	c.mu.Lock()
	id, prompt := c.id, c.prompt
	c.mu.Unlock()
	if id == "" || prompt == "" {
		return prompt, false
	}
	l, done, err := c.sessions.end(id, reading)
	if err != nil {
		return prompt, false
	}
	defer done()
	sent, _ = l.hasPrompt(prompt)
	return prompt, sent
}

// SetTitle gives the conversation a title, now or when its session is created.
func (c *Chat) SetTitle(title string) error {
	c.mu.Lock()
	c.title = title
	id := c.id
	c.mu.Unlock()
	if id == "" {
		return nil
	}
	return c.sessions.change("set title", id, func(l *link) ([]session.Entry, error) {
		if l.title == title {
			return nil, nil
		}
		return []session.Entry{session.Name(title)}, nil
	})
}

// Config returns the settings of this conversation.
func (c *Chat) Config() (Config, error) {
	c.mu.Lock()
	id, config := c.id, c.config
	c.mu.Unlock()
	if id == "" {
		return config, nil
	}
	return c.sessions.Config(id)
}

// Configure changes the settings of this conversation, from now on and in every program that
// opens it. If they make no sense, it changes nothing and returns an error that matches
// session.ErrInvalid.
func (c *Chat) Configure(config Config) error {
	if err := config.check(c.window.Options(), c.window.counters); err != nil {
		return err
	}
	c.mu.Lock()
	c.config = config
	id := c.id
	c.mu.Unlock()
	if id == "" {
		return nil
	}
	return c.sessions.Configure(id, config)
}

// Load switches to an existing conversation. The id may be that of any of its sessions.
func (c *Chat) Load(id string) error {
	l, done, err := c.sessions.end(id, writing)
	if err != nil {
		return err
	}
	done()
	c.sessions.setCurrent(l.id)
	if err := c.look.LockContext(c.sessions.context()); err != nil {
		return err
	}
	c.view = view{}
	c.look.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id = c.sessions.resolve(id)
	return nil
}

// Reset begins a new conversation with the same instructions. The old one stays stored.
func (c *Chat) Reset() {
	c.look.Lock()
	c.view = view{}
	c.look.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id, c.title, c.config = "", "", Config{}
}

// AddMessage adds a message at the end of the conversation and returns it as it was
// stored. content is anything that ParseContent accepts; if category is 0, Categorise
// chooses one. The first message creates the session.
func (c *Chat) AddMessage(role string, content any, category Category, metadata map[string]any) (Message, error) {
	blocks, err := ParseContent(content)
	if err != nil {
		return Message{}, err
	}
	return c.Add(Message{Role: role, Content: blocks, Category: category, Metadata: metadata})
}

// Add is AddMessage for a message with more fields. Missing ones are filled in, except
// for its tokens: a stored count must come from the model's provider, because today's
// estimate would be wrong for tomorrow's model.
func (c *Chat) Add(m Message) (Message, error) {
	added, moved, err := c.inOrder(func() (Message, []Transition, error) { return c.add(m) })
	c.sessions.report(moved)
	return added, err
}

// inOrder adds something while no other call does. The caller reports transitions afterwards,
// when no lock is held.
func (c *Chat) inOrder(add func() (Message, []Transition, error)) (Message, []Transition, error) {
	if err := c.order.LockContext(c.sessions.context()); err != nil {
		return Message{}, nil, err
	}
	defer c.order.Unlock()
	return add()
}

func (c *Chat) add(m Message) (Message, []Transition, error) {
	if m.Category == 0 {
		c.mu.Lock()
		m.Category = Categorise(m.Role, m.Content, c.prompt)
		c.mu.Unlock()
	}
	given := m.ID != ""
	m = m.withDefaults(now())
	if err := errors.Join(m.Validate(), session.CheckRole(m.Role)); err != nil { // first, so that no session is created for it
		return Message{}, nil, err
	}
	id, err := c.ensure()
	if err != nil {
		return Message{}, nil, err
	}
	return c.sessions.addMessage(id, m, given)
}

// ensure creates the session if there is none yet. It is called with order held.
func (c *Chat) ensure() (string, error) {
	c.mu.Lock()
	id, title, config := c.id, c.title, c.config
	c.mu.Unlock()
	if id != "" {
		return id, nil
	}
	s, err := c.sessions.CreateSession(title)
	if err == nil && config != (Config{}) {
		err = c.sessions.Configure(s.ID, config)
	}
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id = s.ID
	return s.ID, nil
}

// AddUserMessage adds what the user says.
func (c *Chat) AddUserMessage(content any) (Message, error) {
	return c.AddMessage(session.RoleUser, content, CategoryDialog, nil)
}

// AddAssistantMessage adds a model's reply.
func (c *Chat) AddAssistantMessage(r Reply) (Message, error) {
	return c.Add(Message{
		Role: session.RoleAssistant, Content: r.Content, Category: CategoryDialog,
		Model: r.Model, Provider: r.Provider, StopReason: r.StopReason, ResponseID: r.ResponseID, Usage: r.Usage,
	})
}

// AddActionResult adds a tool's answer to a call.
func (c *Chat) AddActionResult(callID, output string, isError bool) (Message, error) {
	if callID == "" {
		return Message{}, fmt.Errorf("action result: %w: it has no call id", session.ErrInvalid)
	}
	result := session.ToolResult(callID, output, isError)
	return c.AddMessage(session.RoleTool, result, CategorySystemOutput, nil)
}

// AddContext adds reference material. source says where it comes from.
func (c *Chat) AddContext(source, text string) (Message, error) {
	return c.AddMessage(session.RoleSystem, files.Quote(source, text), CategoryContext, map[string]any{files.MetaSource: source})
}

// PrepareConversation prepares a request: it adds the instructions, if they were not
// sent yet, and the user's message with the images from the given files. Without text and
// images there is nothing to answer: the error matches session.ErrInvalid.
func (c *Chat) PrepareConversation(userInput string, imagePaths ...string) (Message, error) {
	content, err := userContent(userInput, imagePaths)
	if err != nil {
		return Message{}, err
	}
	return c.prepare(content)
}

// prepare is PrepareConversation for content.
func (c *Chat) prepare(content []session.Content) (Message, error) {
	m, moved, err := c.inOrder(func() (Message, []Transition, error) {
		moved, err := c.sendPrompt()
		if err != nil {
			return Message{}, moved, err
		}
		m, more, err := c.add(Message{Role: session.RoleUser, Content: content, Category: CategoryDialog})
		return m, append(moved, more...), err
	})
	c.sessions.report(moved)
	return m, err
}

// userContent returns what the user says, with the images of files.
func userContent(text string, imagePaths []string) ([]session.Content, error) {
	if strings.TrimSpace(text) == "" && len(imagePaths) == 0 { // as package agent has it
		return nil, fmt.Errorf("user's message: %w: it is empty", session.ErrInvalid)
	}
	var content []session.Content
	if text != "" {
		content = append(content, session.Text(text))
	}
	for _, path := range imagePaths {
		image, err := media.Load(path)
		if err != nil {
			return nil, err
		}
		content = append(content, image)
	}
	return content, nil
}

// sendPrompt adds the instructions unless the conversation has them, and removes earlier ones
// from the context. It is called with order held.
func (c *Chat) sendPrompt() ([]Transition, error) {
	c.mu.Lock()
	prompt := c.prompt
	c.mu.Unlock()
	if prompt == "" {
		return nil, nil
	}
	id, err := c.ensure()
	if err != nil {
		return nil, err
	}
	l, done, err := c.sessions.end(id, writing)
	if err != nil {
		return nil, err
	}
	sent, stale := l.hasPrompt(prompt)
	done()
	var moved []Transition
	if !sent {
		_, moved, err = c.add(Message{
			Role: session.RoleSystem, Content: []session.Content{session.Text(prompt)}, Category: CategorySystem,
			Metadata: map[string]any{session.MetaType: session.PromptType},
		})
	}
	if err == nil && len(stale) > 0 {
		err = c.sessions.clear(id, func(l *link) []string {
			_, stale := l.hasPrompt(prompt)
			return stale
		})
	}
	return moved, err
}

// hasPrompt reports whether a prompt is in the context, and returns the other prompts there.
func (l *link) hasPrompt(prompt string) (sent bool, stale []string) {
	for _, i := range l.lasting {
		e := &l.Entries[i]
		switch {
		case e.Message.Role != session.RoleSystem || window.CategoryOf(e) != CategorySystem || l.Cleared[e.ID]:
		case session.TextOf(e.Message.Content) == prompt:
			sent = true
		case session.IsPrompt(e):
			stale = append(stale, e.ID)
		}
	}
	return sent, stale
}

// View returns what fits the window now, with a report. Its cost depends on what was added
// since the last time, not on the length of the conversation. If the SYSTEM messages alone or
// the newest message does not fit, the error is a *window.OverflowError.
func (c *Chat) View() (*window.View, error) {
	v, _, err := c.fit()
	return v, err
}

// fit returns what fits the window now, and where a reply would be.
func (c *Chat) fit() (*window.View, Request, error) {
	id := c.ID()
	if id == "" {
		return &window.View{}, Request{}, nil
	}
	if err := c.look.LockContext(c.sessions.context()); err != nil {
		return nil, Request{}, err
	}
	defer c.look.Unlock()
	return c.view.update(c.sessions, c.window, id)
}

// History returns what fits the window, in the format of Chat Completions. For other
// APIs, use Request.
func (c *Chat) History() ([]APIMessage, error) {
	v, err := c.View()
	if err != nil {
		return nil, err
	}
	return apiMessages(v.Entries...)
}

// Request returns what to send to a model now.
func (c *Chat) Request() (Request, error) {
	v, r, err := c.fit()
	if err != nil {
		return Request{}, err
	}
	r.Entries, r.Report = v.Entries, v.Report
	return r, nil
}

// Conversation returns everything that was said, whether or not it fits the window.
func (c *Chat) Conversation() (Conversation, error) {
	id := c.ID()
	if id == "" {
		return Conversation{}, nil
	}
	return c.sessions.Conversation(id)
}

// RecallImage returns the image that a placeholder refers to.
func (c *Chat) RecallImage(reference string) (image session.Content, err error) {
	id := c.ID()
	if id == "" {
		return session.Content{}, fmt.Errorf("recall %q: %w: the conversation is empty", reference, session.ErrNotExist)
	}
	err = c.sessions.inWhole(id, func(w *whole) (err error) {
		image, err = window.Recall(w.WithContext(c.sessions.context()), reference)
		return err
	})
	return image, err
}

// Save is a barrier: it returns when everything added to the conversation is on the disk,
// whatever the store's Sync is.
func (c *Chat) Save() error {
	id := c.ID()
	if id == "" {
		return nil
	}
	return c.sessions.saveChain(id)
}
