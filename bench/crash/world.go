package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/conversation"
	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

// world is the store that is worked on, and who works on it.
type world struct {
	dir    string // has sessions/, home/ and source/
	record string
	st     *file.Store
	lazy   *file.Store // the same directory, synced only by Flush
	lazily *session.Session
	keyed  *keyed.SessionManager
	talks  *conversation.Sessions
	open   map[string]*session.Session // handles that stay open from step to step
	state  state

	seed uint64
	rand *rand.Rand // of this step
	step int        // the next one
	op   string     // what it does
	said int        // for text that is nowhere else
	out  io.Writer  // hears what begins

	// How often another handle was opened because the session had been replaced, and
	// because an earlier write or sync had failed.
	replaced, refused int
}

func sessionsIn(dir string) string { return filepath.Join(dir, "sessions") }

// modes are the store as it is, and mutants that leave out a sync and must be
// caught.
var modes = map[string]file.Options{
	"session":      {},
	"nosync":       {Sync: file.Never},
	"nodirsync":    {FS: careless{FS: vfs.OS{}, dirs: true}},
	"renamenosync": {FS: careless{FS: vfs.OS{}, tmp: true}},
}

// newWorld goes on after the last step on record.
func newWorld(dir, mode, record string) (*world, error) {
	opts, ok := modes[mode]
	if !ok {
		return nil, fmt.Errorf("unknown mode %q", mode)
	}
	for _, d := range []string{record, filepath.Join(dir, "home"), filepath.Join(dir, "source")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	w := &world{dir: dir, record: record, open: make(map[string]*session.Session), seed: 1, out: io.Discard}
	if env := os.Getenv("COPPICE_CRASH_SEED"); env != "" {
		if _, err := fmt.Sscan(env, &w.seed); err != nil {
			return nil, err
		}
	}
	for ; ; w.step++ {
		end, err := load[snapshot](endPath(record, w.step))
		if err != nil {
			return nil, err
		}
		if end == nil {
			break
		}
		w.state = end.State
	}
	var err error
	if w.st, err = file.Open(sessionsIn(dir), &opts); err != nil {
		return nil, err
	}
	if opts.Sync == file.Always {
		opts.Sync = file.Every(time.Hour)
	}
	if w.lazy, err = file.Open(sessionsIn(dir), &opts); err != nil {
		return nil, err
	}
	w.keyed = keyed.New(&keyed.Options{Store: w.st})
	w.talks, err = conversation.NewSessions(w.st, &conversation.Options{
		Settings: conversation.Settings{MaxMessagesPerSession: 6, AutoSaveInterval: -1},
	})
	return w, err
}

func (w *world) close() error {
	err := errors.Join(w.keyed.Close(), w.talks.Close())
	for _, s := range w.open {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, w.st.Close(), w.lazy.Close())
}

// errNothing: there is nothing that the operation could be done to.
var errNothing = errors.New("nothing to do")

// next does a step that is possible, and puts on record what there is afterwards.
func (w *world) next(ctx context.Context) error {
	w.rand = rand.New(rand.NewPCG(w.seed, uint64(w.step)))
	for {
		op := operations[w.rand.IntN(len(operations))]
		if w.step == 0 {
			op = operations[0] // without a session there is little to do
		}
		w.op = op.name
		err := op.do(w, ctx)
		if errors.Is(err, errNothing) {
			continue
		}
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", w.step, w.op, err)
		}
		return w.ended(ctx)
	}
}

// ended puts on record what there is after a step.
func (w *world) ended(ctx context.Context) error {
	now, err := look(ctx, w.st)
	if err != nil {
		return fmt.Errorf("looking at the store after step %d, %s: %w", w.step, w.op, err)
	}
	if err := errors.Join(now.checkBlobs(ctx, w.st), checkSecrets(w.dir, w.state.Redacted)); err != nil {
		return fmt.Errorf("after step %d, %s: %w", w.step, w.op, err)
	}
	now.State = w.state
	err = save(endPath(w.record, w.step), now)
	w.step++
	return err
}

// begins puts on record what a step is about to do. An operation calls it before
// it changes anything, and after it knows that there is something to do.
func (w *world) begins(b begin) error {
	b.Op = w.op
	fmt.Fprintln(w.out, "begin", b.Op, w.step)
	return save(beginPath(w.record, w.step), b)
}

func (w *world) appends(names ...string) error { return w.begins(begin{Targets: names, Appends: true}) }

