package home

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/window"
)

// ChatRequest says which conversation to have, and with whom.
type ChatRequest struct {
	// Session is the conversation to continue, as a person names it: see Resolve. Default: a
	// new one, which is created with the first message.
	Session string `json:"session,omitempty"`
	// Title is the display name of a new session. Default: none.
	Title string `json:"title,omitempty"`
	// CWD is the directory in which tools work, and which a new session is about. Default:
	// that of the conversation, or the current one if it has none.
	CWD string `json:"cwd,omitempty"`
	// Provider and Model name the model that answers. Default: those of the settings.
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	// System is the instructions, which the model is sent before everything else. Default: those
	// of the project or of the settings, else those that the conversation has.
	System string `json:"system,omitempty"`
	// Thinking is how much the model thinks. Default: as in the conversation so far.
	Thinking string `json:"thinking,omitempty"`
	// Context are files that the model should know. They are read when something is
	// said; one that the conversation has already is added again only if it changed.
	Context []string `json:"context,omitempty"`
	// Tools are the built-in tools that the model gets, by their names; AllTools are all of
	// them, and NoTools none. Default: those of the project and of the settings.
	Tools []string `json:"tools,omitempty"`
	// Servers are MCP servers whose tools the model gets: command lines for the shell, or
	// addresses that begin with http:// or https://. "NAME: " before one says what the
	// names of its tools begin with; otherwise it is the program's name, or the host.
	Servers []string `json:"servers,omitempty"`
	// Allow and Deny are rules about calls: docs/agent.md has their form.
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
	// Env names variables that commands get although they look like a key, a token or a
	// password.
	Env []string `json:"env,omitempty"`
}

// Chat is a conversation between a person and a model: its turns are those of a home, and keep
// the tools, their servers and the rules from one to the next. Its methods are for one goroutine;
// those of a Turn may be called by several. While a turn runs, the model and its tools stay: to
// change them is agent.ErrBusy.
type Chat struct {
	home   *Home
	r      ChatRequest
	asks   Questions
	own    []agent.Tool // of the program around the chat
	chosen *ChosenModel
	counts modelCounter
	c      *Conversation // nil until there is a session
	agent  *agent.Agent
	turn   atomic.Pointer[Turn] // the last one
	bare   bool                 // see newChat
	dir    string               // where tools work
	box    *toolbox             // nil until it is needed
	tools  []agent.Tool         // of the box, and its own
	named  []string             // the built-in tools among them, as they were asked for
	// project is what the directory says about chats in it, or nil; broken is why it is not
	// used if a file of it is wrong.
	project *Project
	broken  error
	// shown has the context files that were read, and whether they were still there the last
	// time.
	shown           map[string]bool
	reportedMissing []MissingContent // missing content that the user was told about
}

// Chat begins or continues a conversation with a model, which also gets the program's own tools.
// Nothing is written before the first message. Close the chat after use; its turns end with it.
func (h *Home) Chat(ctx context.Context, o TurnOptions, own ...agent.Tool) (*Chat, error) {
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	return h.newChat(ctx, &o, own, false)
}

// newChat is Chat. With bare, the model has no tools but its own, whatever the settings, the
// project and the conversation say, and there need not be a directory.
func (h *Home) newChat(ctx context.Context, o *TurnOptions, own []agent.Tool, bare bool) (*Chat, error) {
	r := o.ChatRequest
	if !files.IsText([]byte(r.System)) {
		return nil, &session.Error{Op: "chat", Name: r.Session, Err: wrong("system", "the instructions are not text")}
	}
	chat := &Chat{home: h, r: r, asks: o.Questions, own: own, tools: own, bare: bare}
	if err := chat.open(ctx); err != nil {
		return nil, errors.Join(err, chat.Close())
	}
	return chat, nil
}

