package home

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/client"
	"github.com/coppice-dev/coppice/provider/offline"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/transcript"
)

// Setting is a value and where it came from.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"` // "default", "environment NAME", the path of a file, or a face's own word
}

// Settings are what can be chosen about a home. What a face passes to LoadSettings wins
// over the environment, the environment over the configuration file, and the file over
// the default.
//
// The zero value has the defaults, and no directory.
type Settings struct {
	path   string // of the configuration file; "" if there is no place for one
	cache  string // the directory for derived files; "" if there is none
	values map[string]Setting
	home   string              // where it is; values may have less, for showing
	model  modelSettings       // as it is used; likewise
	getenv func(string) string // says where keys, directories and other programs' files are
	// refused is what models turned out not to take, as long as the program runs.
	refused *client.Refusals
}

// The keys of the settings, as the configuration file has them.
const (
	SettingDir           = "dir"            // the directory of the sessions
	SettingSync          = "sync"           // "always", "never", or a duration such as "1s"
	SettingMaxEntry      = "max_entry"      // the greatest size of an entry with its blobs, in bytes
	SettingMaxSession    = "max_session"    // the greatest size of a session with its blobs, in bytes; 0 is no limit
	SettingMaxSessions   = "max_sessions"   // how many sessions there may be; 0 is no limit
	SettingWhenFull      = "when_full"      // "refuse" or "trash": what happens when there are that many
	SettingArchiveAfter  = "archive_after"  // "never", or the age at which idle sessions are compressed, such as "90d"
	SettingBlobThreshold = "blob_threshold" // the size above which content is kept in blobs, in bytes
	SettingColor         = "color"          // "auto", "always" or "never"; for faces
	SettingRedact        = "redact"         // "true" or "false": whether secrets are taken out of what is appended
	SettingImport        = "import"         // ImportAsk, ImportKnown, ImportAll or ImportNone: see WatchAgents
	SettingTokenCommand  = "token_command"  // a command that prints the token for a home on another machine

	SettingProvider   = "provider"    // who is asked: one of Providers
	SettingModel      = "model"       // the model's name, or provider/model
	SettingBaseURL    = "base_url"    // where the provider is; "" is its own address
	SettingKeyCommand = "key_command" // a command that prints the provider's key
	SettingThinking   = "thinking"    // a thinking level; "" is the provider's default
	SettingMaxTokens  = "max_tokens"  // the longest answer, in tokens; 0 is what the provider allows
	SettingWindow     = "window"      // the size of the model's window, in tokens; 0 is what is known about it

	SettingBell   = "bell"   // "on" or "off": whether a chat rings when it waits for the person; for faces
	SettingSystem = "system" // a file with instructions; its path is relative to the file that names it
	// What follows are lists, one line for each element: see ChatRequest.
	SettingTools = "tools"
	SettingAllow = "allow"
	SettingDeny  = "deny"
	SettingMCP   = "mcp"
	// SettingModels is a list of lines that say what models take: see provider.ParseFamilies.
	SettingModels = "models"
)

// never is a value of archive_after and of sync.
const never = "never"

// The values of when_full.
const (
	whenFullRefuse = "refuse"
	whenFullTrash  = "trash"
)

// rule is everything about a setting except where its value came from.
type rule struct {
	key      string
	env      string // "" if the environment cannot set it
	fallback string
	must     string // completes "it must be …"
	fits     func(value string) bool
	list     bool // the file has an array of strings, and the value a line for each
}

// textOf returns a value of the configuration file as the value of a setting.
func textOf(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	lines := make([]string, len(list))
	for i := range list {
		lines[i] = fmt.Sprint(list[i])
	}
	return strings.Join(lines, "\n")
}

// lines returns the elements of a value that is a list.
func lines(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, "\n")
}

// accepts reports whether the setting may have a value of this kind in the configuration
// file. Numbers and booleans may be written with or without quotes, but a directory
// must be a string: no model is called 5.
func (r *rule) accepts(value any) bool {
	switch value := value.(type) {
	case string:
		return true
	case int64, bool:
		return r.key != SettingDir && !r.list
	case []any:
		return r.list && !slices.ContainsFunc(value, func(one any) bool { _, ok := one.(string); return !ok })
	}
	return false
}

