package home

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/coppice-dev/coppice/agent/tools"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

// ChangedSetting says what Set or Unset did.
type ChangedSetting struct {
	Key      string `json:"key"`
	Value    string `json:"value"`
	Path     string `json:"path"`                // the file that was written
	HiddenBy string `json:"hidden_by,omitempty"` // the environment variable that overrides it for now
	// Removed are the settings that went with it, because they were for another provider.
	Removed []string `json:"removed,omitempty"`
}

// Set writes a setting into the configuration file, for the next LoadSettings. Comments stay,
// and so do wrong values of other settings. A model of another provider replaces all settings
// that lead to the old one. Only a list takes several values.
func (s *Settings) Set(key string, values ...string) (*ChangedSetting, error) {
	r := ruleOf(key)
	if r == nil {
		return nil, unknownSetting("set", "", key)
	}
	if len(values) != 1 && !r.list {
		return nil, session.Invalidf("%s takes one value, and there are %d", key, len(values))
	}
	value := strings.Join(values, "\n")
	if !r.fits(value) {
		return nil, session.Invalidf("%s is %q; it must be %s", key, showable(key, value), r.must)
	}
	if showable(key, value) != value {
		return nil, &session.Error{
			Op: "set", Name: key, Err: session.Invalidf("the value has a key in it, and keys are not kept in the settings"),
			Hint: "give a command that asks a password manager for the key, or put the key into the environment",
		}
	}
	if err := s.works(key, values); err != nil {
		wrong := &session.Error{Op: "set", Name: key, Err: session.Invalidf("%w", err)}
		if key == SettingSystem {
			wrong.Hint = "a path is relative to the configuration file; for a file elsewhere, give the whole path"
		}
		return nil, wrong
	}
	changed, err := s.editFile(r, func(text []byte, now map[string]any) (_ []byte, removed []string, err error) {
		for _, old := range superseded(now, key, value) {
			if text, err = unsetInTOML(text, old); err != nil {
				return nil, nil, err
			}
			removed = append(removed, old)
		}
		text, err = setInTOML(text, key, value)
		return text, removed, err
	})
	if err != nil {
		return nil, err
	}
	changed.Value = value
	return changed, nil
}

// works returns why a value of a setting would be useless to a chat. LoadSettings accepts
// such a value in a file: it must not keep everything else from working.
func (s *Settings) works(key string, values []string) error {
	switch key {
	case SettingSystem:
		_, err := readSystemSetting(Setting{key, values[0], s.path})
		return err
	case SettingTools:
		for _, name := range values {
			if !slices.Contains(append(tools.Names(), AllTools, NoTools), name) {
				return fmt.Errorf("there is no tool %q: there are %s, %s and %s", name, strings.Join(tools.Names(), ", "), AllTools, NoTools)
			}
		}
	case SettingAllow, SettingDeny:
		parsed, err := tools.NewRules("", values, nil)
		if err != nil {
			return err
		}
		known := tools.Names()
		for _, text := range values {
			if name, _, _ := strings.Cut(text, "("); strings.Contains(name, "_") { // of an MCP server
				known = append(known, strings.TrimSpace(name))
			}
		}
		return parsed.Check(known)
	case SettingMCP:
		for _, one := range serversOf(&ChatRequest{Servers: values}, nil) {
			if u, err := url.Parse(one.URL); err != nil || one.URL != "" && u.Host == "" || strings.TrimSpace(one.shown) == "" {
				return fmt.Errorf("%q is neither a command nor the address of a server", one.shown)
			}
		}
	}
	return nil
}

// Unset removes a setting from the configuration file, so that its default holds again. The
// changed setting has the value that it had there.
func (s *Settings) Unset(key string) (*ChangedSetting, error) {
	r := ruleOf(key)
	if r == nil {
		return nil, unknownSetting("unset", "", key)
	}
	var had string
	changed, err := s.editFile(r, func(text []byte, now map[string]any) ([]byte, []string, error) {
		v, ok := now[key]
		if !ok {
			return text, nil, nil
		}
		had = showable(key, textOf(v))
		text, err := unsetInTOML(text, key)
		return text, nil, err
	})
	if err != nil {
		return nil, err
	}
	changed.Value = had
	return changed, nil
}

