package home_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/providertest"
	"github.com/coppice-dev/coppice/session"
)

// aKey looks like a real key to whoever looks for secrets.
const aKey = "sk-ant-api03-" + "Kq8Zt2vRx7LmWp4NcYb9HsDf3GjTu6EaQo1XiVkBrMn5PyCwSzAhUeJgOl0dFtR7xKq9Zt2vRx8LmWp3Nc-Yb9HsQAA"

// modelOf returns the model that settings and a choice name.
func modelOf(s *home.Settings, c home.ModelChoice) (provider.Model, error) {
	chosen, err := s.ModelFor(nil, c)
	if err != nil {
		return nil, err
	}
	return chosen.Model, nil
}

// configured returns an environment with a configuration file.
func configured(t *testing.T, toml string, e env) env {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(toml), 0o600); err != nil {
		t.Fatal(err)
	}
	all := env{"COPPICE_CONFIG": path}
	for name, value := range e {
		all[name] = value
	}
	return all
}

// named returns a model as provider/model.
func named(m provider.Model) string { return m.Info().Provider + "/" + m.Info().Model }

func TestModelOfTheSettings(t *testing.T) {
	t.Parallel()
	keys := env{"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}
	for name, tt := range map[string]struct {
		toml   string
		env    env
		choice home.ModelChoice
		want   string
	}{
		"nothing":                        {"", nil, home.ModelChoice{}, "offline/parrot"},
		"both":                           {"provider = 'anthropic'\nmodel = 'c'", keys, home.ModelChoice{}, "anthropic/c"},
		"in one name":                    {"model = 'anthropic/c'", keys, home.ModelChoice{}, "anthropic/c"},
		"the provider twice":             {"provider = 'anthropic'\nmodel = 'anthropic/c'", keys, home.ModelChoice{}, "anthropic/c"},
		"a gateway's own names":          {"provider = 'openai-chat'\nbase_url = 'https://gateway.example/v1'\nmodel = 'anthropic/c'", nil, home.ModelChoice{}, "openai-chat/anthropic/c"},
		"a local server":                 {"provider = 'openai-chat'\nbase_url = 'http://localhost:1/v1'\nmodel = 'llama'", nil, home.ModelChoice{}, "openai-chat/llama"},
		"another model":                  {"model = 'anthropic/c'", keys, home.ModelChoice{Model: "d"}, "anthropic/d"},
		"a name with an unknown part":    {"provider = 'openai-chat'\nmodel = 'm'", keys, home.ModelChoice{Model: "meta/llama"}, "openai/meta/llama"},
		"another provider":               {"model = 'anthropic/c'", keys, home.ModelChoice{Model: "openai/g"}, "openai/g"},
		"the environment over the file":  {"model = 'anthropic/c'", env{"COPPICE_MODEL": "openai/g", "OPENAI_API_KEY": "o"}, home.ModelChoice{}, "openai/g"},
		"provider there, model here":     {"model = 'g'", env{"COPPICE_PROVIDER": "openai", "OPENAI_API_KEY": "o"}, home.ModelChoice{}, "openai/g"},
		"offline over what is set":       {"model = 'anthropic/c'", keys, home.ModelChoice{Provider: "offline"}, "offline/parrot"},
		"a command instead of the key":   {"model = 'anthropic/c'\nkey_command = 'pass show a'", nil, home.ModelChoice{}, "anthropic/c"},
		"the built-in model by its name": {"", nil, home.ModelChoice{Model: "offline/parrot"}, "offline/parrot"},
	} {
		m, err := modelOf(settings(t, configured(t, tt.toml, tt.env)), tt.choice)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := named(m); got != tt.want {
			t.Errorf("%s: the model is %s, want %s", name, got, tt.want)
		}
	}
}

// What is missing is named, so that a person can set it.
func TestModelThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		toml   string
		choice home.ModelChoice
		kind   error
		says   []string // words of the error
	}{
		"no model":            {"provider = 'google'", home.ModelChoice{}, session.ErrInvalid, []string{"google", "model"}},
		"no provider":         {"model = 'gpt-5'", home.ModelChoice{}, session.ErrInvalid, []string{"gpt-5", "provider", "openai-chat"}},
		"an unknown provider": {"", home.ModelChoice{Provider: "acme", Model: "m"}, session.ErrInvalid, []string{"acme", "offline", "anthropic", "google"}},
		"an unknown prefix":   {"", home.ModelChoice{Model: "acme/m"}, session.ErrInvalid, []string{"acme/m", "anthropic"}},
		"no key":              {"model = 'anthropic/c'", home.ModelChoice{}, provider.ErrDenied, []string{"ANTHROPIC_API_KEY", "key_command", "base_url"}},
		"a model of offline":  {"provider = 'offline'\nmodel = 'gpt-5'", home.ModelChoice{}, session.ErrInvalid, []string{"parrot"}},
		"a wrong address":     {"model = 'openai/g'\nkey_command = 'x'", home.ModelChoice{BaseURL: "localhost:1"}, session.ErrInvalid, []string{"http://"}},
	} {
		_, err := modelOf(settings(t, configured(t, tt.toml, nil)), tt.choice)
		if !errors.Is(err, tt.kind) {
			t.Errorf("%s: the error is %v, want %v", name, err, tt.kind)
			continue
		}
		for _, word := range tt.says {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: the error does not say %q: %v", name, word, err)
			}
		}
	}
	if _, err := settings(t, env{}).ModelFor(nil, home.ModelChoice{Thinking: "much"}); home.KindOf(err) != home.KindInvalid {
		t.Errorf("an unknown thinking level: %v", err)
	}
}

