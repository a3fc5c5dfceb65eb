package home

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

// ChangedSetting says what Set did.
type ChangedSetting struct {
	Key      string `json:"key"`
	Value    string `json:"value"`
	Path     string `json:"path"`                // the file that was written
	HiddenBy string `json:"hidden_by,omitempty"` // the environment variable that overrides it for now
}

// Set writes a setting into the configuration file, for the next LoadSettings. Comments
// stay, and so do wrong values of other settings.
func (s *Settings) Set(key, value string) (*ChangedSetting, error) {
	r := ruleOf(key)
	if r == nil {
		return nil, unknownSetting("set", "", key)
	}
	if !r.fits(value) {
		return nil, r.refuse(Setting{key, value, "argument"})
	}
	if showable(key, value) != value {
		return nil, &session.Error{
			Op: "set", Name: key, Err: session.Invalidf("the value has a key in it, and keys are not kept in the settings"),
			Hint: "give a command that asks a password manager for the key, or put the key into the environment",
		}
	}
	path := s.path
	if path == "" {
		return nil, noHomeDir("write the configuration")
	}
	// If the file is a link to one that is kept elsewhere, replace the file that it leads
	// to.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if _, err := readConfig(path); err != nil {
		return nil, err
	}
	text, err := vfs.ReadFile(path, vfs.SmallFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if text, err = setInTOML(text, key, value); err != nil {
		return nil, &session.Error{Op: "write", Path: path, Err: err}
	}
	if err := replaceFile(path, text); err != nil {
		return nil, err
	}
	changed := &ChangedSetting{Key: key, Value: value, Path: path}
	if r.env != "" && s.env(r.env) != "" {
		changed.HiddenBy = r.env
	}
	return changed, nil
}

// setInTOML sets a key in the text of a configuration file: in the line that already
// sets it, or in a new one. Encoding the file again would lose its comments, so we edit
// the text and then read it back to see that it says what it should.
func setInTOML(text []byte, key, value string) ([]byte, error) {
	encoded := ruleOf(key).encode(value)
	lines := strings.SplitAfter(string(text), "\n")
	set := regexp.MustCompile(`^(\s*"?` + regexp.QuoteMeta(key) + `"?\s*=\s*)("(?:[^"\\]|\\.)*"|'[^']*'|[^#\s"']+)(\s*(?:#.*)?\s*)$`)
	at := slices.IndexFunc(lines, set.MatchString)
	if at >= 0 {
		parts := set.FindStringSubmatch(lines[at])
		lines[at] = parts[1] + encoded + parts[3]
	} else {
		if last := len(lines) - 1; lines[last] != "" {
			lines[last] += "\n"
		}
		lines = append(lines, key+" = "+encoded+"\n")
	}
	edited := strings.Join(lines, "")
	var settings map[string]any
	if err := toml.Unmarshal([]byte(edited), &settings); err != nil || fmt.Sprint(settings[key]) != value {
		return nil, fmt.Errorf("%s is set in a way that a program cannot change; edit the file", key)
	}
	return []byte(edited), nil
}

// encode writes a number as a number if the setting can be one, and everything else as
// a string.
func (r *rule) encode(value string) string {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && strconv.FormatInt(n, 10) == value && r.takes(n) {
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
