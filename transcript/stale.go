package transcript

import (
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// # Which state of a source is the newest
//
// People copy the files of their programs: to another machine, into a backup, back
// again. Each copy is a state of the same conversation, and they may be imported in
// any order. What they say goes into one tree. The newest copy decides where the
// conversation ends, and an older one must not move it back.
//
// A file that was read before and has grown since is newer than it was. Between
// copies, the state that has the later record is the newer one: programs append.
// If the times do not decide, a state that adds nothing new and ends before the leaf
// counts as older.

// isStale reports whether the source is an older state of the conversation than the session.
// want is where the source ends.
func (t *target) isStale(want string) (bool, error) {
	if t.base == "" || want == "" || want == t.base || t.hasGrown() {
		return false, nil
	}
	if onward, err := t.leadsTo(want); onward || err != nil {
		return false, err
	}
	if !t.sourceTime.IsZero() {
		newest, err := t.newestImported()
		if err != nil || newest.After(t.sourceTime) {
			return err == nil, err
		}
	}
	if t.added > 0 || t.again > 0 {
		return false, nil
	}
	return t.isBefore(want, t.base)
}

// hasGrown reports whether this very file was read before, and is newer now.
func (t *target) hasGrown() bool {
	info, err := t.w.file.stat()
	before := t.w.before
	return err == nil && before != nil && !info.ModTime().Before(before.Modified) && info.Size() > before.Size
}

// leadsTo reports whether an entry follows the leaf that the session had. It need not
// go further up than the added entries: that is how a conversation continues.
func (t *target) leadsTo(id string) (bool, error) {
	for range t.added + len(t.remarks) + 1 {
		e, err := t.s.Entry(id)
		if err != nil || e.ParentID == nil {
			return false, err
		}
		if id = *e.ParentID; id == t.base {
			return true, nil
		}
	}
	// The leaf was moved back by hand, or by an import of an older version.
	return t.isBefore(t.base, id)
}

// isBefore reports whether an entry is on the path to another.
func (t *target) isBefore(id, other string) (bool, error) {
	shape, err := t.s.Shape()
	if err != nil {
		return false, err
	}
	path, err := shape.PathTo(other)
	return slices.Contains(path, shape.Index(id)), err
}

// newestImported returns the latest time of the imported entries.
func (t *target) newestImported() (newest time.Time, err error) {
	for e, err := range t.s.Entries() {
		if err != nil {
			return newest, err
		}
		if e.Timestamp.After(newest) && !isRemark(&e) && hasSource(&e) {
			newest = e.Timestamp
		}
	}
	return newest, nil
}

func hasSource(e *session.Entry) bool {
	return slices.ContainsFunc(e.Extra, func(f session.Field) bool { return f.Name == sourceField })
}
