package conversation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/internal/pool"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/window"
)

// ManagerOptions adjusts a Manager.
type ManagerOptions struct {
	Sessions Options
	// Model answers in conversations without a model of their own. Default: none; then
	// nothing can be asked there.
	Model provider.Model
	// Models returns the model with a provider and a name, or nil if there is none. It is
	// asked for conversations that were given a model of their own, perhaps in another
	// program. Default: only Model and those of UseModel are known.
	Models func(provider, model string) provider.Model
	// Exact are asked for exact token counters: see window.Chooser. Default: none;
	// then tokens are estimated, unless a model brings its own counter.
	Exact []func(provider, model string) window.Counter
	// SystemPrompt is the instructions of new conversations. Default: none.
	SystemPrompt string
	// Agent has the tools that models may call, and says how they are run. With tools, an
	// agent answers: it runs the calls until the model is done, and keeps their results in
	// the conversation. Its Model and Counter are those of the conversation. Default: no
	// tools.
	Agent agent.Options
	// ContextDir is the directory of context files. Default: none.
	ContextDir string
	// OnContextError is called when a conversation's context files cannot be used. The turn
	// continues without them. Default: the error is logged.
	OnContextError func(conversation string, err error)
}

// Manager is everything together: sessions, the window, the current conversation and the
// context files. A program that serves many conversations at once calls ProcessMessage with
// their ids. Conversations never see each other's messages, and each may have its own model
// and settings.
type Manager struct {
	Sessions *Sessions
	Window   *Window // for conversations without settings of their own
	Loader   *Loader // nil without ManagerOptions.ContextDir

	*managerCore
}

// managerCore is what all views of a Manager share.
type managerCore struct {
	sessions *Sessions // without the context of a view
	options  ManagerOptions
	logger   *slog.Logger

	active *pool.Pool[*active] // by the id of the conversation

	mu      sync.Mutex // guards what follows; the pool may lock it, so nothing is asked of the pool with it
	model   provider.Model
	prompt  string
	current *active
}

// active is a conversation that is being used.
type active struct {
	chat  *Chat
	turn  gate.Mutex     // held from the user's message to the reply, so that turns do not mix
	model provider.Model // of its own, or nil; guarded by Manager.mu
}

// Open returns the manager of the conversations in a directory, which is created if it does
// not exist. An empty path keeps them in memory. The caller closes the manager.
func Open(basePath string, o *ManagerOptions) (*Manager, error) {
	if o == nil {
		o = &ManagerOptions{}
	}
	sessions, err := OpenSessions(basePath, &o.Sessions)
	if err != nil {
		return nil, err
	}
	return newManager(sessions, o)
}

// NewManager returns the manager of the conversations in a store, which the caller
// closes after the manager.
func NewManager(st store.Store, o *ManagerOptions) (*Manager, error) {
	if o == nil {
		o = &ManagerOptions{}
	}
	sessions, err := NewSessions(st, &o.Sessions)
	if err != nil {
		return nil, err
	}
	return newManager(sessions, o)
}

func newManager(sessions *Sessions, o *ManagerOptions) (*Manager, error) {
	m := &Manager{
		Sessions: sessions, Window: newWindow(newCounters(o.Sessions.Logger, o.Exact)),
		managerCore: &managerCore{
			sessions: sessions, options: *o,
			logger: sessions.options.Logger, prompt: o.SystemPrompt,
		},
	}
	m.active = pool.New(pool.Limits{}, pool.Options[*active]{Close: m.isIdle})
	m.current = m.begin()
	err := m.SetModel(o.Model)
	if err == nil && o.ContextDir != "" {
		m.Loader, err = NewLoader(o.ContextDir)
	}
	if err != nil {
		return nil, errors.Join(err, sessions.Close())
	}
	return m, nil
}

