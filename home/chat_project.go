package home

import (
	"bytes"
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
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
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
	// Says lists their settings, a line for each, for the person who decides.
	Says    []string `json:"says"`
	Trusted bool     `json:"trusted"`

	digest  string // of the settings, and of the file with instructions; "" if there are none
	values  map[string]string
	system  string   // the instructions
	servers []server // of serversFile
	notes   []note   // for agents
}

// Project returns what a directory, or the nearest one above it in the same Git repository,
// says about chats, with the notes for agents of all of them; nil if they say nothing. A
// directory that is in no repository has only its own files. If a file is wrong, there is an
// error, and the project that comes with it says whether the directory was trusted before.
func (h *Home) Project(ctx context.Context, dir string) (*Project, error) {
	root, _ := repositoryOf(dir)
	dirs := upTo(dir, root)
	notes := notesIn(dirs, root)
	var p *Project
	var wrong error
	for i := len(dirs) - 1; i >= 0 && p == nil; i-- {
		if p, wrong = readProject(dirs[i], h.settings.env); wrong != nil {
			p = &Project{Path: dirs[i]}
		}
	}
	if p == nil && len(notes) == 0 {
		return nil, nil
	}
	trusted, err := h.trusted(ctx)
	if err != nil {
		return nil, err
	}
	if wrong != nil {
		p.Trusted = trusted[p.Path] != ""
		return p, wrong
	}
	return p.with(notes, trusted), nil
}

// with adds notes to a project, which may be nil if there are some, and finds out whether all of
// it is trusted.
func (p *Project) with(notes []note, trusted map[string]string) *Project {
	if p == nil {
		p = &Project{Path: filepath.Dir(notes[len(notes)-1].path)}
	}
	p.notes = notes
	p.Trusted = trusted[p.Path] == p.digest || p.digest == ""
	for _, n := range notes {
		name, err := filepath.Rel(p.Path, n.path)
		if err != nil {
			name = n.path
		}
		name = filepath.ToSlash(name)
		p.Files = append(p.Files, name)
		p.Says = append(p.Says, fmt.Sprintf("notes for agents: %s (%d bytes)", name, len(n.text)))
		p.Trusted = p.Trusted && trusted[n.path] == n.digest()
	}
	return p
}

// note is a file with a project's notes for agents. Whoever wrote it instructs the model.
type note struct {
	path string
	text []byte
	err  error // why it cannot be read
}

func (n *note) digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%v", n.text, n.err))
	return hex.EncodeToString(sum[:])
}

// notesIn returns the notes for agents in directories, which are those from the root of a
// project down. Without a root there is only one directory.
func notesIn(dirs []string, root string) (all []note) {
	for _, dir := range dirs {
		for _, name := range projectNotes {
			n := note{path: filepath.Join(dir, name)}
			n.text, n.err = readInside(cmp.Or(root, dir), n.path)
			isCopy := len(all) > 0 && n.err == nil && bytes.Equal(n.text, all[len(all)-1].text) // often one is a link to the other
			if errors.Is(n.err, fs.ErrNotExist) || n.err == nil && !files.IsText(n.text) || isCopy {
				continue
			}
			all = append(all, n)
		}
	}
	return all
}

// readProject reads the files of a directory with settings. Without any it returns nil.
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
			return nil, &session.Error{Op: "read", Path: path, Err: session.Invalidf("%w", err), Hint: "correct the file, or stop trusting this directory"}
		}
		p.Files = append(p.Files, name)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	if len(p.Files) == 0 {
		return nil, nil
	}
	if p.system != "" {
		fmt.Fprintf(sum, "%s %d\n%s", SettingSystem, len(p.system), p.system)
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
	settings, err := parseTOML(text)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		v, r, where := settings[key], ruleOf(key), ""
		if _, at, _ := lineOf(text, key); at >= 0 {
			where = fmt.Sprintf("line %d: ", at+1)
		}
		switch {
		case r == nil || !slices.Contains(projectKeys, key):
			return fmt.Errorf("%sa project cannot set %q, only %s", where, key, strings.Join(projectKeys, ", "))
		case !r.accepts(v) || !r.fits(textOf(v)):
			return fmt.Errorf("%s%s is %q; it must be %s", where, key, textOf(v), r.must)
		}
		p.values[key] = textOf(v)
		if key == SettingSystem && textOf(v) != "" {
			if p.system, err = readSystem(p.Path, textOf(v)); err != nil {
				return fmt.Errorf("%s%s: %w", where, key, err)
			}
		}
	}
	return nil
}

// readSystem reads the file of a project that has its instructions.
func readSystem(dir, file string) (string, error) {
	if !filepath.IsLocal(file) {
		return "", fmt.Errorf("%q must be a file of the project", file)
	}
	text, err := readInside(dir, filepath.Join(dir, file))
	if err == nil && !files.IsText(text) {
		err = fmt.Errorf("%s is not text", file)
	}
	return string(text), err
}