// editFile changes the text of the configuration file. now has the settings in the file.
func (s *Settings) editFile(r *rule, edit func(text []byte, now map[string]any) (edited []byte, removed []string, err error)) (*ChangedSetting, error) {
	path := s.path
	if path == "" {
		return nil, noHomeDir("write the configuration")
	}
	// If the file is a link to one that is kept elsewhere, replace the file that it leads
	// to.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	now, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	text, err := vfs.ReadFile(path, vfs.SmallFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	edited, removed, err := edit(text, now)
	if err != nil {
		return nil, &session.Error{Op: "write", Path: path, Err: err}
	}
	if !bytes.Equal(edited, text) {
		if err := replaceFile(path, edited); err != nil {
			return nil, err
		}
	}
	changed := &ChangedSetting{Key: r.key, Path: path, Removed: removed}
	if r.env != "" && s.env(r.env) != "" {
		changed.HiddenBy = r.env
	}
	return changed, nil
}

// superseded returns the settings of a file that must go when one of them is changed, because
// they are for another provider: its address, and above all its key. A model that is named
// with its provider means that provider, unless there is a gateway, which has models of
// many.
func superseded(now map[string]any, key, value string) (gone []string) {
	file := settingSources(nil, now, "", nil)[0]
	was := modelSettings{}.with(file)
	is, _ := splitModel(value)
	old := []string{SettingProvider, SettingBaseURL, SettingKeyCommand, SettingWindow}
	switch {
	case key == SettingProvider:
		is, old = value, []string{SettingKeyCommand}
	case key != SettingModel, !slices.Contains(Providers(), is), isGateway(was[SettingBaseURL].Value):
		return nil
	}
	if from := was[SettingProvider].Value; from == "" || from == is {
		return nil
	}
	for _, k := range old {
		if _, ok := now[k]; ok {
			gone = append(gone, k)
		}
	}
	return gone
}

// setInTOML sets a key in the text of a configuration file: in the line that already
// sets it, or in a new one. Encoding the file again would lose its comments, so we edit
// the text and then read it back to see that it says what it should.
func setInTOML(text []byte, key, value string) ([]byte, error) {
	encoded := ruleOf(key).encode(value)
	lines, at, parts := lineOf(text, key)
	if at >= 0 {
		lines[at] = parts[1] + encoded + parts[3]
	} else {
		if last := len(lines) - 1; lines[last] != "" {
			lines[last] += "\n"
		}
		lines = append(lines, key+" = "+encoded+"\n")
	}
	edited := strings.Join(lines, "")
	var settings map[string]any
	if err := toml.Unmarshal([]byte(edited), &settings); err != nil || textOf(settings[key]) != value {
		return nil, errEditFile(key)
	}
	return []byte(edited), nil
}

// unsetInTOML removes the line that sets a key.
func unsetInTOML(text []byte, key string) ([]byte, error) {
	lines, at, _ := lineOf(text, key)
	if at < 0 {
		return nil, errEditFile(key)
	}
	edited := []byte(strings.Join(slices.Delete(lines, at, at+1), ""))
	var settings map[string]any
	if err := toml.Unmarshal(edited, &settings); err != nil || settings[key] != nil {
		return nil, errEditFile(key)
	}
	return edited, nil
}

// lineOf returns the lines of a configuration file, and the one that sets a key: what is
// before the value, the value, and what is after it. at is -1 if there is none.
func lineOf(text []byte, key string) (lines []string, at int, parts []string) {
	lines = strings.SplitAfter(string(text), "\n")
	set := regexp.MustCompile(`^(\s*"?` + regexp.QuoteMeta(key) + `"?\s*=\s*)("(?:[^"\\]|\\.)*"|'[^']*'|\[.*\]|[^#\s"'\[]+)(\s*(?:#.*)?\s*)$`)
	if at = slices.IndexFunc(lines, set.MatchString); at >= 0 {
		parts = set.FindStringSubmatch(lines[at])
	}
	return lines, at, parts
}

func errEditFile(key string) error {
	return fmt.Errorf("a program cannot change how %s is set; edit the file", key)
}

// encode writes a list as an array, a number as a number if the setting can be one, and
// everything else as a string.
func (r *rule) encode(value string) string {
	if r.list {
		value, _ := json.Marshal(lines(value)) // strings always encode, and TOML reads them
		return string(value)
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && strconv.FormatInt(n, 10) == value && r.accepts(n) {
		return value
	}
	line, _ := toml.Marshal(map[string]string{"v": value}) // a map of strings always encodes
	return strings.TrimSpace(strings.TrimPrefix(string(line), "v = "))
}

// replaceFile replaces a file as a whole or not at all.
func replaceFile(path string, text []byte) error {
	if err := vfs.Mkdir(vfs.OS{KeepOwner: true}, filepath.Dir(path), 0o700); err != nil {
		return err
	}
	var how vfs.Replacement
	if info, err := os.Stat(path); err == nil {
		how.Perm = info.Mode().Perm()
	}
	return vfs.Replace(vfs.OS{KeepOwner: true}, path, how, vfs.Data(text))
}