// WithContext returns the same manager with operations that end when ctx ends: see
// Sessions.WithContext. Methods that take a context use that one.
func (m *Manager) WithContext(ctx context.Context) *Manager {
	return &Manager{m.Sessions.WithContext(ctx), m.Window, m.Loader, m.managerCore}
}

// chat returns a conversation with the context of this view.
func (m *Manager) chat(a *active) *Chat { return &Chat{a.chat.chatCore, m.Sessions} }

// begin returns a conversation that has no session yet.
func (m *Manager) begin() *active {
	chat := NewChat(m.sessions, m.Window)
	chat.SetSystemPrompt(m.prompt)
	return &active{chat: chat}
}

// SetModel changes the model that answers in conversations without a model of their own. If
// the model says what it can do, their window changes accordingly. If its capabilities make no
// sense, SetModel changes nothing and returns an error that matches session.ErrInvalid.
func (m *Manager) SetModel(model provider.Model) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if capabilities, ok := capabilitiesOf(model); ok {
		if err := m.Window.SetModel(capabilities); err != nil {
			return err
		}
	}
	m.model = model
	return nil
}

// UseModel changes the model that answers in one conversation; "" means the current
// one. The model's name and capabilities are stored with the conversation: a manager in
// another program asks its ManagerOptions.Models for it.
func (m *Manager) UseModel(id string, model provider.Model) error {
	a, done, err := m.use(id)
	if err != nil {
		return err
	}
	defer done()
	if capabilities, ok := capabilitiesOf(model); ok {
		config, err := m.chat(a).Config()
		if err != nil {
			return err
		}
		fresh := configFor(capabilities)
		fresh.Shares, fresh.Images, fresh.MaxMessages = config.Shares, config.Images, config.MaxMessages
		if capabilities.Counter != nil {
			m.Window.counters.set(capabilities.Provider, capabilities.Model, capabilities.Counter)
		}
		if err := m.chat(a).Configure(fresh); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a.model = model
	return nil
}

// Configure changes the settings of one conversation; "" means the current one. See Config.
func (m *Manager) Configure(id string, c Config) error {
	a, done, err := m.use(id)
	if err != nil {
		return err
	}
	defer done()
	return m.chat(a).Configure(c)
}

// modelOf returns the model that answers in a conversation.
func (m *Manager) modelOf(a *active) (provider.Model, error) {
	config, err := m.chat(a).Config()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	own, model := a.model, m.model
	m.mu.Unlock()
	if own != nil && isModel(own, config) {
		return own, nil
	}
	if config.Provider == "" && config.Model == "" {
		if model == nil {
			return nil, fmt.Errorf("get response: %w: there is no model", session.ErrInvalid)
		}
		return model, nil
	}
	if _, says := capabilitiesOf(model); says && isModel(model, config) {
		return model, nil
	}
	if m.options.Models != nil {
		if found := m.options.Models(config.Provider, config.Model); found != nil {
			return found, nil
		}
	}
	return nil, fmt.Errorf("get response: %w: no model %s/%s: set ManagerOptions.Models or call UseModel",
		session.ErrInvalid, config.Provider, config.Model)
}

// isModel reports whether a model could be the one that a config names.
func isModel(model provider.Model, c Config) bool {
	says, ok := capabilitiesOf(model)
	if !ok {
		return true // the model does not say which it is
	}
	return says.Provider == c.Provider && says.Model == c.Model
}

// SetSystemPrompt changes the instructions of new conversations and of the
// current one.
func (m *Manager) SetSystemPrompt(prompt string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prompt = prompt
	m.current.chat.SetSystemPrompt(prompt)
}

// Current returns the current conversation.
func (m *Manager) Current() *Chat {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.chat(m.current)
}

// CreateConversation begins a new conversation, makes it the current one and returns its id.
// The title may be empty.
func (m *Manager) CreateConversation(title string) (string, error) {
	s, err := m.Sessions.CreateSession(title)
	if err != nil {
		return "", err
	}
	return s.ID, m.LoadConversation(s.ID)
}

// LoadConversation makes a conversation the current one. The id may be that of any of its
// sessions.
func (m *Manager) LoadConversation(id string) error {
	a, done, err := m.use(id)
	if err != nil {
		return err
	}
	defer done()
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

// use returns a conversation, loaded. An empty id means the current one. The caller must call
// done.
func (m *Manager) use(id string) (_ *active, done func(), _ error) {
	if id == "" {
		m.mu.Lock()
		defer m.mu.Unlock()
		a := m.current
		return a, func() { m.keep(a) }, nil
	}
	root, err := m.Sessions.rootOf(id)
	if err != nil {
		return nil, nil, err
	}
	a, err := m.active.Get(m.Sessions.context(), root, func() (*active, error) {
		m.mu.Lock()
		fresh := m.begin()
		m.mu.Unlock()
		return fresh, m.chat(fresh).Load(id)
	})
	if err != nil {
		return nil, nil, err
	}
	m.active.Limit(pool.Limits{Count: m.Sessions.Settings().MaxSessionsInMemory})
	return a, func() { m.active.Release(root, a) }, nil
}

// keep lets the current conversation be found by its id, which its first message gave it.
func (m *Manager) keep(a *active) {
	m.mu.Lock()
	current := a == m.current
	m.mu.Unlock()
	if id := a.chat.ID(); id != "" && current {
		kept, err := m.active.Get(context.Background(), id, func() (*active, error) { return a, nil })
		if err == nil {
			m.active.Release(id, kept)
		}
	}
}

// isIdle reports whether a conversation may be forgotten.
func (m *managerCore) isIdle(a *active) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return a != m.current && a.model == nil
}

// AddUserMessage adds what the user says to the current conversation, with the
// images of the given files.
func (m *Manager) AddUserMessage(text string, imagePaths ...string) (Message, error) {
	a, done, err := m.use("")
	if err != nil {
		return Message{}, err
	}
	defer done()
	return m.chat(a).PrepareConversation(text, imagePaths...)
}

// GetResponse asks the model to answer in a conversation and adds the reply. An empty
// id means the current conversation. stream, if not nil, gets the text of the reply as
// it arrives: see Chat.Respond.
func (m *Manager) GetResponse(ctx context.Context, id string, stream func(text string)) (Message, error) {
	m = m.WithContext(ctx)
	a, done, err := m.use(id)
	if err != nil {
		return Message{}, err
	}
	defer done()
	return m.reply(ctx, a, nil, stream)
}

// hasTools reports whether agents answer.
func (m *Manager) hasTools() bool { return len(m.options.Agent.Tools) > 0 }

// reply gets an answer from an agent, which also adds what the user says, or from the model alone.
func (m *Manager) reply(ctx context.Context, a *active, content []session.Content, stream func(text string)) (Message, error) {
	model, err := m.modelOf(a)
	if err != nil {
		return Message{}, err
	}
	if m.hasTools() {
		return m.chat(a).act(ctx, model, m.options.Agent, content, stream)
	}
	return m.chat(a).Respond(ctx, model, stream)
}

// ProcessMessage is a whole turn. It loads the conversation with an id, or continues
// the current one if the id is empty; reloads context files that have changed; adds the
// user's message; gets the model's response; and returns its text. If the model calls tools,
// they are run, and the text is that of its last answer: see ManagerOptions.Agent. Turns of
// one conversation wait for each other. The current conversation stays the same, whatever the
// id.
//
// If the model fails, the user's message is stored already. Call Retry to ask again; calling
// ProcessMessage again would add the message twice.
func (m *Manager) ProcessMessage(ctx context.Context, message, conversationID string) (string, error) {
	return m.Process(ctx, Turn{Message: message, Conversation: conversationID})
}

// Turn is what the user says, and where.
type Turn struct {
	Message      string
	Conversation string            // an id; "" means the current conversation
	ImagePaths   []string          // files of images that belong to the message
	Stream       func(text string) // gets the reply as it arrives; may be nil
}

// Process is ProcessMessage with images and streaming.
func (m *Manager) Process(ctx context.Context, t Turn) (string, error) {
	m = m.WithContext(ctx)
	return m.turn(t.Conversation, func(a *active) (Message, error) {
		m.refreshFiles(a)
		content, err := userContent(t.Message, t.ImagePaths)
		if err == nil && !m.hasTools() {
			_, err = m.chat(a).prepare(content)
		}
		if err != nil {
			return Message{}, err
		}
		return m.reply(ctx, a, content, t.Stream)
	})
}

// Retry asks the model again in a conversation whose last turn was not answered, because the
// model failed, the caller gave up or the program ended. It continues the turn's tool calls
// (see agent.Agent.Resume), does not add the user's message again, and sends nothing of an
// incomplete reply. An empty id means the current conversation; stream may be nil. If there is
// nothing to retry, it returns ErrAnswered.
func (m *Manager) Retry(ctx context.Context, id string, stream func(text string)) (string, error) {
	m = m.WithContext(ctx)
	return m.turn(id, func(a *active) (Message, error) {
		_, err := m.modelOf(a)
		if err != nil { // then the incomplete reply stays
			return Message{}, err
		}
		err = m.chat(a).reopen()
		if m.hasTools() && errors.Is(err, ErrAnswered) { // calls may wait for their results
			err = nil
		}
		if err != nil {
			return Message{}, err
		}
		return m.reply(ctx, a, nil, stream)
	})
}

// turn gets a reply while no other turn of the conversation is in progress.
func (m *Manager) turn(id string, reply func(*active) (Message, error)) (string, error) {
	a, done, err := m.use(id)
	if err != nil {
		return "", err
	}
	defer done()
	if err := a.turn.LockContext(m.Sessions.context()); err != nil {
		return "", err
	}
	defer a.turn.Unlock()
	answer, err := reply(a)
	if err != nil {
		return answer.Text(), err
	}
	if !m.hasTools() {
		err = answer.unanswered()
	}
	return answer.Text(), errors.Join(err, m.chat(a).Save())
}

// refreshFiles reloads context files that have changed. A bad file must not stop the user's
// message.
func (m *Manager) refreshFiles(a *active) {
	if m.Loader == nil {
		return
	}
	_, err := m.Loader.Refresh(m.chat(a))
	if err == nil {
		return
	}
	m.logger.Warn("context files", "conversation", a.chat.ID(), "error", err)
	if m.options.OnContextError != nil {
		m.options.OnContextError(a.chat.ID(), err)
	}
}

// SaveConversation makes sure that the whole current conversation is on the disk: see
// Chat.Save.
func (m *Manager) SaveConversation() error { return m.Current().Save() }

// ListConversations returns a page of all conversations, most recently active first: see
// Sessions.ListConversations.
func (m *Manager) ListConversations(limit, offset int) ([]Info, error) {
	return m.Sessions.ListConversations(limit, offset)
}

// DeleteConversation removes all sessions of a conversation from the store. It reports
// whether they are gone; they are gone, too, if there were none.
func (m *Manager) DeleteConversation(id string) (bool, error) {
	chain, err := m.Sessions.chain(id, reading)
	if err != nil && !errors.Is(err, session.ErrNotExist) {
		return false, err
	}
	m.forget(append(slices.Clone(chain.Links), id))
	for _, id := range slices.Backward(chain.Links) {
		if _, err := m.Sessions.DeleteSession(id); err != nil {
			return false, err
		}
	}
	return true, nil
}

// forget drops conversations that no longer exist.
func (m *Manager) forget(ids []string) {
	for _, id := range ids {
		m.active.Drop(id)
		m.mu.Lock()
		if m.current.chat.ID() == id {
			m.current = m.begin()
		}
		m.mu.Unlock()
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
	return errors.Join(err, m.sessions.Close())
}
