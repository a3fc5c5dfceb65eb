package conversation

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// ManagerOptions adjusts a Manager.
type ManagerOptions struct {
	Sessions Options
	// Model answers. Default: none; then nothing can be asked.
	Model Model
	// SystemPrompt is the instructions of new conversations. Default: none.
	SystemPrompt string
	// ContextDir is the directory of context files. Default: none.
	ContextDir string
}

// Manager is everything together: sessions, the window, the current
// conversation and the context files. Programs that serve many conversations at
// once call ProcessMessage with their ids: one never sees another's messages.
type Manager struct {
	Sessions *Sessions
	Window   *Window
	Loader   *Loader // nil without ManagerOptions.ContextDir

	mu      sync.Mutex // guards what follows
	model   Model
	prompt  string
	current *active
	active  map[string]*active // by the id of the conversation
}

// active is a conversation that is being used.
type active struct {
	system *Chat
	turn   sync.Mutex // held from the user's message to the reply
	users  int
}

// Open returns the manager of the conversations in a
// directory. The caller closes it.
func Open(basePath string, o *ManagerOptions) (*Manager, error) {
	if o == nil {
		o = &ManagerOptions{}
	}
	sessions, err := OpenSessions(basePath, &o.Sessions)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		Sessions: sessions, Window: NewWindow(o.Sessions.Logger),
		prompt: o.SystemPrompt, active: make(map[string]*active),
	}
	m.current = m.begin()
	m.SetModel(o.Model)
	if o.ContextDir != "" {
		if m.Loader, err = NewLoader(o.ContextDir); err != nil {
			return nil, errors.Join(err, sessions.Close())
		}
	}
	return m, nil
}

// begin returns a conversation that has no session yet.
func (m *Manager) begin() *active {
	system := NewChat(m.Sessions, m.Window)
	system.SetSystemPrompt(m.prompt)
	return &active{system: system}
}

// SetModel changes who answers from now on. The window becomes that of the model
// if the model says what it can do.
func (m *Manager) SetModel(model Model) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.model = model
	if capable, ok := model.(Capable); ok {
		m.Window.SetModel(capable.Capabilities())
	}
}

// SetSystemPrompt changes the instructions of new conversations and of the
// current one.
func (m *Manager) SetSystemPrompt(prompt string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prompt = prompt
	m.current.system.SetSystemPrompt(prompt)
}

// Current returns the current conversation.
func (m *Manager) Current() *Chat {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current.system
}

// CreateConversation begins a new conversation, makes it the current one and
// returns its id. The title may be empty.
func (m *Manager) CreateConversation(title string) (string, error) {
	s, err := m.Sessions.CreateSession(title)
	if err != nil {
		return "", err
	}
	return s.ID, m.LoadConversation(s.ID)
}

// LoadConversation makes a conversation the current one. The id may be that of
// any of its sessions.
func (m *Manager) LoadConversation(id string) error {
	a, err := m.use(id)
	if err != nil {
		return err
	}
	defer m.done(a)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = a
	return nil
}

// Reset leaves the current conversation; the next message begins a new one.
func (m *Manager) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = m.begin()
}

// use returns a conversation, loaded. An empty id is the current one. The caller
// is done with it some time.
func (m *Manager) use(id string) (*active, error) {
	if id == "" {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.current.users++
		return m.current, nil
	}
	totals, err := m.Sessions.Totals(id)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	if a := m.active[totals.Conversation]; a != nil {
		a.users++
		m.mu.Unlock()
		return a, nil
	}
	fresh := m.begin()
	m.mu.Unlock()
	if err := fresh.system.Load(id); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.active[totals.Conversation]
	if a == nil {
		a = fresh
		m.active[totals.Conversation] = a
	}
	a.users++ // before idle ones are forgotten: it is not one of them
	m.forgetIdle()
	return a, nil
}

// forgetIdle keeps the views of idle conversations within the same bound as
// sessions.
func (m *Manager) forgetIdle() {
	limit := m.Sessions.Settings().MaxSessionsInMemory
	for id, a := range m.active {
		if len(m.active) <= limit {
			return
		}
		if a.users == 0 && a != m.current {
			delete(m.active, id)
		}
	}
}

func (m *Manager) done(a *active) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a.users--
	if id := a.system.ID(); id != "" && m.active[id] == nil && a == m.current {
		m.active[id] = a // its first message has made it a session
	}
}

