package home

import (
	"context"
	"time"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/bulk"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// The values of SettingImport, which says whose sessions are imported live while a person looks at
// the home: see WatchAgents.
const (
	ImportAsk   = "ask"   // as ImportKnown; a face may ask about other agents, once
	ImportKnown = "known" // agents of which the home has sessions that came from this machine
	ImportAll   = "all"   // every agent
	ImportNone  = "none"
)

const (
	// watchEvery is how often at most the files of agents are looked at.
	watchEvery = 500 * time.Millisecond
	// watchAgain is how long it takes until live import is tried again after it has failed.
	watchAgain = time.Minute
	// maxWatchFailures is of how many files a person hears that they cannot be imported.
	maxWatchFailures = 5
)

// WatchAgents imports what the agents of this machine write, as they write it, until the context
// ends. Which agents, the setting says; another value of it than "" takes its place. A home on
// another machine has no agents here unless which says so: sessions are not sent elsewhere only
// because somebody looks at what is there.
//
// Whatever goes wrong comes as a Notice, once, and is tried again. Several programs may do this
// with one home.
func (h *Home) WatchAgents(ctx context.Context, which string) error {
	if err := h.checkOpen("watch agents"); err != nil {
		return err
	}
	if r := ruleOf(SettingImport); which != "" && !r.fits(which) {
		return r.refuse(Setting{SettingImport, which, "given"})
	}
	if which = h.whichAgents(which); which == ImportNone {
		return nil
	}
	w := &agentWatch{home: h, all: which == ImportAll, told: make(map[string]bool)}
	for ctx.Err() == nil {
		if err := w.run(ctx); err != nil && ctx.Err() == nil {
			w.tell(ctx, "", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchAgain):
		}
	}
	return nil
}

// whichAgents returns what holds: what was asked for, or the setting.
func (h *Home) whichAgents(asked string) string {
	switch {
	case asked != "":
		return asked
	case h.kind == awayKind:
		return ImportNone
	}
	return h.settings.Get(SettingImport).Value
}

// UnwatchedAgents returns the agents that keep sessions on this machine and are not watched, if the
// setting says that a person may be asked about them. ImportAll or ImportKnown, as its new value,
// remembers what they said.
func (h *Home) UnwatchedAgents(ctx context.Context) ([]discover.Program, error) {
	if err := h.checkOpen("list agents"); err != nil {
		return nil, err
	}
	if h.whichAgents("") != ImportAsk {
		return nil, nil
	}
	w := &agentWatch{home: h, ledger: transcript.LedgerOf(h.store)}
	w.find(ctx)
	return discover.ByProgram(discover.Known(h.settings.machine(), w.others...)), ctx.Err()
}

// agentWatch is one call of WatchAgents.
type agentWatch struct {
	home   *Home
	all    bool
	ledger *transcript.Ledger

	known, others []*transcript.Format // with and without sessions in the home
	found         time.Time            // when that was found out
	told          map[string]bool      // what a person was told
}

// run imports until the context ends or something is wrong with the home.
func (w *agentWatch) run(ctx context.Context) error {
	h := w.home
	h.beforeWriting(ctx)
	st, err := h.openLazily(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	if err := canImport(ctx, st, false); err != nil {
		return err
	}
	im := h.importer(st, &ImportRequest{})
	w.ledger = im.Ledger
	_, err = h.watch(ctx, im, bulk.Request{
		Each: func(f *bulk.File, err error) error {
			if err != nil && ctx.Err() == nil {
				w.tell(ctx, f.Path, err)
			}
			return nil
		},
	}, watchEvery, func(l *discover.Looked) error { w.look(ctx, l); return nil })
	return err
}

// look finds the files of the agents that are watched. What the others have is not listed each
// time: they may have many files.
func (w *agentWatch) look(ctx context.Context, l *discover.Looked) {
	formats := transcript.Formats()
	if !w.all {
		if time.Since(w.found) >= watchAgain {
			w.ledger.Refresh(ctx)
			w.find(ctx)
		}
		formats = w.known
	}
	l.For(w.home.settings.machine(), formats...)
}

// find finds out which agents have sessions in the home. Once they do, they are watched to the end.
func (w *agentWatch) find(ctx context.Context) {
	w.found = time.Now()
	if w.others == nil && w.known == nil {
		w.others = discover.Programs()
	}
	var others []*transcript.Format
	for _, format := range w.others {
		if w.has(ctx, format) {
			w.known = append(w.known, format)
		} else {
			others = append(others, format)
		}
	}
	w.others = others
}

// has reports whether the home has a session that was imported from the files that an agent keeps
// on this machine. Sessions that came from elsewhere, those of a demo, and those that were exported
// to the agent do not count: nobody has asked for the files here.
func (w *agentWatch) has(ctx context.Context, format *transcript.Format) bool {
	for _, src := range discover.Known(w.home.settings.machine(), format) {
		known := w.ledger.Get(ctx, src.Path)
		if known == nil || known.Exported != "" {
			continue
		}
		for _, id := range known.Sessions {
			if _, err := w.home.store.Stat(ctx, id); err == nil {
				return true
			}
		}
	}
	return false
}

// tell says once what could not be imported, and why.
func (w *agentWatch) tell(ctx context.Context, path string, err error) {
	key := path
	if path == "" {
		key = err.Error()
	}
	if w.told[key] || len(w.told) >= maxWatchFailures {
		return
	}
	w.told[key] = true
	w.home.notify(ctx, Notice{Kind: ImportFailed, Path: path, Error: described(err)})
}
