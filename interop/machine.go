package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/home"
)

// maxCall is how long a program may take. Programs take seconds; machines stall.
const maxCall = 5 * time.Minute

// machine is a user's machine with nothing on it: a home directory, a project, a model,
// and Coppice. Programs that run there see none of the real user's files, keys and
// settings.
type machine struct {
	ctx   context.Context
	cache string
	dir   string
	model *model
	home  *home.Home
	env   map[string]string
}

func newMachine(ctx context.Context, cache, dir string) (_ *machine, err error) {
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // programs name projects by the real path
		return nil, err
	}
	m := &machine{ctx: ctx, cache: cache, dir: dir}
	for _, sub := range []string{m.user(), m.project(), m.tmp()} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return nil, err
		}
	}
	if m.model, err = newModel(); err != nil {
		return nil, err
	}
	m.env = map[string]string{
		"HOME": m.user(), "TMPDIR": m.tmp(), "TERM": "dumb", "LANG": "C.UTF-8", "CI": "1", "NO_COLOR": "1",
		"PATH": filepath.Dir(programNamed(node).command(cache)[0]) + ":/usr/local/bin:/usr/bin:/bin",
		// A program that honours a proxy learns that there is no way out.
		"HTTP_PROXY": m.model.URL, "HTTPS_PROXY": m.model.URL, "NO_PROXY": "127.0.0.1,localhost",
		"http_proxy": m.model.URL, "https_proxy": m.model.URL, "no_proxy": "127.0.0.1,localhost",
	}
	settings, err := home.LoadSettings(m.getenv)
	if err != nil {
		return nil, err
	}
	m.home, err = home.Open(ctx, filepath.Join(dir, "sessions"), &home.Options{Settings: settings, Create: true})
	return m, err
}

func (m *machine) close() {
	m.model.close()
	if m.home != nil {
		m.home.Close()
	}
}

func (m *machine) user() string    { return filepath.Join(m.dir, "user") }
func (m *machine) project() string { return filepath.Join(m.dir, "project") }
func (m *machine) tmp() string     { return filepath.Join(m.dir, "tmp") }

// getenv is the environment, for Coppice.
func (m *machine) getenv(name string) string { return m.env[name] }

// write writes a file of the user's.
func (m *machine) write(path, text string) error {
	path = filepath.Join(m.user(), filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.ReplaceAll(text, "MODEL_URL", m.model.URL)), 0o600)
}

// environ is the environment of a program: the machine's, and more as NAME=VALUE.
func (m *machine) environ(more []string) []string {
	var env []string
	for name, value := range m.env {
		env = append(env, name+"="+value)
	}
	for _, one := range more {
		env = append(env, strings.ReplaceAll(one, "MODEL_URL", m.model.URL))
	}
	slices.Sort(env)
	return env
}

// runs starts a program in the project, waits for it, and returns what it printed.
func (m *machine) runs(name string, env []string, args ...string) (string, error) {
	words := append(programNamed(name).command(m.cache), args...)
	return m.exec(name, env, words)
}

func (m *machine) exec(name string, env, words []string) (string, error) {
	ctx, cancel := context.WithTimeout(m.ctx, maxCall)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env = m.project(), m.environ(env)
	killable(cmd)
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	err := cmd.Run()
	killRest(cmd) // what it started and left behind
	switch {
	case ctx.Err() != nil && m.ctx.Err() == nil:
		return out.String(), fmt.Errorf("%s did not end within %v\n%s", name, maxCall, tail(&out, &talk))
	case err != nil:
		return out.String(), fmt.Errorf("%s: %w\n%s", name, err, tail(&out, &talk))
	}
	return out.String(), nil
}

// tail is the end of what a program printed.
func tail(outputs ...*bytes.Buffer) string {
	const limit = 1500
	var b strings.Builder
	for _, o := range outputs {
		text := strings.TrimSpace(o.String())
		if len(text) > limit {
			text = "…" + text[len(text)-limit:]
		}
		b.WriteString(text + "\n")
	}
	return strings.TrimSpace(b.String())
}

var errNothingSent = errors.New("the program sent no request to the model")
