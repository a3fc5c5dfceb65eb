package conversation

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// Chat is one conversation: its messages, and the part of them that goes to the model.
// Its methods may be called concurrently.
type Chat struct {
	*chatCore
	sessions *Sessions // whose context is the chat's
}

// chatCore is what all views of a Chat share.
type chatCore struct {
	window *Window

	order gate.Mutex // held while something is added: the prompt comes before what the user says
	look  gate.Mutex // guards view
	view  view

	mu     sync.Mutex // guards what follows; never held while the store works
	id     string     // of a session of the conversation; "" until there is one
	prompt string
	title  string // for the session that the first message makes
	config Config // likewise
}

// NewChat returns a conversation that has no session yet: the first message makes
// one, or Load finds one.
func NewChat(s *Sessions, w *Window) *Chat { return &Chat{&chatCore{window: w}, s} }

// WithContext returns the same conversation with operations that end when ctx does:
// see Sessions.WithContext.
func (c *Chat) WithContext(ctx context.Context) *Chat {
	return &Chat{c.chatCore, c.sessions.WithContext(ctx)}
}

// ID returns the id of the conversation as it was created or loaded, or "" if it
// has no session yet.
func (c *Chat) ID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}

// SetSystemPrompt sets the instructions that PrepareConversation sends before
// anything else: once, and again when they are changed. The new ones then take the
// place of the old ones.
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
	l, err := c.sessions.tail(id)
	if err != nil {
		return prompt, false
	}
	defer c.sessions.cache.release(l)
	if c.sessions.lock(l) != nil {
		return prompt, false
	}
	defer l.mu.Unlock()
	sent, _ = l.hasPrompt(prompt)
	return prompt, sent
}

// SetTitle gives the conversation a title, now or when its session is made.
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
		return []session.Entry{titled(title)}, nil
	})
}

// Config returns what the conversation does differently from others.
func (c *Chat) Config() (Config, error) {
	c.mu.Lock()
	id, config := c.id, c.config
	c.mu.Unlock()
	if id == "" {
		return config, nil
	}
	return c.sessions.Config(id)
}

// Configure says what the conversation does differently, from now on and in every
// program that opens it. It returns an error that matches session.ErrInvalid, and
// changes nothing, if that makes no sense.
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

// Load makes an existing conversation this one. The id may be that of any of its
// sessions.
func (c *Chat) Load(id string) error {
	if err := c.sessions.refreshTail(id, writing); err != nil {
		return err
	}
	l, err := c.sessions.tail(id)
	if err != nil {
		return err
	}
	c.sessions.setCurrent(l.id)
	c.sessions.cache.release(l)
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

// Reset begins a new conversation with the same instructions. The old one stays
// where it is.
func (c *Chat) Reset() {
	c.look.Lock()
	c.view = view{}
	c.look.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id, c.title, c.config = "", "", Config{}
}

// AddMessage adds a message at the end of the conversation, and returns it as it
// was stored. content is what ParseContent takes; a category of 0 is chosen by
// Categorise. The first message makes the session.
func (c *Chat) AddMessage(role string, content any, category Category, metadata map[string]any) (Message, error) {
	blocks, err := ParseContent(content)
	if err != nil {
		return Message{}, err
	}
	return c.Add(Message{Role: role, Content: blocks, Category: category, Metadata: metadata})
}

// Add is AddMessage for a message that may have more to it. What it lacks is
// filled in, except for its tokens: a number that is stored must have been
// counted by the model's provider, and what somebody estimates today is wrong for
// the model of tomorrow.
func (c *Chat) Add(m Message) (Message, error) {
	added, moved, err := c.inOrder(func() (Message, []Transition, error) { return c.add(m) })
	c.sessions.tell(moved)
	return added, err
}

// inOrder adds something while nobody else does. OnTransition is called afterwards,
// once no lock is held.
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
	if err := errors.Join(m.Validate(), session.CheckRole(m.Role)); err != nil { // before a session is made for it
		return Message{}, nil, err
	}
	id, err := c.ensure()
	if err != nil {
		return Message{}, nil, err
	}
	return c.sessions.addMessage(id, m, given)
}

// ensure makes the session if there is none yet. It is called in order.
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

// AddActionResult adds what a tool answered to a call.
func (c *Chat) AddActionResult(callID, output string, isError bool) (Message, error) {
	if callID == "" {
		return Message{}, fmt.Errorf("action result: %w: it has no call id", session.ErrInvalid)
	}
	result := session.ToolResult(callID, output, isError)
	return c.AddMessage(session.RoleTool, result, CategorySystemOutput, nil)
}

// AddContext adds reference material. The source says where it is from.
func (c *Chat) AddContext(source, text string) (Message, error) {
	return c.AddMessage(session.RoleSystem, contextText(source, text), CategoryContext, map[string]any{metaSource: source})
}

// metaSource is the member of a message's metadata that says where it is from.
const metaSource = "source"

// contextText tells the model where a text begins, ends, and is from.
func contextText(source, text string) string {
	return fmt.Sprintf("<context source=%q>\n%s\n</context>", source, text)
}

