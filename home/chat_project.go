package home

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// The files in which a project says how chats in it should be.
const (
	projectFile = ".coppice.toml"
	serversFile = ".mcp.json"
)

// projectKeys are the settings that a project may have. The others are about the person's
// own machine, keys and conversations.
var projectKeys = []string{SettingModel, SettingThinking, SettingSystem, SettingTools, SettingAllow, SettingDeny, SettingMCP}

// Project is what the directory of a chat says about chats in it. It has an effect only after
// the person trusted it, because it can start programs and allow calls.
type Project struct {
	Path  string   `json:"path"`  // the directory with the files
	Files []string `json:"files"` // their names
	// Says has what they set, a line for each setting, for the person who decides.
	Says    []string `json:"says"`
	Trusted bool     `json:"trusted"`

	digest  string // of the files
	values  map[string]string
	servers []server // of serversFile
}

// Project returns what a directory, or the nearest one above it in the same repository, says
// about chats; nil if it says nothing.
func (h *Home) Project(ctx context.Context, dir string) (*Project, error) {
	root, _ := repositoryOf(dir)
	for _, dir := range slices.Backward(upTo(dir, root)) {
		p, err := readProject(dir, h.settings.env)
		if err != nil {
			return nil, err
		}
		if p == nil {
			continue
		}
		trusted, err := h.trusted(ctx)
		p.Trusted = err == nil && trusted[p.Path] == p.digest
		return p, err
	}
	return nil, nil
}

// readProject reads the files of a directory. Without any it returns nil.
func readProject(dir string, getenv func(string) string) (*Project, error) {
	p := &Project{Path: dir, values: make(map[string]string)}
	sum := sha256.New()
	for _, name := range []string{projectFile, serversFile} {
		path := filepath.Join(dir, name)
		text, err := vfs.ReadFile(path, vfs.SmallFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && name == projectFile {
			err = p.readSettings(text)
		} else if err == nil {
			err = p.readServers(text, getenv)
		}
		if err != nil {
			return nil, &session.Error{Op: "read", Path: path, Err: session.Invalidf("%w", err)}
		}
		p.Files = append(p.Files, name)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	if len(p.Files) == 0 {
		return nil, nil
	}
	p.digest = hex.EncodeToString(sum.Sum(nil))
	for _, key := range projectKeys {
		if v := p.values[key]; v != "" {
			p.Says = append(p.Says, key+": "+strings.ReplaceAll(v, "\n", ", "))
		}
	}
	return p, nil
}

func (p *Project) readSettings(text []byte) error {
	var settings map[string]any
	if err := toml.Unmarshal(text, &settings); err != nil {
		return err
	}
	for key, v := range settings {
		r := ruleOf(key)
		switch {
		case r == nil || !slices.Contains(projectKeys, key):
			return fmt.Errorf("a project cannot set %q, only %s", key, strings.Join(projectKeys, ", "))
		case !r.takes(v) || !r.fits(textOf(v)):
			return fmt.Errorf("%s is %q; it must be %s", key, textOf(v), r.must)
		}
		p.values[key] = strings.TrimPrefix(p.values[key]+"\n"+textOf(v), "\n")
	}
	if file := p.values[SettingSystem]; file != "" && !filepath.IsLocal(file) {
		return fmt.Errorf("%s is %q; it must be a file of the project", SettingSystem, file)
	}
	return nil
}

// readServers takes over the servers of a file as other agents have it.
func (p *Project) readServers(text []byte, getenv func(string) string) error {
	var file struct {
		Servers map[string]struct {
			Command string
			Args    []string
			Env     map[string]string
			URL     string
			Headers map[string]string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return err
	}
	expand := func(text string) string {
		return os.Expand(text, func(name string) string {
			name, otherwise, _ := strings.Cut(name, ":-")
			return cmp.Or(getenv(name), otherwise)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		s := file.Servers[name]
		made := server{name: notInName.ReplaceAllString(name, "_"), url: expand(s.URL), header: make(http.Header), dir: p.Path}
		switch {
		case s.URL == "" && s.Command == "":
			return fmt.Errorf("the server %q has neither a command nor a url", name)
		case s.URL == "":
			for _, word := range append([]string{s.Command}, s.Args...) {
				made.command = append(made.command, expand(word))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(s.Env)) {
			made.env = append(made.env, key+"="+expand(s.Env[key]))
		}
		for key, value := range s.Headers {
			made.header.Set(key, expand(value))
		}
		p.servers = append(p.servers, made)
		// Variables stay as they are in what is shown: they may stand for keys.
		shown := name + ": " + strings.Join(append([]string{s.URL + s.Command}, s.Args...), " ")
		for _, key := range slices.Sorted(maps.Keys(s.Env)) {
			shown += fmt.Sprintf(", %s=%s", key, s.Env[key])
		}
		if len(s.Headers) > 0 {
			shown += ", headers " + strings.Join(slices.Sorted(maps.Keys(s.Headers)), ", ")
		}
		p.Says = append(p.Says, "MCP server "+shown)
	}
	return nil
}

var notInName = regexp.MustCompile(`[^\w-]+`)

// list returns what a trusted project has for a setting that is a list.
func (p *Project) list(key string) []string {
	if p == nil || !p.Trusted {
		return nil
	}
	return lines(p.values[key])
}

// trustNote is the note with the digests of what was trusted, by directory.
const trustNote = "projects.trusted"

func (h *Home) trusted(ctx context.Context) (trusted map[string]string, _ error) {
	text, err := h.store.Notes("").Read(ctx, trustNote)
	if errors.Is(err, store.ErrNotExist) {
		return nil, nil
	}
	return trusted, cmp.Or(err, json.Unmarshal(text, &trusted))
}

// Trust has a project take effect, as it is now: if a file changes, it has to be trusted again.
func (h *Home) Trust(ctx context.Context, p *Project) error {
	err := h.store.Notes("").Change(ctx, trustNote, func(old []byte) ([]byte, error) {
		trusted := make(map[string]string)
		if len(old) > 0 {
			if err := json.Unmarshal(old, &trusted); err != nil {
				return nil, err
			}
		}
		trusted[p.Path] = p.digest
		return json.Marshal(trusted)
	})
	p.Trusted = err == nil
	return err
}
