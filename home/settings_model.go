package home

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
)

// Providers lists the providers of models. The first is built in, and needs neither a network
// nor a key.
func Providers() []string { return append([]string{offline.Name}, client.Providers()...) }

// ModelChoice says which model to ask instead of the one in the settings. Empty fields are as
// in the settings.
//
// A model's name may begin with its provider, as in anthropic/claude-sonnet-4-5, if Provider
// is empty. If the choice names another provider than the settings, nothing else is taken
// from the settings: an address, a command for a key and a model's name belong to one
// provider.
type ModelChoice struct {
	Provider string `json:"provider,omitempty"` // who is asked: one of Providers
	Model    string `json:"model,omitempty"`    // its name
	BaseURL  string `json:"base_url,omitempty"` // where the provider is, for one that is not at its usual address
	Thinking string `json:"thinking,omitempty"` // how much the model thinks: one of provider.ThinkingLevels
}

// ModelFrom says who chose a model.
type ModelFrom string

// Who may have chosen a model.
const (
	FromChoice   ModelFrom = "choice"   // the request
	FromSession  ModelFrom = "session"  // it is the one that the conversation had
	FromSettings ModelFrom = "settings" // the environment or the configuration file
	FromDefault  ModelFrom = "default"  // no one did: it is the built-in one
)

// ChosenModel is a model, and what the settings say about how to ask it.
type ChosenModel struct {
	Model     provider.Model
	Thinking  string // a thinking level; "" is the provider's default
	MaxTokens int    // the longest answer; 0 is what the provider allows
	From      ModelFrom
	// Was is the model that the conversation had, as provider/model, if another answers now:
	// it is chosen, or the settings do not say how to reach the other.
	Was string
}

// ModelFor returns the model with which a conversation continues: the chosen one, or else the
// one that it had, if it can be reached, or else the one in the settings. now is the
// conversation's context, or nil for a new one.
//
// The model that a conversation had can be reached through the provider in the settings if
// that is the same, or else if the environment has a key for its provider. The built-in one
// can always be reached: its conversations stay on this machine until another model is chosen.
// If the settings name the built-in one, every conversation stays with it.
func (s *Settings) ModelFor(now *session.Context, c ModelChoice) (*ChosenModel, error) {
	if err := provider.CheckThinking(c.Thinking); err != nil {
		return nil, wrongAs(SettingThinking, err)
	}
	chosen := &ChosenModel{From: FromSettings, Thinking: c.Thinking, MaxTokens: int(s.number(SettingMaxTokens))}
	if s.isOfflineByDefault() {
		chosen.From = FromDefault
	}
	model := s.model
	if now != nil {
		if had, ok := s.settingsFor(now.Provider, now.Model); ok {
			model, chosen.From = had, FromSession
		}
		if chosen.Thinking == "" {
			chosen.Thinking = provider.KnownThinking(now.ThinkingLevel)
		}
	}
	if chosen.Thinking == "" {
		chosen.Thinking = s.Get(SettingThinking).Value
	}
	if c.Provider+c.Model+c.BaseURL != "" {
		if model[SettingProvider].Value == offline.Name {
			model = s.model // the built-in provider has no other model
		}
		model, chosen.From = model.with(c.asSource()), FromChoice
	}
	var err error
	if chosen.Model, err = s.build(model); err != nil {
		return nil, err
	}
	if info := chosen.Model.Info(); now != nil && now.Model != "" && (now.Provider != info.Provider || now.Model != info.Model) {
		chosen.Was = now.Provider + "/" + now.Model
	}
	return chosen, nil
}

// isOfflineByDefault reports whether the model is the built-in one because no other was
// chosen.
func (s *Settings) isOfflineByDefault() bool {
	return s.Get(SettingProvider).Origin == originDefault && s.Get(SettingModel).Value == ""
}

// modelSettings are the settings that lead to one model.
type modelSettings map[string]Setting

// isModelSetting reports whether a setting applies only to the provider that it was set for.
func isModelSetting(key string) bool {
	switch key {
	case SettingProvider, SettingModel, SettingBaseURL, SettingKeyCommand, SettingWindow:
		return true
	}
	return false
}

