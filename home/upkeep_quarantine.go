package home

import (
	"context"
	"errors"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// Kept is something in quarantine: a session as it was before a repair, one that another file
// replaced, or a piece that a crash tore off a session.
type Kept struct {
	ID      string    `json:"id"` // names it
	Session string    `json:"session"`
	Path    string    `json:"path"`
	Time    time.Time `json:"time"` // when it went there
	Size    int64     `json:"size"`
	Piece   bool      `json:"piece"`            // it is only a piece of a session
	Offset  int64     `json:"offset,omitempty"` // where in the session the piece was
}

// QuarantineResult is what is in quarantine.
type QuarantineResult struct {
	Kept []Kept `json:"kept"` // latest first
}

// Quarantine lists what is in quarantine.
func (u *Upkeep) Quarantine(ctx context.Context) (*QuarantineResult, error) {
	return ask(ctx, u.home, "upkeep.quarantine", u.quarantine)
}

func (u *Upkeep) quarantine(ctx context.Context) (*QuarantineResult, error) {
	result := &QuarantineResult{Kept: []Kept{}}
	mender, ok := store.As[store.Mender](u.home.store)
	if !ok {
		return result, nil // nothing can be damaged there
	}
	all, err := mender.Quarantined(ctx)
	if err != nil {
		return nil, err
	}
	for _, q := range all {
		result.Kept = append(result.Kept, Kept{q.ID, q.Name, q.Path, q.Time, q.Size, q.Torn, q.Offset})
	}
	return result, nil
}

// ReadmitRequest says what to bring back from quarantine.
type ReadmitRequest struct {
	ID string `json:"id"` // as the list of what is in quarantine has it
}

// ReadmitResult is what was brought back.
type ReadmitResult struct {
	Session string `json:"session"`
	ID      string `json:"id"`
}

// Readmit brings a session back from quarantine under its id. It returns
// session.ErrExist if the home has a session with that id.
func (u *Upkeep) Readmit(ctx context.Context, r ReadmitRequest) (*ReadmitResult, error) {
	return call(ctx, u.home, "upkeep.readmit", r, u.readmit)
}

func (u *Upkeep) readmit(ctx context.Context, r ReadmitRequest) (*ReadmitResult, error) {
	u.home.beforeReplacing(ctx)
	mender, ok := store.As[store.Mender](u.home.store)
	if !ok {
		return nil, u.home.unsupported("bring back from quarantine", "no quarantine")
	}
	name, err := mender.Readmit(ctx, r.ID)
	if errors.Is(err, session.ErrExist) {
		return nil, &session.Error{
			Op: "bring back", Name: name, Kind: session.ErrExist, Err: errors.New("a session with that id exists"),
			Hint: "remove that one first; the one in quarantine is still there",
		}
	}
	if err != nil {
		return nil, err
	}
	return &ReadmitResult{Session: name, ID: r.ID}, nil
}
