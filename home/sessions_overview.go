package home

import (
	"context"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// Overview is what a home has, for a user who sees it for the first time.
type Overview struct {
	Dir      string        `json:"dir"`
	Sessions int           `json:"sessions"`
	Latest   []SessionInfo `json:"latest"` // the few most recently active
}

const maxLatest = 5

// Overview returns what the home has.
func (s *Sessions) Overview(ctx context.Context) (*Overview, error) {
	return ask(ctx, s.home, "sessions.overview", s.overview)
}

func (s *Sessions) overview(ctx context.Context) (*Overview, error) {
	ix, err := s.home.index(ctx)
	if err != nil {
		return nil, err
	}
	status, err := ix.Status(ctx)
	if err != nil {
		return nil, err
	}
	latest, _, err := ix.List(ctx, index.ListOptions{Desc: true, Fold: true, Limit: maxLatest})
	if err != nil {
		return nil, err
	}
	o := &Overview{Dir: s.home.Dir(), Sessions: status.Sessions, Latest: make([]SessionInfo, len(latest))}
	for i := range latest {
		o.Latest[i] = sessionInfo(&latest[i])
	}
	return o, nil
}

// KnownProgram is what a program keeps on this machine.
type KnownProgram struct {
	discover.Program
	New int `json:"new"` // the files that are not in the home, or have changed since
}

// ProgramsResult lists what programs keep on this machine.
type ProgramsResult struct {
	Programs []KnownProgram `json:"programs"`
}

// Programs returns what other programs keep on this machine that can be imported. It needs
// no home, so everything counts as new.
func (s *Settings) Programs() *ProgramsResult {
	return s.programs(func(discover.Source) bool { return true })
}

// Programs returns what other programs keep on this machine, and how much of it an
// import would read.
func (t *Transfer) Programs(ctx context.Context) (*ProgramsResult, error) {
	if err := t.home.checkOpen("transfer.programs"); err != nil {
		return nil, err
	}
	ledger := transcript.LedgerOf(t.home.store)
	return t.home.settings.programs(func(src discover.Source) bool { return !ledger.IsUnchanged(ctx, src.Path, src.Format) }), nil
}

func (s *Settings) programs(isNew func(discover.Source) bool) *ProgramsResult {
	sources := discover.Known(s.machine())
	news := make(map[string]int)
	for _, src := range sources {
		if src.Format != nil && src.Err == nil && isNew(src) {
			news[src.Format.Name]++
		}
	}
	list := []KnownProgram{}
	for _, p := range discover.ByProgram(sources) {
		list = append(list, KnownProgram{p, news[p.Name]})
	}
	return &ProgramsResult{list}
}