// stats lists the logs, those first that are not a keyed session's, a
// conversation's or an import's: these the caller may do anything to.
func (w *world) stats(ctx context.Context) (ordinary, special []store.Stat, err error) {
	key, err := session.KeyID(chatKey)
	if err != nil {
		return nil, nil, err
	}
	imported, err := importedID(ctx)
	if err != nil {
		return nil, nil, err
	}
	names := []string{key, imported}
	if w.state.Talk != "" {
		chain, err := session.Chain(ctx, w.st, w.state.Talk)
		if err != nil {
			return nil, nil, err
		}
		names = append(names, chain...)
	}
	for stat, err := range w.st.List(ctx) {
		if err != nil {
			return nil, nil, err
		}
		if slices.Contains(names, stat.Name) {
			special = append(special, stat)
		} else {
			ordinary = append(ordinary, stat)
		}
	}
	// A listing has no order, and a seed should mean the same every time.
	slices.SortFunc(ordinary, func(a, b store.Stat) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(special, func(a, b store.Stat) int { return strings.Compare(a.Name, b.Name) })
	return ordinary, special, nil
}

const maxSize = 200 << 10 // of a session that is still appended to

// pick chooses an ordinary log that has what the caller wants.
func (w *world) pick(ctx context.Context, want func(store.Stat) bool) (string, error) {
	ordinary, _, err := w.stats(ctx)
	if err != nil {
		return "", err
	}
	ordinary = slices.DeleteFunc(ordinary, func(s store.Stat) bool { return !want(s) })
	if len(ordinary) == 0 {
		return "", errNothing
	}
	return ordinary[w.rand.IntN(len(ordinary))].Name, nil
}

// choose picks a log, and begins to do something to it.
func (w *world) choose(ctx context.Context, want func(store.Stat) bool, b begin) (string, error) {
	name, err := w.pick(ctx, want)
	if err != nil {
		return "", err
	}
	b.Targets = []string{name}
	return name, w.begins(b)
}

// none are the targets of what changes no log that there is.
var none = []string{}

func small(s store.Stat) bool    { return !s.Archived && s.Size < maxSize }
func plain(s store.Stat) bool    { return !s.Archived }
func archived(s store.Stat) bool { return s.Archived }
func anyLog(store.Stat) bool     { return true }

// with calls do with a session: mostly a handle that was open before.
func (w *world) with(ctx context.Context, name string, do func(*session.Session) error) error {
	s := w.open[name]
	if s == nil || w.rand.IntN(4) == 0 {
		if err := w.reopen(ctx, name); err != nil {
			return err
		}
	}
	err := do(w.open[name])
	switch {
	case errors.Is(err, session.ErrConflict): // another handle was faster, or a torn line was completed
		if _, err := w.open[name].Refresh(); err != nil {
			return err
		}
	case s != nil && (errors.Is(err, session.ErrReplaced) || errors.Is(err, session.ErrNotExist) || errors.Is(err, session.ErrClosed)):
		// It was removed and restored, or rewritten, or a write had failed.
		if errors.Is(err, session.ErrClosed) {
			w.refused++
		} else {
			w.replaced++
		}
		if err := w.reopen(ctx, name); err != nil {
			return err
		}
	default:
		return err
	}
	return do(w.open[name])
}

func (w *world) reopen(ctx context.Context, name string) error {
	if s := w.open[name]; s != nil {
		delete(w.open, name)
		_ = s.Close() // what is wrong with it we know
	}
	s, err := session.Open(ctx, w.st, name, w.options())
	if err == nil {
		w.open[name] = s
	}
	return err
}

func (w *world) options() *session.Options { return &session.Options{BlobThreshold: 1 << 10} }

// text is text of about a length that is nowhere else.
func (w *world) text(size int) string {
	w.said++
	word := fmt.Sprintf("step %d says %d; ", w.step, w.said)
	return strings.Repeat(word, size/len(word)+1)
}

// cli runs the command line in a process of its own and returns what it printed.
// The exit codes allowed beside 0 come first.
func (w *world) cli(ctx context.Context, allowed []int, args ...string) (string, error) {
	out, code, err := runCLI(ctx, w.dir, args...)
	if err == nil && code != 0 && !slices.Contains(allowed, code) {
		err = fmt.Errorf("exit %d", code)
	}
	if err != nil {
		return out, fmt.Errorf("coppice %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out), nil
}

// childEnv tells a test binary that it is to be the program.
const childEnv = "COPPICE_CRASH_CHILD"

// programEnv names the program coppice.
const programEnv = "COPPICE_CRASH_PROGRAM"

func runCLI(ctx context.Context, dir string, args ...string) (string, int, error) {
	program := os.Getenv(programEnv)
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return "", 0, err
		}
		program = filepath.Join(filepath.Dir(self), "coppice")
	}
	home := filepath.Join(dir, "home")
	cmd := exec.CommandContext(ctx, program, append([]string{args[0], "--dir", sessionsIn(dir)}, args[1:]...)...)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"),
		"XDG_CONFIG_HOME="+filepath.Join(home, "config"), "XDG_DATA_HOME="+filepath.Join(home, "data"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return out.String(), exit.ExitCode(), nil
	}
	return out.String(), 0, err
}

// careless is a file system that leaves out syncs.
type careless struct {
	vfs.FS
	dirs bool // of directories
	tmp  bool // of files that are about to be renamed
}

func (c careless) SyncDir(name string) error {
	if c.dirs {
		return nil
	}
	return c.FS.SyncDir(name)
}

func (c careless) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err != nil || !c.tmp || filepath.Base(filepath.Dir(name)) != "tmp" {
		return f, err
	}
	return carelessFile{f}, nil
}

type carelessFile struct{ vfs.File }

func (carelessFile) Sync() error { return nil }