// rules lists all settings in the order in which they are shown. The default directory
// depends on the machine: see LoadSettings.
var rules = []rule{
	{SettingDir, "COPPICE_HOME", "", "the name of a directory or the address of a server, in quotes in the file", func(v string) bool { return v != "" }, false},
	{SettingSync, "COPPICE_SYNC", "always", "always, never or a duration such as 1s", isSync, false},
	{SettingMaxEntry, "COPPICE_MAX_ENTRY", strconv.Itoa(store.DefaultMaxEntry), "a number of bytes", atLeast(1), false},
	{SettingMaxSession, "COPPICE_MAX_SESSION", "0", "a number of bytes, or 0 for no limit", atLeast(0), false},
	{SettingMaxSessions, "COPPICE_MAX_SESSIONS", "0", "a number, or 0 for no limit", atLeast(0), false},
	{SettingWhenFull, "COPPICE_WHEN_FULL", whenFullRefuse, whenFullRefuse + " or " + whenFullTrash, oneOf(whenFullRefuse, whenFullTrash), false},
	{SettingArchiveAfter, "COPPICE_ARCHIVE_AFTER", never, "never or " + anAge, isArchiveAfter, false},
	{SettingBlobThreshold, "COPPICE_BLOB_THRESHOLD", strconv.Itoa(session.DefaultBlobThreshold), "a number of bytes", isInt, false},
	{SettingColor, "", "auto", "auto, always or never", oneOf("auto", "always", "never"), false},
	{SettingRedact, "COPPICE_REDACT", "false", "true or false", oneOf("true", "false"), false},
	{SettingImport, "COPPICE_IMPORT", ImportAsk, "ask, known, all or none", oneOf(ImportAsk, ImportKnown, ImportAll, ImportNone), false},
	{SettingTokenCommand, "COPPICE_TOKEN_COMMAND", "", "a command that prints a token", anything, false},
	{SettingProvider, "COPPICE_PROVIDER", offline.Name, "one of " + strings.Join(Providers(), ", "), oneOf(Providers()...), false},
	{SettingModel, "COPPICE_MODEL", "", "the name of a model, or provider/model", anything, false},
	{SettingBaseURL, "COPPICE_BASE_URL", "", "a URL such as http://localhost:11434/v1, with a host and no user, query or fragment", isBaseURL, false},
	{SettingKeyCommand, "COPPICE_KEY_COMMAND", "", "a command that prints a key", anything, false},
	{SettingThinking, "COPPICE_THINKING", "", "one of " + strings.Join(provider.ThinkingLevels, ", "), func(v string) bool { return provider.CheckThinking(v) == nil }, false},
	{SettingMaxTokens, "COPPICE_MAX_TOKENS", "0", "a number of tokens, or 0 for what the provider allows", atLeast(0), false},
	{SettingWindow, "COPPICE_WINDOW", "0", "a number of tokens from 1000 on, or 0 for what is known about the model", isWindow, false},
	{SettingBell, "", "on", "on or off", oneOf("on", "off"), false},
	{SettingSystem, "COPPICE_SYSTEM", "", "the name of a file", anything, false},
	{SettingTools, "", "", "all, none, or the names of tools", anything, true},
	{SettingAllow, "", "", "rules such as read or bash(go test *)", anything, true},
	{SettingDeny, "", "", "rules such as read or bash(go test *)", anything, true},
	{SettingMCP, "", "", "commands or addresses of MCP servers", anything, true},
	{SettingModels, "", "", `lines such as "my-model like=gpt-5 window=131072"`, isFamilies, true},
}

// isWindow refuses windows that are too small for any conversation: they are mistakes.
func isWindow(v string) bool { return atLeast(0)(v) && (!atLeast(1)(v) || atLeast(1000)(v)) }

func anything(string) bool { return true }

func isFamilies(v string) bool {
	_, err := provider.ParseFamilies(lines(v))
	return err == nil
}

func isBaseURL(v string) bool { return v == "" || client.CheckBaseURL(v) == nil }

func oneOf(values ...string) func(string) bool {
	return func(v string) bool { return slices.Contains(values, v) }
}

func atLeast(least int64) func(string) bool {
	return func(v string) bool {
		n, err := strconv.ParseInt(v, 10, 64)
		return err == nil && n >= least
	}
}

func isInt(v string) bool {
	_, err := strconv.Atoi(v)
	return err == nil
}

func isArchiveAfter(v string) bool {
	age, err := ParseAge(v)
	return v == never || err == nil && age > 0
}

func isSync(v string) bool {
	d, err := time.ParseDuration(v)
	return v == "always" || v == never || err == nil && d > 0
}

