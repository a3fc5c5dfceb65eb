package home

import (
	"context"
	"errors"
	"slices"

	"github.com/coppice-dev/coppice/session"
)

// CompareRequest compares the paths to two entries.
type CompareRequest struct {
	Session string `json:"session"` // as a person names it: see Resolve
	A       string `json:"a"`       // an entry, as a person names it; "" means the leaf
	B       string `json:"b"`       // the entry to compare it with
	// Other is the session that has the second entry. Default: the same session.
	Other string `json:"other,omitempty"`
	// Brief says what was done on either path, step by step, instead of listing entries.
	Brief bool `json:"brief,omitempty"`
}

// CompareResult says where two paths part and what only one of them has.
type CompareResult struct {
	Session  string          `json:"session"`
	Other    string          `json:"other,omitempty"` // the session that has B, if it is another
	A        string          `json:"a"`               // ids
	B        string          `json:"b"`
	Ancestor string          `json:"ancestor"` // the last entry they share; "" if none
	Shared   int             `json:"shared"`   // how many entries they share
	OnlyA    []session.Entry `json:"only_a"`   // earliest first
	OnlyB    []session.Entry `json:"only_b"`
	// SideA and SideB sum up what only one of them has.
	SideA *CompareSide `json:"side_a"`
	SideB *CompareSide `json:"side_b"`
	// Steps are what was done on either path after they part, if Brief was asked for.
	Steps []CompareStep `json:"steps,omitempty"`
}

// Compare compares the paths to two entries of a conversation, or of two. Entries of two
// sessions are the same if they have the same id, as those of a fork and its original do. A
// label, a name or tags apply to a whole session, and a fork repeats them: they are listed
// only if the other session has different ones.
func (e *Entries) Compare(ctx context.Context, r CompareRequest) (*CompareResult, error) {
	return call(ctx, e.home, "entries.compare", r, e.compare)
}

func (e *Entries) compare(ctx context.Context, r CompareRequest) (*CompareResult, error) {
	var result *CompareResult
	err := e.home.read(ctx, OpenRequest{Session: r.Session}, func(a *Conversation) (err error) {
		if r.Other == "" {
			result, err = compare(a, a, r)
			return err
		}
		return e.home.read(ctx, OpenRequest{Session: r.Other}, func(b *Conversation) (err error) {
			result, err = compare(a, b, r)
			return err
		})
	})
	return result, err
}

func compare(a, b *Conversation, r CompareRequest) (*CompareResult, error) {
	idA, pathA, err := pathOf(a, r.A)
	if err != nil {
		return nil, err
	}
	idB, pathB, err := pathOf(b, r.B)
	if err != nil {
		return nil, err
	}
	found := session.Compare(pathA, pathB)
	said, err := agreedRemarks(a.Session, b.Session)
	if err != nil {
		return nil, err
	}
	result := &CompareResult{Session: a.ID(), A: idA, B: idB, Ancestor: found.Ancestor, Shared: found.Shared}
	if result.OnlyA, err = readOnly(a, found.OnlyA, said); err != nil {
		return nil, err
	}
	if result.OnlyB, err = readOnly(b, found.OnlyB, said); err != nil {
		return nil, err
	}
	if b.ID() != a.ID() {
		result.Other = b.ID()
	}
	result.SideA, result.SideB = sideOf(result.OnlyA), sideOf(result.OnlyB)
	if r.Brief {
		result.Steps = aligned(stepsOf(result.OnlyA), stepsOf(result.OnlyB))
		result.OnlyA, result.OnlyB = []session.Entry{}, []session.Entry{}
	}
	return result, nil
}

// agreedRemarks returns a function that reports whether two sessions agree on what a label, a
// name or tags set.
func agreedRemarks(a, b *session.Session) (func(session.Entry) bool, error) {
	if a == b { // as it does with itself
		return func(e session.Entry) bool {
			return e.SessionInfo != nil || e.Label != nil || e.Custom != nil && e.Custom.CustomType == session.CustomTags
		}, nil
	}
	nameA, errA := a.Name()
	nameB, errB := b.Name()
	remarksA, remarkErrA := a.Remarks()
	remarksB, remarkErrB := b.Remarks()
	labelsA, labelErrA := a.Labels()
	labelsB, labelErrB := b.Labels()
	said := func(e session.Entry) bool {
		switch {
		case e.SessionInfo != nil:
			return nameA == nameB
		case e.Custom != nil && e.Custom.CustomType == session.CustomTags:
			return slices.Equal(remarksA.Tags, remarksB.Tags)
		case e.Label != nil:
			return labelsA[e.Label.TargetID] == labelsB[e.Label.TargetID]
		}
		return false
	}
	return said, errors.Join(errA, errB, remarkErrA, remarkErrB, labelErrA, labelErrB)
}

// pathOf returns the ids of the path to the entry that a person named. It reads none of the
// entries: most of two long paths is shared.
func pathOf(c *Conversation, given string) (id string, path []string, err error) {
	if id, err = c.Resolve(given); err == nil {
		path, err = pathIDs(c.Session, id)
	}
	return id, path, err
}

// pathIDs returns the ids of the entries from the root to one.
func pathIDs(s *session.Session, id string) ([]string, error) {
	shape, path, err := pathIn(s, id)
	var ids []string
	for _, n := range path {
		ids = append(ids, shape.ID(n))
	}
	return ids, err
}

// pathIn returns the tree of a session, and the path in it from the root to an entry.
func pathIn(s *session.Session, id string) (*session.Shape, []int32, error) {
	shape, err := s.Shape()
	if err != nil {
		return nil, nil, err
	}
	path, err := shape.PathTo(id)
	return shape, path, err
}

// readOnly reads the entries that only one path has, except remarks on which both sessions agree.
func readOnly(c *Conversation, only []string, said func(session.Entry) bool) ([]session.Entry, error) {
	shape, err := c.Shape()
	if err != nil {
		return nil, err
	}
	entries := []session.Entry{}
	for e, err := range shape.Entries(shape.Numbers(only)) {
		if err != nil {
			return nil, err
		}
		if !said(e) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}