// open finds the conversation, its directory, its tools and its model.
func (c *Chat) open(ctx context.Context) (err error) {
	if c.r.Session != "" {
		if c.c, err = c.home.openWhole(ctx, c.r.Session); err != nil {
			return err
		}
	}
	c.dir = c.workDir()
	if c.dir != "" && !isConfined(ctx) {
		c.project, err = c.home.Project(ctx, c.dir)
	}
	switch {
	case err != nil && (c.project == nil || c.project.Trusted):
		return err
	case err != nil: // not a mistake of this caller
		c.project, c.broken = nil, err
	}
	names := c.names()
	if r := c.withProjectTools(); !c.bare && len(names)+len(c.r.Allow)+len(c.r.Deny)+len(serversOf(&r, c.project)) > 0 {
		if err := c.useTools(ctx, names); err != nil {
			return err
		}
	}
	if c.c != nil {
		return c.restore()
	}
	c.chosen, err = c.home.settings.ModelFor(nil, c.choice())
	return err
}

// withProjectTools returns the request with the rules and the servers of the settings and of the
// project.
func (c *Chat) withProjectTools() ChatRequest {
	r := c.r
	all := func(key string, own []string) []string {
		return slices.Concat(c.home.settings.list(key), c.project.list(key), own)
	}
	r.Allow, r.Deny, r.Servers = all(SettingAllow, r.Allow), all(SettingDeny, r.Deny), all(SettingMCP, r.Servers)
	return r
}

// names returns the built-in tools that the chat begins with: those of the request, those
// that the conversation had, those of the project or of the settings, whichever comes first
// and says anything.
func (c *Chat) names() []string {
	for _, names := range [][]string{c.r.Tools, c.hadTools(), c.project.list(SettingTools), c.home.settings.list(SettingTools)} {
		if len(names) > 0 {
			return names
		}
	}
	return nil
}

// choice returns the model that the request names or, for a new conversation, the project.
func (c *Chat) choice() ModelChoice {
	choice := ModelChoice{Provider: c.r.Provider, Model: c.r.Model, Thinking: c.r.Thinking}
	if c.c == nil && c.project != nil && c.project.Trusted {
		if choice.Provider+choice.Model == "" {
			choice.Model = c.project.values[SettingModel]
		}
		choice.Thinking = cmp.Or(choice.Thinking, c.project.values[SettingThinking])
	}
	return choice
}

// Project returns what the directory says about chats in it, or nil. If it is not trusted, it
// has no effect: see Home.Trust. Notes for agents alone count only if the model has tools.
func (c *Chat) Project() *Project {
	if c.project != nil && c.project.digest == "" && len(c.tools) == 0 {
		return nil
	}
	return c.project
}

// Warnings returns what is missing in the chat, and why: the settings of a project that has a
// wrong file and is not trusted, and MCP servers that did not start.
func (c *Chat) Warnings() (all []string) {
	if c.broken != nil {
		all = append(all, "the project's settings are not used: "+Describe(c.broken).Message)
	}
	if c.box != nil {
		all = append(all, c.box.warnings...)
	}
	return all
}

// workDir returns where tools work: in the requested directory, or else in the
// conversation's, wherever the program itself runs.
func (c *Chat) workDir() string {
	dir := c.r.CWD
	if dir == "" && c.c != nil {
		dir = c.c.Header().CWD
	}
	if c.bare && dir == "" {
		return ""
	}
	if whole, err := filepath.Abs(dir); err == nil {
		return whole
	}
	return dir
}

// Dir returns the directory in which tools work.
func (c *Chat) Dir() string { return c.dir }

// maxInstructions is how long a file with instructions may be, in bytes. They are sent with
// every request.
const maxInstructions = 4 << 20

// ReadInstructions reads a file with instructions for a model, for ChatRequest.System.
func ReadInstructions(path string) (string, error) {
	text, err := vfs.ReadFile(path, maxInstructions)
	if err != nil {
		return "", fmt.Errorf("instructions: %w", err)
	}
	return string(text), nil
}

// restore finds the model with which the conversation continues.
func (c *Chat) restore() error {
	now, err := c.c.Context(session.ContextOptions{Shared: true})
	if err != nil {
		return err
	}
	if c.chosen, err = c.home.settings.ModelFor(now, c.choice()); err != nil {
		return err
	}
	return c.newAgent()
}