// AddUserMessage adds what the user says to the current conversation, with the
// images of the given files.
func (m *Manager) AddUserMessage(text string, imagePaths ...string) (Message, error) {
	a, err := m.use("")
	if err != nil {
		return Message{}, err
	}
	defer m.done(a)
	return a.system.PrepareConversation(text, imagePaths...)
}

// GetResponse asks the model to answer in the current conversation, and adds the
// reply. With stream, which may be nil, its text is also given as it arrives: see
// Chat.Respond.
func (m *Manager) GetResponse(ctx context.Context, stream func(text string)) (Message, error) {
	a, err := m.use("")
	if err != nil {
		return Message{}, err
	}
	defer m.done(a)
	return m.respond(ctx, a, stream)
}

func (m *Manager) respond(ctx context.Context, a *active, stream func(string)) (Message, error) {
	m.mu.Lock()
	model := m.model
	m.mu.Unlock()
	if model == nil {
		return Message{}, fmt.Errorf("get response: %w: there is no model", session.ErrInvalid)
	}
	return a.system.Respond(ctx, model, stream)
}

// ProcessMessage is a whole turn: it loads the conversation of an id, or goes on
// with the current one if that is empty, looks whether its context files have
// changed, adds what the user says, gets the model's response and returns its
// text. Turns of one conversation wait for each other.
func (m *Manager) ProcessMessage(ctx context.Context, message, conversationID string) (string, error) {
	return m.Process(ctx, Turn{Message: message, Conversation: conversationID})
}

// Turn is what the user says, and where.
type Turn struct {
	Message      string
	Conversation string            // an id; "" is the current conversation
	ImagePaths   []string          // files of images that go with the message
	Stream       func(text string) // is given the reply as it arrives; may be nil
}

// Process is ProcessMessage with images and streaming.
func (m *Manager) Process(ctx context.Context, t Turn) (string, error) {
	a, err := m.use(t.Conversation)
	if err != nil {
		return "", err
	}
	defer m.done(a)
	a.turn.Lock()
	defer a.turn.Unlock()
	if m.Loader != nil {
		if _, err := m.Loader.Refresh(a.system); err != nil {
			return "", err
		}
	}
	if _, err := a.system.PrepareConversation(t.Message, t.ImagePaths...); err != nil {
		return "", err
	}
	reply, err := m.respond(ctx, a, t.Stream)
	if err != nil {
		return reply.Text(), err
	}
	return reply.Text(), a.system.Save()
}

// SaveConversation makes sure that all of the current conversation is on the
// disk: see Chat.Save.
func (m *Manager) SaveConversation() error { return m.Current().Save() }

// ListConversations returns a part of all conversations, the most recently
// active first: see Sessions.ListConversations.
func (m *Manager) ListConversations(limit, offset int) ([]Info, error) {
	return m.Sessions.ListConversations(limit, offset)
}

// DeleteConversation takes all sessions of a conversation out of the store, and
// reports whether there were any.
func (m *Manager) DeleteConversation(id string) (bool, error) {
	var ids []string
	err := m.Sessions.walkBack(id, func(l *link) bool {
		ids = append(ids, l.id)
		return true
	})
	if errors.Is(err, session.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m.forget(ids)
	for _, id := range ids {
		if _, err := m.Sessions.DeleteSession(id); err != nil {
			return false, err
		}
	}
	return true, nil
}

// forget leaves conversations that are no longer there.
func (m *Manager) forget(ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		delete(m.active, id)
		if m.current.system.ID() == id {
			m.current = m.begin()
		}
	}
}

// TokenUsage reports how the current conversation uses the window.
func (m *Manager) TokenUsage() (window.Report, error) {
	v, err := m.Current().View()
	if err != nil {
		return window.Report{}, err
	}
	return v.Report, nil
}

// LoadContext adds the core files of the context directory to the current
// conversation: see Loader.LoadCoreContext.
func (m *Manager) LoadContext() ([]Message, error) {
	if m.Loader == nil {
		return nil, fmt.Errorf("load context: %w: there is no context directory", session.ErrInvalid)
	}
	return m.Loader.LoadCoreContext(m.Current())
}

// Close saves everything and closes all sessions.
func (m *Manager) Close() error {
	var err error
	if m.Loader != nil {
		err = m.Loader.Close()
	}
	return errors.Join(err, m.Sessions.Close())
}