// The settings that hold are those of the provider that holds.
func TestSettingsOfAnotherProviderDoNotHold(t *testing.T) {
	t.Parallel()
	file := "provider = 'openai-chat'\nbase_url = 'http://localhost:1/v1'\nmodel = 'llama'\nwindow = 9000\nkey_command = 'pass show llama'\nthinking = 'low'"
	s := settings(t, configured(t, file, env{"COPPICE_PROVIDER": "anthropic"}))
	for key, want := range map[string]string{
		"provider": "anthropic", "model": "", "base_url": "", "key_command": "", "window": "0", "thinking": "low",
	} {
		if got := s.Get(key).Value; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	same := settings(t, configured(t, file, env{"COPPICE_PROVIDER": "openai-chat"}))
	if got := same.Get("base_url").Value; got != "http://localhost:1/v1" {
		t.Errorf("the same provider lost its address: %q", got)
	}
	for model, want := range map[string]int{"": 9000, "llama": 9000, "gpt-4o": 128_000} {
		m, err := modelOf(same, home.ModelChoice{Model: model})
		if err != nil || m.Info().Window != want {
			t.Errorf("the window of %q is %+v, want %d (%v)", model, m.Info(), want, err)
		}
	}
}

// sent returns the header in which the server got a key.
func sent(t *testing.T, toml string, e env, choice home.ModelChoice) string {
	t.Helper()
	server := providertest.New(t, func(*providertest.Request) providertest.Answer { return providertest.Answer{} })
	e["COPPICE_BASE_URL"] = server.URL
	m, err := modelOf(settings(t, configured(t, toml, e)), choice)
	if err != nil {
		t.Fatal(err)
	}
	said := session.Entry{ID: "a", Type: session.TypeMessage, Message: &session.MessageEntry{
		Role: session.RoleUser, Content: []session.Content{session.Text("hello")},
	}}
	if _, err := provider.Respond(t.Context(), m, &provider.Request{Entries: []session.Entry{said}}, nil); err != nil {
		t.Fatal(err)
	}
	return server.Requests()[0].Header.Get("X-Api-Key")
}

func TestKeyComesFromTheCommandOrTheEnvironment(t *testing.T) {
	t.Parallel()
	file := "model = 'anthropic/claude-x'\n"
	if got := sent(t, file, env{"ANTHROPIC_API_KEY": " of-the-environment\n"}, home.ModelChoice{}); got != "of-the-environment" {
		t.Errorf("the key is %q", got)
	}
	if got := sent(t, file, env{"OPENAI_API_KEY": "other"}, home.ModelChoice{}); got != "" {
		t.Errorf("a local server got the key %q of another provider", got)
	}
	if runtime.GOOS == "windows" {
		return // the command below is for a Unix shell
	}
	file += "key_command = 'printf of-the-command'\n"
	if got := sent(t, file, env{"ANTHROPIC_API_KEY": "of-the-environment"}, home.ModelChoice{}); got != "of-the-command" {
		t.Errorf("the key is %q, want the command's", got)
	}
}

// The model that a conversation had is kept if it can be reached.
func TestConversationGoesOnWithItsModel(t *testing.T) {
	t.Parallel()
	const local = "provider = 'openai-chat'\nbase_url = 'http://localhost:1/v1'\nmodel = 'llama'"
	keys := env{"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}
	for name, tt := range map[string]struct {
		toml   string
		env    env
		had    string // as provider/model
		choice home.ModelChoice
		want   string
		from   home.ModelFrom
		was    string
	}{
		"new":                                {"model = 'anthropic/c'", keys, "/", home.ModelChoice{}, "anthropic/c", home.FromSettings, ""},
		"new, nothing set":                   {"", keys, "/", home.ModelChoice{}, "offline/parrot", home.FromDefault, ""},
		"another model of the provider":      {"model = 'anthropic/c'", keys, "anthropic/d", home.ModelChoice{}, "anthropic/d", home.FromSession, ""},
		"another provider, with a key":       {"model = 'anthropic/c'", keys, "openai/g", home.ModelChoice{}, "openai/g", home.FromSession, ""},
		"another provider, without a key":    {"model = 'anthropic/c'", keys, "google/g", home.ModelChoice{}, "anthropic/c", home.FromSettings, "google/g"},
		"a provider that nobody knows":       {"model = 'anthropic/c'", keys, "acme/m", home.ModelChoice{}, "anthropic/c", home.FromSettings, "acme/m"},
		"nothing set, with a key":            {"", keys, "anthropic/d", home.ModelChoice{}, "anthropic/d", home.FromSession, ""},
		"nothing set, without a key":         {"", nil, "anthropic/d", home.ModelChoice{}, "offline/parrot", home.FromDefault, "anthropic/d"},
		"offline was set":                    {"provider = 'offline'", keys, "anthropic/d", home.ModelChoice{}, "offline/parrot", home.FromSettings, "anthropic/d"},
		"the built-in one stays":             {"model = 'anthropic/c'", keys, "offline/parrot", home.ModelChoice{}, "offline/parrot", home.FromSession, ""},
		"until another is chosen":            {"model = 'anthropic/c'", keys, "offline/parrot", home.ModelChoice{Model: "d"}, "anthropic/d", home.FromChoice, "offline/parrot"},
		"a local server":                     {local, keys, "openai-chat/phi", home.ModelChoice{}, "openai-chat/phi", home.FromSession, ""},
		"OpenAI is not the local server":     {local, keys, "openai/g", home.ModelChoice{}, "openai/g", home.FromSession, ""},
		"the local server is not OpenAI":     {"model = 'openai/g'", keys, "openai-chat/phi", home.ModelChoice{}, "openai/g", home.FromSettings, "openai-chat/phi"},
		"nor in the other dialect":           {"model = 'openai-chat/g'", keys, "openai-chat/phi", home.ModelChoice{}, "openai/g", home.FromSettings, "openai-chat/phi"},
		"a choice":                           {"model = 'anthropic/c'", keys, "anthropic/d", home.ModelChoice{Model: "openai/g"}, "openai/g", home.FromChoice, "anthropic/d"},
		"a choice of the session's provider": {"model = 'anthropic/c'", keys, "openai/g", home.ModelChoice{Model: "h"}, "openai/h", home.FromChoice, "openai/g"},
	} {
		had, model, _ := strings.Cut(tt.had, "/")
		s := settings(t, configured(t, tt.toml, tt.env))
		got, err := s.ModelFor(&session.Context{Provider: had, Model: model}, tt.choice)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if named(got.Model) != tt.want || got.From != tt.from || got.Was != tt.was {
			t.Errorf("%s: the model is %s from %s (was: %q), want %s from %s (%q)",
				name, named(got.Model), got.From, got.Was, tt.want, tt.from, tt.was)
		}
	}
}

func TestThinkingInForce(t *testing.T) {
	t.Parallel()
	s := settings(t, env{"COPPICE_THINKING": "low", "COPPICE_MAX_TOKENS": "77"})
	for _, tt := range []struct{ had, choice, want string }{
		{"", "", "low"},
		{"high", "", "high"},
		{"high", "off", "off"},
		{"", "minimal", "minimal"},
		// Levels of other programs.
		{"max", "", "xhigh"},
		{"None", "", "off"},
		{"[left out]", "", "low"},
	} {
		got, err := s.ModelFor(&session.Context{ThinkingLevel: tt.had}, home.ModelChoice{Thinking: tt.choice})
		if err != nil || got.Thinking != tt.want || got.MaxTokens != 77 {
			t.Errorf("had %q, chose %q: %+v, %v", tt.had, tt.choice, got, err)
		}
	}
	if _, err := s.ModelFor(nil, home.ModelChoice{Thinking: "max"}); home.KindOf(err) != home.KindInvalid {
		t.Errorf("a level that somebody asks for and nobody has: %v", err)
	}
}

// A key is not a setting, and one that somebody hides in another is not shown.
func TestKeysAreNotSettings(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"api_key", "ANTHROPIC_API_KEY", "token", "openai_key"} {
		_, inFile := home.LoadSettings(configured(t, key+" = '"+aKey+"'", nil).get)
		_, set := settings(t, env{"HOME": t.TempDir()}).Set(key, aKey)
		for _, err := range []error{inFile, set} {
			if home.KindOf(err) != home.KindInvalid || !strings.Contains(home.HintOf(err), "key_command") || strings.Contains(err.Error(), aKey) {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
	command := "echo " + aKey
	if _, err := settings(t, env{"HOME": t.TempDir()}).Set("key_command", command); home.KindOf(err) != home.KindInvalid || strings.Contains(err.Error(), aKey) {
		t.Errorf("a command with a key in it: %v", err)
	}
	for _, key := range []string{aKey, "sk-ant-test1234567", "sk-proj-abcdefgh", "AIzaSyA1234567"} { // some only begin like one
		for _, v := range settings(t, env{"COPPICE_KEY_COMMAND": "echo " + key}).All() {
			if strings.Contains(v.Value, key) {
				t.Errorf("%s shows a key", v.Key)
			}
		}
	}
	if _, err := home.LoadSettings(env{"COPPICE_BASE_URL": "https://me:hunter2@host/v1"}.get); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("an address with a password: %v", err)
	}
	for _, plain := range []string{"pass show anthropic", "op read op://dev/anthropic/credential", "security find-generic-password -w -s anthropic"} {
		if got := settings(t, env{"COPPICE_KEY_COMMAND": plain}).Get("key_command").Value; got != plain {
			t.Errorf("%q is shown as %q", plain, got)
		}
	}
}

// The list of models says which can be asked and which one answers by default.
func TestModelsToChooseFrom(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		toml      string
		env       env
		byDefault string
		ready     []string
		not       []string
	}{
		"nothing":        {"", nil, "offline/parrot", nil, []string{"anthropic/claude-sonnet-4-5", "openai/gpt-5"}},
		"a key":          {"model = 'anthropic/claude-sonnet-4-5'", env{"ANTHROPIC_API_KEY": "k"}, "anthropic/claude-sonnet-4-5", []string{"anthropic/claude-opus-4-5", "offline/parrot"}, []string{"google/gemini-2.5-pro"}},
		"a command":      {"provider = 'openai'\nmodel = 'mine'\nkey_command = 'false'", nil, "openai/mine", []string{"openai/gpt-5"}, []string{"anthropic/claude-opus-4-5"}},
		"a local server": {"provider = 'openai-chat'\nmodel = 'llama'\nbase_url = 'http://localhost:1/v1'\nwindow = 5000", nil, "openai-chat/llama", nil, []string{"openai/gpt-5"}},
		"no key for it":  {"model = 'anthropic/claude-sonnet-4-5'", nil, "anthropic/claude-sonnet-4-5", nil, []string{"anthropic/claude-sonnet-4-5"}},
	} {
		s, err := home.LoadSettings(configured(t, tt.toml, tt.env).get)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found, err := s.Models()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, defaults, notReady := map[string]home.KnownModel{}, 0, false
		for _, m := range found.Models {
			if _, twice := got[m.Name()]; twice || m.Ready && notReady {
				t.Errorf("%s: %s is there twice, or after one that is not ready", name, m.Name())
			}
			got[m.Name()], notReady = m, !m.Ready
			if m.Default {
				defaults++
			}
		}
		if defaults != 1 || !got[tt.byDefault].Default {
			t.Errorf("%s: %d defaults, and %+v", name, defaults, got[tt.byDefault])
		}
		for _, want := range tt.ready {
			if !got[want].Ready {
				t.Errorf("%s: %s is not ready: %+v", name, want, got[want])
			}
		}
		for _, want := range tt.not {
			if m, ok := got[want]; !ok || m.Ready {
				t.Errorf("%s: %s: %v, %+v", name, want, ok, m)
			}
		}
		if m := got["anthropic/claude-sonnet-4-5"]; m.Window != 200_000 || !m.Thinks || m.InputMicroUSD != 3_000_000 || m.OutputMicroUSD != 15_000_000 {
			t.Errorf("%s: %+v", name, m)
		}
		if m, ok := got["openai-chat/llama"]; ok && (m.Window != 5000 || m.Priced || !m.Ready) {
			t.Errorf("%s: %+v", name, m)
		}
		if _, ok := got["anthropic/claude-3-opus"]; ok {
			t.Errorf("%s: there is an old model", name)
		}
	}
}