func modelIn(places []settingSource) modelSettings {
	var all modelSettings
	for _, p := range places {
		all = all.with(p)
	}
	return all
}

// with returns the settings after those of a source that wins over them. If the source
// names another provider, all others go: the key of one provider must never be sent to
// another.
func (h modelSettings) with(p settingSource) modelSettings {
	here := make(modelSettings)
	for i := range rules {
		if v, ok := p(&rules[i]); ok && v.Value != "" && isModelSetting(v.Key) {
			here[v.Key] = v
		}
	}
	here.splitModel()
	all := make(modelSettings)
	was, is := h[SettingProvider].Value, here[SettingProvider].Value
	for key, v := range h {
		switch {
		case was != "" && is != "" && was != is:
		case key == SettingWindow && here[SettingModel].Value != "" && here[SettingModel].Value != h[SettingModel].Value:
		default:
			all[key] = v
		}
	}
	for key, v := range here {
		all[key] = v
	}
	return all
}

// splitModel takes the provider out of the model's name, if it is in there. A name that
// comes with another provider stays as it is: gateways have models such as
// anthropic/claude-sonnet-4-5.
func (h modelSettings) splitModel() {
	m := h[SettingModel]
	name, model := splitModel(m.Value)
	p := h[SettingProvider].Value
	if model == "" || !slices.Contains(Providers(), name) || p != "" && p != name {
		return
	}
	h[SettingModel] = Setting{SettingModel, model, m.Origin}
	if p == "" {
		h[SettingProvider] = Setting{SettingProvider, name, m.Origin}
	}
}

func (h modelSettings) get(r *rule) Setting {
	if v, ok := h[r.key]; ok {
		return v
	}
	return r.byDefault()
}

// asSource returns the choice as a source of settings.
func (c ModelChoice) asSource() settingSource {
	return settingSources(nil, nil, "", []Setting{
		{SettingProvider, c.Provider, "request"}, {SettingModel, c.Model, "request"}, {SettingBaseURL, c.BaseURL, "request"},
	})[2]
}

// noProvider says why a name alone does not name a model.
func noProvider(model string) error {
	if first, _, ok := strings.Cut(model, "/"); ok {
		return session.Invalidf("there is no provider %q", first)
	}
	return session.Invalidf("no provider is set")
}

// build returns the model.
func (s *Settings) build(h modelSettings) (provider.Model, error) {
	name, model := h[SettingProvider], h[SettingModel]
	switch {
	case name.Value == "" && model.Value != "":
		return nil, &session.Error{
			Op: "find model", Name: model.Value, Err: noProvider(model.Value),
			Hint: "the " + SettingProvider + " is one of " + strings.Join(Providers(), ", ") + "; provider/model names both at once",
		}
	case name.Value == "" || name.Value == offline.Name:
		if model.Value != "" && model.Value != offline.ModelName {
			return nil, &session.Error{
				Op: "find model", Name: model.Value, Err: session.Invalidf("the provider %s has one model, %s", offline.Name, offline.ModelName),
				Hint: "name the provider of this model: " + strings.Join(client.Providers(), ", "),
			}
		}
		return s.offline(h), nil
	case !slices.Contains(client.Providers(), name.Value):
		return nil, &session.Error{
			Op: "find model", Err: session.Invalidf("there is no provider %q", name.Value),
			Hint: "it is one of " + strings.Join(Providers(), ", "),
		}
	case model.Value == "":
		return nil, &session.Error{
			Op: "find model", Err: session.Invalidf("the provider is %s (%s), but no model is named", name.Value, name.Origin),
			Hint: "set " + SettingModel + " to the name of one of its models",
		}
	}
	key, err := s.key(h)
	if err != nil {
		return nil, err
	}
	found, err := client.New(client.Options{
		Provider: name.Value, Model: model.Value, BaseURL: h[SettingBaseURL].Value,
		Key: key, Window: h.window(), Families: s.families(), Refusals: s.refused,
	})
	if err != nil {
		return nil, forCaller("find model", model.Value, err)
	}
	return found, nil
}

// families returns the families of models in the settings.
func (s *Settings) families() []provider.Family {
	own, _ := provider.ParseFamilies(s.list(SettingModels)) // the rule has checked them
	return own
}