// newAgent makes an agent for the session.
func (c *Chat) newAgent() error {
	system, err := c.Instructions()
	if err != nil {
		return err
	}
	if err := c.counts.follow(c.chosen.Model); err != nil {
		return err
	}
	c.agent, err = agent.New(c.c.Session, agent.Options{
		Model: c.chosen.Model, Thinking: c.chosen.Thinking, MaxTokens: c.chosen.MaxTokens,
		System: system, Tools: c.tools, Counter: &c.counts,
		Approve: func(ctx context.Context, call agent.Call) (agent.Decision, error) {
			return c.turn.Load().approve(ctx, call)
		},
	})
	return err
}

// modelCounter counts as the model of a chat does, which may change.
type modelCounter struct {
	now atomic.Pointer[window.Counter]
}

// follow makes it count as a model does: exactly, if there is a vocabulary for it.
func (m *modelCounter) follow(model provider.Model) error {
	info := model.Info()
	counter, err := counterNamed("", info.Provider, info.Model)
	if err == nil {
		m.now.Store(&counter)
	}
	return err
}

func (m *modelCounter) Name() string              { return (*m.now.Load()).Name() }
func (m *modelCounter) CountText(text string) int { return (*m.now.Load()).CountText(text) }

// Conversation returns the conversation of the chat, or nil if there is none yet. The chat
// closes it.
func (c *Chat) Conversation() *Conversation { return c.c }

// Request returns the request that began the chat, with later changes.
func (c *Chat) Request() ChatRequest { return c.r }

// Waited reports whether a server took long to start: see ServerStarting.
func (c *Chat) Waited() bool { return c.box != nil && c.box.waited }

// Tools returns what the model may use now.
func (c *Chat) Tools() []agent.Tool { return c.tools }

// Model returns the model that answers, and who chose it.
func (c *Chat) Model() ChosenModel { return *c.chosen }

// idle returns agent.ErrBusy while a turn of the chat runs, which goes on as it began.
func (c *Chat) idle() error {
	if c.turn.Load().isRunning() {
		return agent.ErrBusy
	}
	return nil
}

// SetModel lets another model answer from now on: a name, or provider/model. A name without a
// provider means a model of the settings' provider, or else one of Settings.Models.
func (c *Chat) SetModel(name string) error {
	if err := c.idle(); err != nil {
		return err
	}
	next, err := c.home.settings.ModelFor(nil, ModelChoice{Model: name, Thinking: c.r.Thinking})
	if err != nil {
		found, _ := c.home.settings.Models() // errors in the prices do not matter here
		for i := 0; found != nil && i < len(found.Models); i++ {
			if m := &found.Models[i]; m.Model == name {
				name = m.Name()
				next, err = c.home.settings.ModelFor(nil, ModelChoice{Model: name, Thinking: c.r.Thinking})
				break
			}
		}
	}
	if err != nil {
		return err
	}
	if c.agent != nil {
		if err := errors.Join(c.agent.SetModel(next.Model), c.counts.follow(next.Model)); err != nil {
			return err
		}
	}
	c.chosen, c.r.Provider, c.r.Model = next, "", name
	return nil
}

// SetThinking changes how much the model thinks.
func (c *Chat) SetThinking(level string) error {
	if err := provider.CheckThinking(level); err != nil {
		return wrongAs("thinking", err)
	}
	if err := c.idle(); err != nil {
		return err
	}
	if c.agent != nil {
		if err := c.agent.SetThinking(level); err != nil {
			return err
		}
	}
	c.r.Thinking, c.chosen.Thinking = level, level
	return nil
}

// SetTools changes which built-in tools the model may use, by their names: see ChatRequest.
// The tools of MCP servers and of the program stay.
func (c *Chat) SetTools(ctx context.Context, names ...string) error {
	if err := c.idle(); err != nil {
		return err
	}
	if err := c.useTools(ctx, names); err != nil {
		return err
	}
	c.r.Tools = names
	return nil
}