// LoadSettings finds the value of every setting: first among those given, whose Origin says
// where the face got them, then in the environment, then in the configuration file, then the
// default. If one is wrong, LoadSettings returns an error and settings on which only Path and
// Set work, to correct it.
func LoadSettings(getenv func(string) string, given ...Setting) (*Settings, error) {
	s := &Settings{values: make(map[string]Setting), getenv: getenv, refused: &client.Refusals{}}
	s.cache = under(s.xdg("XDG_CACHE_HOME", ".cache"), "coppice")
	if s.path = getenv("COPPICE_CONFIG"); s.path == "" {
		s.path = under(s.xdg("XDG_CONFIG_HOME", ".config"), "coppice", "config.toml")
	}
	return s, s.load(given)
}

func (s *Settings) load(given []Setting) error {
	fromFile, err := readConfig(s.path)
	if err != nil {
		return err
	}
	for key := range fromFile {
		if ruleOf(key) == nil {
			return unknownSetting("read", s.path, key)
		}
	}
	places := settingSources(s.getenv, fromFile, s.path, given)
	s.model = modelIn(places)
	for _, r := range rules {
		if v, ok := fromFile[r.key]; ok && !r.accepts(v) {
			return r.refuse(Setting{r.key, textOf(v), s.path})
		}
		v := r.lookUp(places)
		if isModelSetting(r.key) {
			v = s.model.get(&r)
		}
		if r.key == SettingDir && v.Value == "" {
			v.Value = s.ownDir()
		} else if !r.fits(v.Value) {
			return r.refuse(v)
		}
		if r.key == SettingDir {
			s.home = v.Value
		}
		v.Value = showable(r.key, v.Value)
		s.values[r.key] = v
	}
	return nil
}

// settingSource is a source of settings, such as a file. It returns its value for a
// setting, if it has one.
type settingSource func(r *rule) (v Setting, ok bool)

// settingSources returns the sources of settings. Later ones win.
func settingSources(getenv func(string) string, fromFile map[string]any, path string, given []Setting) []settingSource {
	return []settingSource{
		func(r *rule) (Setting, bool) {
			v, ok := fromFile[r.key]
			return Setting{r.key, textOf(v), path}, ok
		},
		func(r *rule) (Setting, bool) {
			if r.env == "" {
				return Setting{}, false
			}
			v := getenv(r.env)
			return Setting{r.key, v, "environment " + r.env}, v != ""
		},
		func(r *rule) (Setting, bool) {
			at := slices.IndexFunc(given, func(g Setting) bool { return g.Key == r.key && g.Value != "" })
			if at < 0 {
				return Setting{}, false
			}
			return given[at], true
		},
	}
}

// lookUp finds the value of one setting.
func (r *rule) lookUp(places []settingSource) Setting {
	for _, p := range slices.Backward(places) {
		if v, ok := p(r); ok {
			return v
		}
	}
	return r.byDefault()
}

func (r *rule) byDefault() Setting { return Setting{r.key, r.fallback, originDefault} }

// originDefault is the Origin of a setting that was not chosen.
const originDefault = "default"

func (r *rule) refuse(v Setting) error {
	return session.Invalidf("%s is %q (%s); it must be %s", r.key, showable(r.key, v.Value), v.Origin, r.must)
}

// unknownSetting is the error for a key that no setting has.
func unknownSetting(op, path, key string) error {
	hint := "the settings are " + strings.Join(SettingKeys(), ", ")
	if near := index.Nearest(key, SettingKeys()); len(near) > 0 {
		hint = "did you mean: " + strings.Join(near, ", ")
	}
	if name := strings.ToLower(key); strings.HasSuffix(name, "key") || strings.HasSuffix(name, "token") || strings.HasSuffix(name, "secret") {
		hint = "keys are not kept in the settings: they come from the environment, as in " +
			client.KeyVariable("anthropic") + ", or from the command that " + SettingKeyCommand + " names"
	}
	return &session.Error{Op: op, Path: path, Err: session.Invalidf("unknown setting %q", key), Hint: hint}
}

func ruleOf(key string) *rule {
	for i := range rules {
		if rules[i].key == key {
			return &rules[i]
		}
	}
	return nil
}

// SettingKeys lists the keys of all settings.
func SettingKeys() []string {
	keys := make([]string, len(rules))
	for i := range rules {
		keys[i] = rules[i].key
	}
	return keys
}

// SettingValues returns values that a shell can offer for a setting: the valid ones among the
// words of its description. A setting that takes anything has none.
func SettingValues(key string) (values []string) {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.key == key })
	if i < 0 || rules[i].fits("anything at all") {
		return nil
	}
	for _, word := range strings.FieldsFunc(rules[i].must, func(r rune) bool { return r == ' ' || r == ',' }) {
		if rules[i].fits(word) {
			values = append(values, word)
		}
	}
	return values
}