// family returns the family of a model.
func (s *Settings) family(model string) provider.Family {
	f, _ := provider.FamilyOf(model, s.families()...)
	return f
}

func (s *Settings) offline(h modelSettings) *offline.Model {
	if h[SettingProvider].Value != offline.Name {
		return &offline.Model{} // the window is another model's
	}
	return &offline.Model{Window: h.window()}
}

func (h modelSettings) window() int {
	n, _ := strconv.Atoi(h[SettingWindow].Value) // the rule has checked it
	return n
}

// openAIChat is the provider for all servers that speak Chat Completions. A server of
// one's own is recorded by this name: see client.Options.
const openAIChat = "openai-chat"

// settingsFor returns the settings that lead to a model with the names that a conversation has
// recorded.
func (s *Settings) settingsFor(providerName, model string) (modelSettings, bool) {
	own := s.model[SettingProvider].Value
	switch {
	case providerName == offline.Name && model == offline.ModelName && own != offline.Name:
		return modelSettings{SettingProvider: Setting{Key: SettingProvider, Value: offline.Name}}, true
	case model == "" || own == offline.Name:
		return nil, false
	}
	for _, through := range []string{own, providerName} {
		if !slices.Contains(client.Providers(), through) {
			continue
		}
		h := s.model.with(ModelChoice{Provider: through, Model: model}.asSource())
		if found, err := s.build(h); err == nil && found.Info().Provider == providerName {
			return h, true
		}
	}
	return nil, false
}

// key returns where the key of a provider comes from. A key_command was set for this
// program, so it wins over the environment, which is there for every program. An address
// other than the provider's own may need no key.
func (s *Settings) key(h modelSettings) (client.KeyFunc, error) {
	name, base := h[SettingProvider].Value, h[SettingBaseURL].Value
	if command := h[SettingKeyCommand].Value; command != "" {
		return client.CommandKey(command), nil
	}
	variable, key := client.KeyVariable(name), ""
	key = strings.TrimSpace(s.env(variable))
	switch {
	case key != "" && isPrivate(base):
		return client.StaticKey(key), nil
	case base != "":
		return nil, nil
	}
	return nil, &session.Error{
		Op: "ask", Name: name + "/" + h[SettingModel].Value, Kind: provider.ErrDenied, Err: errors.New("there is no key"),
		Hint: "put it into the environment as " + variable + ", or set " + SettingKeyCommand +
			" to a command that prints it; a server of your own needs none if " + SettingBaseURL + " says where it is",
	}
}

// isPrivate reports whether a key from the environment may be sent to an address. A server
// that may need no key should not get one over a connection that others can read.
func isPrivate(base string) bool {
	u, err := url.Parse(base)
	return err == nil && (u.Scheme != "http" || isHere(u))
}

// isHere reports whether an address is one of this machine.
func isHere(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// isGateway reports whether an address is that of another machine, which may pass requests on
// to any provider.
func isGateway(base string) bool {
	u, err := url.Parse(base)
	return base != "" && err == nil && !isHere(u)
}

// keyBeginning matches the beginning of a provider's key. Package redact must be sure that
// something is a key before it destroys it. A key does not belong here at all, so the
// beginning is enough.
var keyBeginning = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(sk-|gsk_|xai-|AIza)[\w-]{8,}`) })

// showable returns the value of a setting without any key or password in it.
func showable(key, value string) string {
	switch key {
	case SettingKeyCommand:
		value, _ = redact.Text(value)
		value = keyBeginning().ReplaceAllString(value, "${1}…")
	case SettingBaseURL:
		if u, err := url.Parse(value); err == nil && u.User != nil {
			u.User = url.User("xxxxx")
			return u.String()
		}
	case SettingDir:
		u, err := url.Parse(value)
		if err != nil {
			return value
		}
		if _, has := u.User.Password(); has {
			u.User = url.UserPassword(u.User.Username(), "xxxxx")
			value = u.String()
		}
		if q := u.Query(); u.Scheme != "" && q.Has("password") {
			q.Set("password", "xxxxx")
			u.RawQuery = q.Encode()
			value = u.String()
		}
	}
	return value
}
