package conversation

import (
	"errors"
	"fmt"
	"sync"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// Chat is one conversation: what is said in it, and what of it a
// model is sent. Its methods may be called concurrently.
type Chat struct {
	manager *Sessions
	window  *Window

	mu               sync.Mutex // guards what follows
	id               string     // of a session of the conversation; "" until there is one
	systemPrompt     string
	systemPromptSent bool
	title            string // for the session that the first message makes
	view             view
}

// NewChat returns a conversation that has no session yet: the
// first message makes one, or Load finds one.
func NewChat(m *Sessions, w *Window) *Chat {
	return &Chat{manager: m, window: w}
}

// ID returns the id of the conversation as it was created or loaded, or "" if it
// has no session yet.
func (c *Chat) ID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}

// SetSystemPrompt sets the instructions that PrepareConversation sends before
// anything else: once, and again when they are changed.
func (c *Chat) SetSystemPrompt(prompt string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if prompt != c.systemPrompt {
		c.systemPrompt, c.systemPromptSent = prompt, false
	}
}

// SystemPrompt returns the instructions, and whether they were sent.
func (c *Chat) SystemPrompt() (prompt string, sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.systemPrompt, c.systemPromptSent
}

// SetTitle gives the conversation a title, now or when its session is made.
func (c *Chat) SetTitle(title string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.title = title; c.id == "" {
		return nil
	}
	_, err := c.manager.append(c.id, session.Entry{ID: newID(), Type: session.TypeSessionInfo, SessionInfo: &session.SessionInfoEntry{Name: title}})
	return err
}

// Load makes an existing conversation this one. The id may be that of any of its
// sessions.
func (c *Chat) Load(id string) error {
	if err := c.manager.refreshTail(id); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sent, err := c.wasSent(id, c.systemPrompt)
	if err != nil {
		return err
	}
	c.id, c.view, c.systemPromptSent = c.manager.resolve(id), view{}, sent
	return nil
}

// wasSent reports whether a conversation, which becomes the current one, has a
// prompt in it.
func (c *Chat) wasSent(id, prompt string) (sent bool, _ error) {
	l, err := c.manager.tail(id)
	if err != nil {
		return false, err
	}
	defer c.manager.cache.release(l)
	c.manager.setCurrent(l.id)
	if prompt == "" {
		return false, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.entries {
		m := fromEntry(l.entries[i])
		sent = sent || m.Category == CategorySystem && m.Text() == prompt
	}
	return sent, nil
}

// Reset begins a new conversation with the same instructions. The old one stays
// where it is.
func (c *Chat) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id, c.title, c.systemPromptSent, c.view = "", "", false, view{}
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
// filled in; its tokens are counted if they are not known.
func (c *Chat) Add(m Message) (Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(m)
}

func (c *Chat) add(m Message) (Message, error) {
	if m.Category == 0 {
		m.Category = Categorise(m.Role, m.Content, c.systemPrompt)
	}
	m = m.withDefaults(now())
	if err := m.Validate(); err != nil { // before a session is made for it
		return Message{}, err
	}
	if m.Tokens == nil {
		tokens := c.window.CountTokens(m)
		m.Tokens = &tokens
	}
	if err := c.ensure(); err != nil {
		return Message{}, err
	}
	return c.manager.AddMessage(c.id, m)
}

// ensure makes the session if there is none yet.
func (c *Chat) ensure() error {
	if c.id != "" {
		return nil
	}
	s, err := c.manager.CreateSession(c.title)
	c.id = s.ID
	return err
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
		return Message{}, fmt.Errorf("action result: %w: it has no id of a call", session.ErrInvalid)
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.sendSystemPrompt(); err != nil {
		return Message{}, err
	}
	return c.add(Message{Role: session.RoleUser, Content: content, Category: CategoryDialog})
}

func (c *Chat) sendSystemPrompt() error {
	if c.systemPrompt == "" || c.systemPromptSent {
		return nil
	}
	_, err := c.add(Message{Role: session.RoleSystem, Content: []session.Content{session.Text(c.systemPrompt)}, Category: CategorySystem})
	c.systemPromptSent = err == nil
	return err
}

// View returns what of the conversation fits the window now, with a report. It
// costs what was added since the last time, however long the conversation is. If
// the SYSTEM messages alone do not fit, or the newest message, the error is a
// *window.OverflowError.
func (c *Chat) View() (*window.View, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.look()
}

func (c *Chat) look() (*window.View, error) {
	if c.id == "" {
		return &window.View{}, nil
	}
	if err := c.manager.refreshTail(c.id); err != nil {
		return nil, err
	}
	return c.view.update(c.manager, c.window, c.id)
}

// History returns what of the conversation fits the window, as model APIs take
// it.
func (c *Chat) History() ([]APIMessage, error) {
	v, err := c.View()
	if err != nil {
		return nil, err
	}
	return apiHistory(v.Entries), nil
}

// Request returns what a model is to be sent now.
func (c *Chat) Request() (Request, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, err := c.look()
	if err != nil || c.id == "" {
		return Request{}, err
	}
	l, err := c.manager.tail(c.id)
	if err != nil {
		return Request{}, err
	}
	defer c.manager.cache.release(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	return Request{Conversation: l.before.root, Session: l.id, Entries: v.Entries, Report: v.Report}, nil
}

// Conversation returns everything that was said, whatever fits the window.
func (c *Chat) Conversation() (Conversation, error) {
	id := c.ID()
	if id == "" {
		return Conversation{}, nil
	}
	return c.manager.Conversation(id)
}

// RecallImage returns the image that a placeholder refers to.
func (c *Chat) RecallImage(reference string) (session.Content, error) {
	id := c.ID()
	if id == "" {
		return session.Content{}, fmt.Errorf("recall %q: %w: the conversation is empty", reference, session.ErrNotExist)
	}
	return window.Recall(library{c.manager, id}, reference)
}

// library looks entries up in all links of a conversation.
type library struct {
	manager *Sessions
	id      string
}

func (l library) Entry(id string) (found session.Entry, _ error) {
	missing := fmt.Errorf("entry %q: %w", id, session.ErrNotExist)
	err := l.manager.walkBack(l.id, func(link *link) bool {
		e, err := link.s.Entry(id)
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
	return c.manager.saveChain(id)
}