// PrepareConversation gets the conversation ready for a request: it adds the
// instructions, if they were not sent yet, and what the user says, with the
// images of the given files.
func (c *Chat) PrepareConversation(userInput string, imagePaths ...string) (Message, error) {
	var content []session.Content
	if userInput != "" || len(imagePaths) == 0 {
		content = append(content, session.Text(userInput))
	}
	for _, path := range imagePaths {
		image, err := LoadImage(path)
		if err != nil {
			return Message{}, err
		}
		content = append(content, image)
	}
	m, moved, err := c.inOrder(func() (Message, []Transition, error) {
		moved, err := c.sendPrompt()
		if err != nil {
			return Message{}, moved, err
		}
		m, more, err := c.add(Message{Role: session.RoleUser, Content: content, Category: CategoryDialog})
		return m, append(moved, more...), err
	})
	c.sessions.tell(moved)
	return m, err
}

// sendPrompt adds the instructions unless the conversation has them, and takes
// those out of the context that were in force before. It is called in order.
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
	l, err := c.sessions.tail(id)
	if err != nil {
		return nil, err
	}
	if err := c.sessions.lock(l); err != nil {
		c.sessions.cache.release(l)
		return nil, err
	}
	sent, stale := l.hasPrompt(prompt)
	l.mu.Unlock()
	c.sessions.cache.release(l)
	var moved []Transition
	if !sent {
		_, moved, err = c.add(Message{
			Role: session.RoleSystem, Content: []session.Content{session.Text(prompt)}, Category: CategorySystem,
			Metadata: map[string]any{metaType: typePrompt},
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

// typePrompt is the member metaType of the metadata of the instructions.
const typePrompt = "system_prompt"

// hasPrompt reports whether a prompt is in the context, and which other ones are.
func (l *link) hasPrompt(prompt string) (sent bool, stale []string) {
	for _, i := range l.instructions {
		e := &l.entries[i]
		switch {
		case l.cleared[e.ID]:
		case session.TextOf(e.Message.Content) == prompt:
			sent = true
		case e.Message.Metadata[metaType] == typePrompt:
			stale = append(stale, e.ID)
		}
	}
	return sent, stale
}

// View returns what of the conversation fits the window now, with a report. It
// costs what was added since the last time, however long the conversation is. If
// the SYSTEM messages alone do not fit, or the newest message, the error is a
// *window.OverflowError.
func (c *Chat) View() (*window.View, error) {
	id := c.ID()
	if id == "" {
		return &window.View{}, nil
	}
	if err := c.sessions.refreshTail(id, reading); err != nil {
		return nil, err
	}
	if err := c.look.LockContext(c.sessions.context()); err != nil {
		return nil, err
	}
	defer c.look.Unlock()
	return c.view.update(c.sessions, c.window, id)
}

// History returns what of the conversation fits the window, as Chat Completions
// takes it. Request has it for other APIs.
func (c *Chat) History() ([]APIMessage, error) {
	v, err := c.View()
	if err != nil {
		return nil, err
	}
	return apiMessages(v.Entries...)
}

// Request returns what a model is to be sent now.
func (c *Chat) Request() (Request, error) {
	v, err := c.View()
	id := c.ID()
	if err != nil || id == "" {
		return Request{}, err
	}
	l, err := c.sessions.tail(id)
	if err != nil {
		return Request{}, err
	}
	defer c.sessions.cache.release(l)
	if err := c.sessions.lock(l); err != nil {
		return Request{}, err
	}
	defer l.mu.Unlock()
	return Request{Conversation: l.before.root, Session: l.id, Entries: v.Entries, Report: v.Report}, nil
}

// Conversation returns everything that was said, whatever fits the window.
func (c *Chat) Conversation() (Conversation, error) {
	id := c.ID()
	if id == "" {
		return Conversation{}, nil
	}
	return c.sessions.Conversation(id)
}

// RecallImage returns the image that a placeholder refers to.
func (c *Chat) RecallImage(reference string) (session.Content, error) {
	id := c.ID()
	if id == "" {
		return session.Content{}, fmt.Errorf("recall %q: %w: the conversation is empty", reference, session.ErrNotExist)
	}
	return window.Recall(library{c.sessions, id}, reference)
}

// library looks entries up in all links of a conversation.
type library struct {
	sessions *Sessions
	id       string
}

func (l library) Entry(id string) (found session.Entry, _ error) {
	missing := fmt.Errorf("entry %q: %w", id, session.ErrNotExist)
	err := l.sessions.walkBack(l.id, func(link *link) bool {
		e, err := link.s.WithContext(l.sessions.context()).Entry(id)
		if err == nil {
			found, missing = e, nil
		} else if !errors.Is(err, session.ErrNotExist) {
			missing = err
		}
		return missing != nil
	})
	return found, errors.Join(err, missing)
}

// Save is a barrier: it returns when everything that was added to the
// conversation since the last time is on the disk, however lazily the store was
// told to sync.
func (c *Chat) Save() error {
	id := c.ID()
	if id == "" {
		return nil
	}
	return c.sessions.saveChain(id)
}