// All returns every setting, in a fixed order.
func (s *Settings) All() []Setting {
	all := make([]Setting, len(rules))
	for i := range rules {
		all[i] = s.Get(rules[i].key)
	}
	return all
}

// Get returns a setting by its key. It does not show a key that was put into
// key_command.
func (s *Settings) Get(key string) Setting {
	if v, ok := s.values[key]; ok {
		return v
	}
	if r := ruleOf(key); r != nil {
		return r.byDefault()
	}
	return Setting{Key: key, Origin: originDefault}
}

// list returns the elements of a setting that is a list.
func (s *Settings) list(key string) []string { return lines(s.Get(key).Value) }

// ownDir returns the directory of the user's own home, or "".
func (s *Settings) ownDir() string {
	return under(s.xdg("XDG_DATA_HOME", ".local/share"), "coppice", "sessions")
}

// TokenVariable is the environment variable with the token for a home on another machine.
const TokenVariable = "COPPICE_TOKEN"

// Token returns the token for a home on another machine, or "" if there is none. A token_command
// wins over the environment, because it was set for that home.
func (s *Settings) Token(ctx context.Context) (string, error) {
	command := s.Get(SettingTokenCommand).Value
	if command == "" {
		return strings.TrimSpace(s.env(TokenVariable)), nil
	}
	token, err := client.CommandKey(command)(ctx)
	if err != nil {
		return "", fmt.Errorf("%s: %w", SettingTokenCommand, err)
	}
	return token, nil
}

// Path returns where the configuration file is, or would be; "" if the machine has no
// place for one.
func (s *Settings) Path() string { return s.path }

func (s *Settings) number(key string) int64 {
	n, _ := strconv.ParseInt(s.Get(key).Value, 10, 64) // the rule has checked it
	return n
}

// pricesPath returns the file with the user's own prices of models. It is beside the
// configuration file; "" if there is no place for either.
func (s *Settings) pricesPath() string {
	if s.path == "" {
		return "" // not a file in the current directory
	}
	return filepath.Join(filepath.Dir(s.path), "prices.toml")
}

func (s *Settings) redacts() bool { return s.Get(SettingRedact).Value == "true" }

func (s *Settings) blobThreshold() int { return int(s.number(SettingBlobThreshold)) }

// limits returns the limits of the store.
func (s *Settings) limits() store.Limits {
	return store.Limits{Entry: s.number(SettingMaxEntry), Log: s.number(SettingMaxSession), Logs: int(s.number(SettingMaxSessions))}
}

// xdg returns a directory of the XDG base directory specification, or "" if the user has no
// home directory. It never returns a relative one: a person's files must not end up in the
// current directory.
func (s *Settings) xdg(name, fallback string) string {
	if dir := s.env(name); filepath.IsAbs(dir) {
		return dir
	}
	return under(s.userDir(), filepath.FromSlash(fallback))
}

// env returns a variable of the environment. The zero value has none.
func (s *Settings) env(name string) string {
	if s.getenv == nil {
		return ""
	}
	return s.getenv(name)
}

// machine is the user's machine as formats see it.
func (s *Settings) machine() transcript.Env {
	return transcript.Env{Home: s.userDir(), Getenv: s.env, GOOS: runtime.GOOS}
}

// userDir returns the user's home directory, or "" if they have none.
func (s *Settings) userDir() string {
	home := s.env("HOME")
	if runtime.GOOS == "windows" || !filepath.IsAbs(home) {
		home = ""
		if runtime.GOOS == "windows" {
			home, _ = os.UserHomeDir()
		}
	}
	return home
}

// under joins names to a directory, or returns "" if there is none.
func under(dir string, names ...string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir}, names...)...)
}

// readConfig reads the configuration file. A missing one is empty.
func readConfig(path string) (map[string]any, error) {
	if path == "" {
		return nil, nil
	}
	text, err := vfs.ReadFile(path, vfs.SmallFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	settings, err := parseTOML(text)
	if err != nil {
		return nil, &session.Error{Op: "read", Path: path, Err: session.Invalidf("%w", err)}
	}
	return settings, nil
}

// parseTOML reads settings. An error says in which line it is.
func parseTOML(text []byte) (settings map[string]any, err error) {
	err = toml.Unmarshal(text, &settings)
	if wrong, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, _ := wrong.Position()
		err = fmt.Errorf("line %d: %w", row, err)
	}
	return settings, err
}
