package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/internal/process"
	"github.com/coppice-dev/coppice/internal/gate"
)

// The names of the tools.
const (
	Read   = "read"
	Write  = "write"
	Edit   = "edit"
	Bash   = "bash"
	Grep   = "grep"
	Glob   = "glob"
	Ls     = "ls"
	Fetch  = "fetch"
	Search = "search"
	Task   = "task"
)

// Names returns the names of all tools.
func Names() []string { return []string{Read, Write, Edit, Bash, Grep, Glob, Ls, Fetch, Search, Task} }

// Options say where and how the tools work. The zero value works in the current
// directory, without search.
type Options struct {
	// Dir is the working directory. Default: the current one.
	Dir string
	// Names are the tools to make. Default: all; search only if Search is set.
	Names []string
	// Search finds what was said in earlier sessions.
	Search SearchFunc
	// Rules allow and deny calls without asking. Default: none.
	Rules *Rules
	// Env is the environment of commands. Default: that of the program, without variables
	// that look like a key, a token or a password, and with settings that keep programs from
	// waiting for a person.
	Env []string
	// Keep names variables that stay in the default of Env although they look like a
	// key.
	Keep []string
	// MaxOutput is how many bytes a read or a command returns at once. Default: 32 KiB,
	// which is less than an agent cuts off by default.
	MaxOutput int
	// Timeout is how long a command may take if the call does not say. Default: two
	// minutes.
	Timeout time.Duration
	// MaxTimeout is the longest time that a call may ask for. Default: ten minutes.
	MaxTimeout time.Duration
	// Grace is how long a command may take to clean up after the signal to end. Default: one
	// second; an agent does not wait much longer.
	Grace time.Duration
	// Logger gets what the model does not need to know. Default: none.
	Logger *slog.Logger
}

// toolset is what the tools share.
type toolset struct {
	Options
	dir    dir
	memory memory
	shell  string // of commands; "" if there is none
	// changing is held by a call that changes a file, from reading it to replacing it.
	// An agent runs such calls alone; two agents may share the tools.
	changing gate.Mutex
}

// New returns the tools.
func New(o Options) ([]agent.Tool, error) {
	k := &toolset{Options: o}
	if err := k.complete(); err != nil {
		return nil, err
	}
	makers := map[string]func() (agent.Tool, error){
		Read: k.read, Write: k.write, Edit: k.edit, Bash: k.bash, Grep: k.grep, Glob: k.glob, Ls: k.ls, Fetch: k.fetch, Search: k.search,
		Task: func() (agent.Tool, error) { return agent.TaskTool(agent.TaskOptions{}) },
	}
	var list []agent.Tool
	for _, name := range k.Names {
		make, ok := makers[name]
		switch {
		case !ok:
			return nil, fmt.Errorf("there is no tool %q: the tools are %s", name, strings.Join(Names(), ", "))
		case name == Search && k.Search == nil:
			return nil, fmt.Errorf("the tool %s has no sessions to search", name)
		case slices.ContainsFunc(list, func(t agent.Tool) bool { return t.Name == name }):
			continue
		}
		t, err := make()
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return k.Rules.Apply(list...), nil
}

// complete fills in the defaults.
func (k *toolset) complete() error {
	var err error
	if k.dir, err = openDir(k.Dir); err != nil {
		return err
	}
	if len(k.Names) == 0 {
		k.Names = slices.DeleteFunc(Names(), func(name string) bool { return name == Search && k.Search == nil })
	}
	if k.Env == nil {
		k.Env = append(process.Environ(k.Keep...), quiet...)
	}
	if k.MaxOutput <= 0 {
		k.MaxOutput = 32 << 10
	}
	if k.MaxTimeout <= 0 {
		k.MaxTimeout = 10 * time.Minute
	}
	if k.Timeout <= 0 {
		k.Timeout = 2 * time.Minute
	}
	k.Timeout = min(k.Timeout, k.MaxTimeout)
	if k.Grace <= 0 {
		k.Grace = time.Second
	}
	if k.Logger == nil {
		k.Logger = slog.New(slog.DiscardHandler)
	}
	k.shell = findShell()
	return nil
}

// pathTool returns a tool whose calls name a file. A call asks if the file is outside of the
// working directory or guarded, or always if the tool changes files; verb says what it does
// with the file.
func pathTool[In interface{ pathText() string }](k *toolset, name, verb, description string,
	run func(ctx context.Context, call agent.Call, in In, p path) (agent.Result, error),
) (agent.Tool, error) {
	t, err := agent.NewTool(name, description+" Paths are relative to the working directory.",
		func(ctx context.Context, call agent.Call, in In) (agent.Result, error) {
			p, err := k.dir.pathIn(name, call.Input)
			if err != nil {
				return refused(err)
			}
			result, err := run(ctx, call, in, p)
			if err != nil && ctx.Err() == nil {
				return refused(explain(p, err))
			}
			return result, err
		})
	changes := name == Write || name == Edit
	t.Alone, t.Repeatable = changes, !changes
	if changes {
		t.Check = k.checkChange
	}
	t.Ask = func(call agent.Call) (bool, string) { return k.asks(name, verb, changes, call) }
	t.Files = func(input json.RawMessage) (read, changed []string) {
		p, err := k.dir.pathIn(name, input)
		switch {
		case err != nil, name != Read && !changes: // a search's result shows what it read
			return nil, nil
		case changes:
			return nil, []string{p.String()}
		}
		return []string{p.String()}, nil
	}
	return t, err
}

// asks reports whether a call that names a file must be approved, and remembers which file it
// is. If the call does not name the file plainly, the reason does: the person who approves a
// call must know which file it is.
func (k *toolset) asks(tool, verb string, changes bool, call agent.Call) (bool, string) {
	text, err := pathTools[tool](call.Input)
	if err != nil {
		return false, "" // it will not run
	}
	p, err := k.dir.locate(text)
	if err != nil {
		return false, ""
	}
	file := p
	if at, err := k.dir.open(p); err == nil {
		file.name = at.full
		at.close()
	}
	k.memory.approve(call, p, file.name)
	switch {
	case p.outside:
		return true, fmt.Sprintf("it %s a file outside of the working directory: %s", verb, p)
	case !changes && (isGuarded(p.name) || isGuarded(file.name)):
		return true, fmt.Sprintf("it %s what may hold secrets: %s", verb, file)
	case !changes:
		return false, ""
	case text == file.String():
		return true, ""
	}
	return true, fmt.Sprintf("it %s %s", verb, file)
}

// openToRead opens a path for a call that only reads. A guarded file must be the one that the call
// named when it was asked about.
func (k *toolset) openToRead(call agent.Call, p path) (*openedPath, error) {
	at, err := k.dir.open(p)
	if err != nil || p.outside || !isGuarded(at.full) {
		return at, err
	}
	if err := k.memory.isApproved(call, p, at); err != nil {
		at.close()
		return nil, err
	}
	return at, nil
}

// refused returns a result that tells the model what was wrong with its call.
func refused(err error) (agent.Result, error) {
	return agent.Result{Text: err.Error(), IsError: true}, nil
}

// ended returns why a context has ended, or nil.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// size writes a number of bytes for people.
func size(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// openDir finds the working directory.
func openDir(name string) (dir, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return dir{}, err
	}
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", path)
	}
	if err != nil {
		return dir{}, fmt.Errorf("the working directory of the tools: %w", err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return dir{}, fmt.Errorf("the working directory of the tools: %w", err)
	}
	return dir{path: path, real: real}, nil
}
