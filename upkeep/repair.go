package upkeep

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// ErrBeyondRepair means that nothing of a session can be read and that there is no backup.
var ErrBeyondRepair = errors.New("nothing in it can be read, and there is no backup")

// Action is something that was done to a store, or would be.
type Action struct {
	Session string `json:"session"` // "" if it concerns no session
	Action  string `json:"action"`
	Entry   string `json:"entry,omitempty"`
	Offset  int64  `json:"offset,omitempty"` // in the original log
	Path    string `json:"path,omitempty"`
	Size    int64  `json:"size,omitempty"` // of a file that is deleted
	Detail  string `json:"detail"`
}

// RepairRequest says which session to repair.
type RepairRequest struct {
	Session string
	DryRun  bool // only say what would be done
}

// RepairResult is what a repair did.
type RepairResult struct {
	Session string   `json:"session"`
	Actions []Action `json:"actions"`
	// Kept is where the original log is, if it was rewritten.
	Kept string `json:"kept,omitempty"`
	// Left are the faults that remain, because fixing them would need guessing. A dry run
	// does not look for them.
	Left []Finding `json:"left"`
}

// Repair repairs what it can in a session without guessing: a torn end, lines that were
// joined, a missing or misplaced header, damaged lines (a placeholder replaces each, so that
// the tree stays connected), a lost record of the session's continuation, repeated lines, and
// permissions, including those of the store's own files. Whatever could be read before can be
// read afterwards, and the original log is kept.
//
// The error matches ErrBeyondRepair if nothing can be saved, and errors.ErrUnsupported
// if the store cannot rewrite logs.
func Repair(ctx context.Context, st store.Store, r RepairRequest) (*RepairResult, error) {
	mender, ok := store.As[store.Mender](st)
	if !ok {
		return nil, &session.Error{
			Op: "repair", Name: r.Session, Kind: errors.ErrUnsupported, Err: errors.New("only sessions in files get damaged in ways that can be repaired"),
			Hint: "check it to see whether it is damaged at all",
		}
	}
	job := &repairJob{store: st, Mender: mender, RepairRequest: r}
	modes, err := job.narrowModes(ctx)
	if err != nil {
		return nil, err
	}
	result := &RepairResult{Session: r.Session, Actions: []Action{}, Left: []Finding{}}
	var lines []Action
	// If another process writes to the log in between, plan again.
	err = session.Retry(func() (err error) {
		lines, result.Kept, err = job.repairLog(ctx)
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	if result.Actions = append(append(result.Actions, modes...), lines...); r.DryRun {
		return result, nil
	}
	_, err = Check(ctx, st, CheckRequest{Sessions: []string{r.Session}, Each: func(f Finding) error {
		if f.Severity == Fault {
			result.Left = append(result.Left, f)
		}
		return nil
	}})
	return result, err
}

// repairJob is one repair.
type repairJob struct {
	store store.Store
	store.Mender
	RepairRequest
}

// narrowModes removes permissions that are too wide, from the store's own files and
// from those of the session.
func (j *repairJob) narrowModes(ctx context.Context) ([]Action, error) {
	var all []store.Fault
	for f, err := range j.InspectRest(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	for f, err := range j.InspectLog(ctx, j.Session) {
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	var done []Action
	for _, f := range all {
		if f.Kind != store.FaultPermissions {
			continue
		}
		if !j.DryRun {
			if err := j.Mend(ctx, f); err != nil {
				return done, err
			}
		}
		done = append(done, Action{
			Session: j.Session, Action: string(f.Kind), Path: f.Path,
			Detail: fmt.Sprintf("%s had mode %04o, which becomes %04o", f.Path, f.Mode, f.Mode&f.Fit),
		})
	}
	return done, nil
}

// repairLog repairs the log in its present state, and returns what it did and where the
// original is. The error matches store.ErrConflict if the log changed in between.
func (j *repairJob) repairLog(ctx context.Context) (done []Action, kept string, err error) {
	raw, err := j.OpenRaw(ctx, j.Session)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, raw.Close()) }()
	p, err := planRepair(ctx, j.store, j.Session, raw)
	if err != nil {
		return nil, "", err
	}
	if p.isLost() {
		return j.restoreBackup(ctx)
	}
	if err := j.addLeftover(ctx, p); err != nil {
		return nil, "", err
	}
	if len(p.actions) == 0 || j.DryRun {
		return p.actions, "", nil
	}
	kept, err = raw.Rewrite(ctx, p.newContent())
	return p.actions, kept, err
}

// addLeftover adds an archive beside the plain file to the plan: rewriting the log
// moves it aside.
func (j *repairJob) addLeftover(ctx context.Context, p *repairPlan) error {
	for f, err := range j.InspectLog(ctx, j.Session) {
		if err != nil {
			return err
		}
		if f.Kind == store.FaultLeftover {
			p.act(string(f.Kind), nil, "it moves to quarantine; the plain file counts")
		}
	}
	return nil
}

// restoreBackup handles a log in which nothing can be read.
func (j *repairJob) restoreBackup(ctx context.Context) ([]Action, string, error) {
	backup, ok := j.HasBackup(j.Session)
	if !ok {
		return nil, "", &session.Error{
			Op: "repair", Name: j.Session, Kind: session.ErrCorrupt, Err: ErrBeyondRepair,
			Hint: "remove the session to get it out of the way; it can be restored from the trash",
		}
	}
	if !j.DryRun {
		if err := j.RestoreBackup(ctx, j.Session); err != nil {
			return nil, "", err
		}
	}
	return []Action{{
		Session: j.Session, Action: "backup", Path: backup,
		Detail: "nothing in the log can be read; the backup replaces it, and the log moves to quarantine",
	}}, "", nil
}
