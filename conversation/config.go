package conversation

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// customConfig is the type of the custom entry that holds a conversation's Config.
// The latest counts.
const customConfig = "coppice.conversation.config"

// Config is what one conversation does differently from the others of its manager. A zero
// value means the manager's setting. It is stored with the conversation, so that it holds in
// every program that opens it.
type Config struct {
	// Provider and Model name the model that answers.
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	// Window is the size of the model's window in tokens, MaxReply how much of it
	// is kept free for the reply, MaxRequestBytes the largest request.
	Window          int `json:"window,omitempty"`
	MaxReply        int `json:"max_reply,omitempty"`
	MaxRequestBytes int `json:"max_request_bytes,omitempty"`
	// Shares is how the window is divided between categories.
	Shares window.Shares `json:"shares,omitzero"`
	// Images is how many images are sent: see window.Options.
	Images int `json:"images,omitempty"`
	// MaxMessages is how many messages a session of the conversation may have.
	MaxMessages int `json:"max_messages,omitempty"`
}

// configFor returns the config for a model.
func configFor(c Capabilities) Config {
	return Config{
		Provider: c.Provider, Model: c.Model, Window: c.ContextWindow,
		MaxReply: c.MaxReply, MaxRequestBytes: c.MaxRequestBytes,
	}
}

// apply returns the window options with a config applied.
func (c Config) apply(o window.Options, counters *counters) window.Options {
	if (c.Provider != "" || c.Model != "") && (c.Provider != o.Provider || c.Model != o.Model) {
		o.Provider, o.Model = c.Provider, c.Model
		o.Counter = counters.get(c.Provider, c.Model)
		o.Budget.Tokens, o.Budget.Reserve, o.Budget.Bytes = window.DefaultWindow, 0, 0 // those in o belong to the other model
	}
	set := func(to *int, value int) {
		if value != 0 {
			*to = value
		}
	}
	set(&o.Budget.Tokens, c.Window)
	set(&o.Budget.Reserve, c.MaxReply)
	set(&o.Budget.Bytes, c.MaxRequestBytes)
	set(&o.Images, c.Images)
	if c.Shares != (window.Shares{}) {
		o.Budget.Shares = c.Shares
	}
	return o
}

// check returns an error that matches session.ErrInvalid if a config makes no sense for a
// window.
func (c Config) check(o window.Options, counters *counters) error {
	if c.MaxMessages < 0 {
		return fmt.Errorf("config: %w: at most %d messages in a session", session.ErrInvalid, c.MaxMessages)
	}
	_, err := window.NewPlanner(c.apply(o, counters))
	return err
}

// entry returns the config as it is stored in a log.
func (c Config) entry() (session.Entry, error) {
	var data map[string]any
	raw, err := json.Marshal(c)
	if err == nil {
		err = decode(raw, &data)
	}
	if err != nil {
		return session.Entry{}, fmt.Errorf("config: %w: %w", session.ErrInvalid, err)
	}
	return session.Custom(customConfig, data), nil
}

// configOf reads what entry wrote. It ignores what does not fit.
func configOf(e *session.CustomEntry) Config {
	var c Config
	if raw, err := json.Marshal(e.Data); err == nil {
		_ = json.Unmarshal(raw, &c)
	}
	return c
}

// configChanges returns the entries that give a link a config.
func (l *link) configChanges(c Config) ([]session.Entry, error) {
	if l.config == c {
		return nil, nil
	}
	e, err := c.entry()
	if err != nil {
		return nil, err
	}
	entries := []session.Entry{e}
	if c.Provider != l.config.Provider || c.Model != l.config.Model {
		entries = append(entries, session.ModelChange(c.Provider, c.Model))
	}
	return entries, nil
}

// Config returns the settings of a session's conversation.
func (m *Sessions) Config(id string) (Config, error) {
	l, done, err := m.end(id, reading)
	if err != nil {
		return Config{}, err
	}
	defer done()
	return l.config, nil
}

// Configure changes the settings of a session's conversation.
func (m *Sessions) Configure(id string, c Config) error {
	if err := c.check(window.Options{}, newCounters(nil, nil)); err != nil {
		return err
	}
	return m.change("configure", id, func(l *link) ([]session.Entry, error) { return l.configChanges(c) })
}
