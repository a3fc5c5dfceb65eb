package coppice

import (
	"context"
	"runtime"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// Overview is what a home has, for somebody who has just come in.
type Overview struct {
	Dir      string        `json:"dir"`
	Sessions int           `json:"sessions"`
	Latest   []SessionInfo `json:"latest"` // a few in which something was said last
}

const maxLatest = 5

// Overview says what the home has.
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

// KnownPrograms says what other programs keep on this machine that can be
// imported. It needs no home.
func KnownPrograms(getenv func(string) string) []discover.Program {
	return discover.ByProgram(discover.Known(machine(getenv)))
}

// machine is the user's machine as formats see it.
func machine(getenv func(string) string) transcript.Env {
	return transcript.Env{Home: HomeDir(getenv), Getenv: getenv, GOOS: runtime.GOOS}
}