func (c *Chat) useTools(ctx context.Context, names []string) error {
	box, err := c.toolbox(ctx)
	if err != nil {
		return err
	}
	list, err := box.tools(names)
	if err != nil {
		return err
	}
	list = append(list, c.own...)
	if c.agent != nil {
		if err := c.agent.SetTools(list...); err != nil {
			return err
		}
	}
	c.tools, c.named = list, names
	if c.agent == nil {
		return nil
	}
	system, err := c.Instructions() // the instructions depend on whether there are tools
	if err != nil {
		return err
	}
	return c.agent.SetSystem(system)
}

// adoptChangedTools gives the model the tools that MCP servers have now, if they are others than
// before. A turn that is under way keeps those that it began with.
func (c *Chat) adoptChangedTools() error {
	if c.box == nil || len(c.box.servers) == 0 {
		return nil
	}
	list, err := c.box.tools(c.named)
	if err != nil {
		return err
	}
	list = append(list, c.own...)
	if agent.SameTools(list, c.tools) {
		return nil
	}
	c.tools = list
	return c.agent.SetTools(list...)
}

// toolbox returns the tools that the model may be given in the chat's directory, and the rules for
// them.
func (c *Chat) toolbox(ctx context.Context) (_ *toolbox, err error) {
	if c.box == nil {
		r := c.withProjectTools()
		c.box, err = newToolbox(ctx, c.dir, &r, serversOf(&r, c.project), c.search, c.home.notify)
		if turn := c.turn.Load(); turn != nil && err == nil {
			turn.setToolbox(c.box)
		}
	}
	return c.box, err
}

// Allow adds rules, which all tools obey from now on, and returns those that allow calls by now. If
// one is invalid, it adds none.
func (c *Chat) Allow(ctx context.Context, rules ...string) ([]string, error) {
	box, err := c.toolbox(ctx)
	if err != nil {
		return nil, err
	}
	return box.allow(rules...)
}

// errNothingSaid means that a chat has no session yet.
var errNothingSaid = session.Invalidf("nothing was said yet")

// ChatStatus is how far a chat has come.
type ChatStatus struct {
	agent.Status
	// Name is what a person can type for the session; Title is what it is called.
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
	// Branch is the number of the branch that the conversation is on, and Branches how many
	// there are. Branch is 0 at an entry that others follow.
	Branch   int `json:"branch"`
	Branches int `json:"branches"`
}

// Status returns how far the chat has come.
func (c *Chat) Status(ctx context.Context) (s ChatStatus, err error) {
	if c.c == nil {
		info := c.chosen.Model.Info()
		s.Provider, s.Model, s.Window, s.Thinking, s.Title = info.Provider, info.Model, info.Window, c.chosen.Thinking, c.r.Title
		return s, nil
	}
	if s.Status, err = c.agent.Status(); err != nil {
		return s, err
	}
	if s.Name, err = c.c.shortName(ctx); err != nil {
		return s, err
	}
	if s.Title, err = c.c.Name(); err != nil {
		return s, err
	}
	leaves, err := c.c.Leaves()
	if err != nil {
		return s, err
	}
	end, err := conversationEnd(c.c.Session, c.c.LeafID())
	s.Branches, s.Branch = len(leaves), slices.Index(leaves, end)+1
	return s, err
}

// Explain returns ErrRemoved in place of an error of the chat's agent which only says that
// something does not exist, if the whole conversation was removed.
func (c *Chat) Explain(err error) error {
	if c.c == nil || !errors.Is(err, session.ErrNotExist) {
		return err
	}
	if _, gone := c.home.resolve(context.Background(), c.c.ID()); errors.Is(gone, session.ErrNotExist) {
		return ErrRemoved
	}
	return err
}

// Close ends the chat. A turn that is under way ends, and what has arrived is kept.
func (c *Chat) Close() error {
	var errs []error
	if c.agent != nil {
		errs = append(errs, c.agent.Close())
	}
	if turn := c.turn.Load(); turn != nil && turn.chat == c { // otherwise it is the turn that closes the chat
		<-turn.done
	}
	if c.c != nil {
		errs = append(errs, c.c.Close())
	}
	if c.box != nil {
		errs = append(errs, c.box.close())
	}
	c.agent, c.c, c.box = nil, nil, nil
	return errors.Join(errs...)
}