// shortestKey is the length below which the value of a variable does not count as a secret.
const shortestKey = 4

// readServers reads the MCP servers of a file in the form that other agents use.
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
		return atLine(text, err)
	}
	var values []string // of variables, each before what replaces it
	expand := func(text string) string {
		return os.Expand(text, func(name string) string {
			name, otherwise, _ := strings.Cut(name, ":-")
			value := getenv(name)
			for _, written := range []string{value, url.QueryEscape(value), url.PathEscape(value)} {
				if len(value) >= shortestKey {
					values = append(values, written, "${"+name+"}")
				}
			}
			return cmp.Or(value, otherwise)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		s := file.Servers[name]
		made := server{ToolServer: ToolServer{Name: notInName().ReplaceAllString(name, "_"), URL: expand(s.URL), Header: make(http.Header), Dir: p.Path}}
		switch {
		case s.URL == "" && s.Command == "":
			return fmt.Errorf("the server %q has neither a command nor a url", name)
		case s.URL == "":
			for _, word := range append([]string{s.Command}, s.Args...) {
				made.Command = append(made.Command, expand(word))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(s.Env)) {
			made.Env = append(made.Env, key+"="+expand(s.Env[key]))
		}
		for key, value := range s.Headers {
			made.Header.Set(key, expand(value))
		}
		made.Hide, values = strings.NewReplacer(values...), nil
		p.servers = append(p.servers, made)
		// Show the names of variables, not their values: they may hold keys.
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

// atLine adds to an error about JSON the line in which it is.
func atLine(text []byte, err error) error {
	at := int64(len(text))
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = syntax.Offset
	} else if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = kind.Offset
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(text[:min(at, int64(len(text)))], []byte("\n")), err)
}

var notInName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^\w-]+`) })

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
	text, err := h.userStore.Notes("").Read(ctx, trustNote)
	if errors.Is(err, store.ErrNotExist) {
		return nil, nil
	}
	return trusted, cmp.Or(err, json.Unmarshal(text, &trusted))
}

// Trust lets a project take effect as it is now: if a file changes, it has to be trusted
// again.
func (h *Home) Trust(ctx context.Context, p *Project) error {
	err := h.changeTrust(ctx, func(trusted map[string]string) {
		if p.digest != "" {
			trusted[p.Path] = p.digest
		}
		for _, n := range p.notes {
			trusted[n.path] = n.digest()
		}
	})
	p.Trusted = err == nil
	return err
}

// Untrust takes back the trust in what a directory, or the nearest one above it, says about
// chats, and returns that directory. If none is trusted, the error is session.ErrNotExist.
func (h *Home) Untrust(ctx context.Context, dir string) (path string, _ error) {
	err := h.changeTrust(ctx, func(trusted map[string]string) {
		dirs := trustedDirs(trusted)
		for path = dir; !slices.Contains(dirs, path) && path != filepath.Dir(path); {
			path = filepath.Dir(path)
		}
		if !slices.Contains(dirs, path) {
			path = ""
		}
		maps.DeleteFunc(trusted, func(key, _ string) bool { return trustedDir(key) == path })
	})
	if err == nil && path == "" {
		err = &session.Error{Op: "untrust", Path: dir, Kind: session.ErrNotExist, Err: errors.New("neither it nor a directory above it is trusted")}
	}
	return path, err
}

// Trusted returns the directories that were trusted. Where a file has changed since, Trusted
// of the project is false.
func (h *Home) Trusted(ctx context.Context) ([]*Project, error) {
	trusted, err := h.trusted(ctx)
	if err != nil {
		return nil, err
	}
	var all []*Project
	for _, path := range trustedDirs(trusted) {
		p, err := readProject(path, h.settings.env)
		if err != nil || p == nil {
			p = &Project{Path: path}
		}
		root, _ := repositoryOf(path)
		notes := slices.DeleteFunc(notesIn([]string{path}, root), func(n note) bool { return trusted[n.path] == "" })
		p = p.with(notes, trusted)
		p.Trusted = p.Trusted && len(p.Files) > 0 && err == nil
		all = append(all, p)
	}
	return all, nil
}

// trustedDir returns the directory that an entry of the note about trust is for: it names the
// directory, for its settings, or a file in it with notes for agents.
func trustedDir(key string) string {
	if slices.Contains(projectNotes, filepath.Base(key)) {
		return filepath.Dir(key)
	}
	return key
}

// trustedDirs returns the directories of which something is trusted.
func trustedDirs(trusted map[string]string) []string {
	var dirs []string
	for key := range trusted {
		dirs = append(dirs, trustedDir(key))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func (h *Home) changeTrust(ctx context.Context, change func(trusted map[string]string)) error {
	return h.userStore.Notes("").Change(ctx, trustNote, func(old []byte) ([]byte, error) {
		trusted := make(map[string]string)
		if len(old) > 0 {
			if err := json.Unmarshal(old, &trusted); err != nil {
				return nil, err
			}
		}
		change(trusted)
		return json.Marshal(trusted)
	})
}
