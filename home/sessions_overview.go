package home

import (
	"context"
	"runtime"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// Overview is what a home has, for somebody who sees it for the first time.
type Overview struct {
	Dir      string        `json:"dir"`
	Sessions int           `json:"sessions"`
	Latest   []SessionInfo `json:"latest"` // the few most recently active
}

const maxLatest = 5

// Overview returns what the home has.
func (s *Sessions) Overview(ctx context.Context) (*Overview, error) {
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
	Program
	New int `json:"new"` // the files that are not in the home, or have changed since
}

// KnownPrograms returns what other programs keep on this machine that can be imported.
// It needs no home, so everything counts as new.
func KnownPrograms(getenv func(string) string) []KnownProgram {
	return knownPrograms(getenv, func(discover.Source) bool { return true })
}

// Programs returns what other programs keep on this machine, and how much of it an
// import would read.
func (t *Transfer) Programs(getenv func(string) string) []KnownProgram {
	ledger := transcript.LedgerOf(t.home.store)
	return knownPrograms(getenv, func(src discover.Source) bool { return !ledger.IsUnchanged(src.Path, src.Format) })
}

func knownPrograms(getenv func(string) string, isNew func(discover.Source) bool) []KnownProgram {
	sources := discover.Known(machine(getenv))
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
	return list
}

// machine is the user's machine as formats see it.
func machine(getenv func(string) string) transcript.Env {
	return transcript.Env{Home: HomeDir(getenv), Getenv: getenv, GOOS: runtime.GOOS}
}
