package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

type followFlags struct {
	all  bool
	last int
}

func followCommand(a *app) *cobra.Command {
	var f followFlags
	cmd := &cobra.Command{
		Use:   "follow [ID]",
		Short: "Watch entries arrive, until interrupted",
		Long: "Follow prints the entries that are appended to a session, by whomever, one line\n" +
			"each. With --all it follows every session of the store, also those that begin\n" +
			"later. It ends when it is interrupted (exit code 130) or the session is removed.",
		Example: "  coppice follow 0199 --last 5\n" +
			"  coppice follow --all --json | jq -r .entry.message.role",
		GroupID:           "read",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeSession(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runFollow(cmd.Context(), args, &f) },
	}
	cmd.Flags().BoolVar(&f.all, "all", false, "all sessions of the store")
	cmd.Flags().IntVar(&f.last, "last", 0, "begin with the last N entries")
	return a.withJSON(cmd)
}

func (a *app) runFollow(ctx context.Context, args []string, f *followFlags) error {
	if f.all != (len(args) == 0) {
		return usageError{errors.New("follow one session by its id, or all of them with --all")}
	}
	if f.last < 0 {
		return usageError{errors.New("--last must not be negative")}
	}
	return a.withStore(func(st *file.Store) error {
		w := &watcher{app: a, store: st, short: make(map[string]string), showSession: f.all}
		var err error
		if f.all {
			err = w.followAll(ctx, f.last)
		} else {
			err = w.followOne(ctx, args[0], f.last)
		}
		return errors.Join(err, ctx.Err())
	})
}

// watcher prints entries as they come.
type watcher struct {
	*app
	store       *file.Store
	short       map[string]string // names of sessions as they are printed
	showSession bool
}

// arrival is an entry that was read from a log.
type arrival struct {
	session string
	entry   session.Entry
}

func (w *watcher) followOne(ctx context.Context, id string, last int) (err error) {
	name, err := resolveSession(ctx, w.store, id)
	if err != nil {
		return err
	}
	log, err := w.store.Open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	end, err := log.End(ctx)
	if err != nil {
		return err
	}
	before, err := w.lastOf(ctx, log, name, end, last)
	if err != nil {
		return err
	}
	for _, one := range before {
		if err := w.tell(one); err != nil {
			return err
		}
	}
	for line, err := range log.Watch(ctx, end) {
		if err == nil {
			err = w.tellLine(ctx, name, line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lastOf returns the last entries of a log before a position, the latest last.
func (w *watcher) lastOf(ctx context.Context, log store.Log, name string, end store.Pos, n int) ([]arrival, error) {
	var found []arrival
	if n <= 0 {
		return nil, nil
	}
	for line, err := range log.Backward(ctx, end) {
		if err != nil {
			return nil, err
		}
		if e, ok := w.decode(ctx, name, line); ok {
			found = append(found, arrival{name, e})
		}
		if len(found) == n {
			break
		}
	}
	slices.Reverse(found)
	return found, nil
}

// decode reads a line. Headers are not entries; what cannot be read is said.
func (w *watcher) decode(ctx context.Context, name string, line store.Line) (e session.Entry, ok bool) {
	err := json.Unmarshal(line.Data, &e)
	switch {
	case err == nil && e.Type == session.TypeSession:
		return e, false
	case err != nil || line.Cut:
		w.say("%s %s at byte %d: a line that is not an entry", w.paint(red, "coppice:"), name, line.Pos)
		return e, false
	}
	if w.flags.json && bytes.Contains(line.Data, []byte(`"blob"`)) {
		return w.filled(ctx, name, e), true
	}
	return e, true
}

// filled returns the entry with the content that is kept in blobs.
func (w *watcher) filled(ctx context.Context, name string, e session.Entry) session.Entry {
	s, err := session.Open(ctx, w.store, name, w.options())
	if err != nil {
		return e
	}
	defer s.Close()
	whole, err := s.Entry(e.ID)
	if err != nil {
		return e
	}
	return whole
}

func (w *watcher) tellLine(ctx context.Context, name string, line store.Line) error {
	e, ok := w.decode(ctx, name, line)
	if !ok {
		return nil
	}
	return w.tell(arrival{name, e})
}

// arrivalJSON is a line of follow --json.
type arrivalJSON struct {
	Session string        `json:"session"`
	Entry   session.Entry `json:"entry"`
}

// tell prints an entry on a line.
func (w *watcher) tell(one arrival) error {
	if w.flags.json {
		return w.printJSON(arrivalJSON{one.session, one.entry})
	}
	e := &one.entry
	kind := render.Kind(e)
	at := rfc3339(e.Timestamp)
	if w.isTerminal() {
		at = e.Timestamp.Local().Format(time.TimeOnly)
	}
	plain := at + "  "
	painted := w.paint(dim, at) + "  "
	if w.showSession {
		name := w.shortOf(one.session)
		plain, painted = plain+name+"  ", painted+w.paint(blue, name)+"  "
	}
	plain += pad(kind, render.KindWidth) + "  "
	painted += w.paint(kindColour(kind), pad(kind, render.KindWidth)) + "  "
	room := 0
	if width := w.width(); width > 0 {
		room = max(width-len([]rune(plain)), 16)
	}
	return w.print("%s%s", painted, oneLine(render.GistNaming(e, max(room, 0), halfUUID), room))
}
