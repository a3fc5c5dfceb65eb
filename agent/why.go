package agent

import (
	"errors"
	"time"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
)

// Reuse says how much of a request was the beginning of the request before it: the part
// that a provider can serve from its cache.
type Reuse struct {
	Record
	ID   string    `json:"id"` // the entry that has the record
	Time time.Time `json:"time"`
	// Usage is what the provider reported for the answer; nil if it reported nothing, or
	// if the answer is not kept.
	Usage *session.Usage `json:"usage,omitempty"`
	// Same is how many entries this request shares with the beginning of the previous
	// one, and Before how many that one had. Both are 0 for the first request.
	Same   int `json:"same"`
	Before int `json:"before"`
	// Changed is the first entry that differs, and Why says how: "" if the request only adds
	// to the one before.
	Changed string `json:"changed,omitempty"`
	Why     string `json:"why,omitempty"`
	// Rebuilt reports whether the request can be built again from the log, byte for byte. It
	// is nil if no model could build it, or if another kind of loop sent it.
	Rebuilt *bool `json:"rebuilt,omitempty"`
}

// Requests returns the last requests of a session, oldest first, each compared with the one
// before it in time: 0 is all of them. models returns a model that encodes like the one that
// a record names, or nil; that model gets no request.
func Requests(s *session.Session, last int, models func(*Record) provider.Model) ([]Reuse, error) {
	var records []Record
	var previous *Record // the last request of the conversation before records
	for r, err := range Records(s) {
		if err != nil {
			return nil, err
		}
		records = append(records, r)
		if last > 0 && len(records) > last {
			if records[0].Leaf != "" {
				previous = &records[0]
			}
			records = records[1:]
		}
	}
	before := &session.Context{}
	if previous != nil {
		var err error
		if before, _, err = sentBy(s, previous); err != nil {
			return nil, err
		}
	}
	var all []Reuse
	for i := range records {
		r := &records[i]
		if r.Leaf == "" { // it is not part of the conversation, or was never sent
			all = append(all, Reuse{Record: *r, ID: r.ID, Time: r.Time})
			continue
		}
		now, lost, err := sentBy(s, r)
		if err != nil {
			return nil, err
		}
		reuse, err := reuseOf(s, r, now, models)
		if err != nil {
			return nil, err
		}
		if lost {
			reuse.Why = "what was sent is no longer in the log"
		} else if previous != nil {
			reuse.compare(previous, before, now)
		}
		all = append(all, *reuse)
		before, previous = now, r
	}
	return all, nil
}

// sentBy returns the conversation that a request sent; lost reports that the log no longer
// has it.
func sentBy(s *session.Session, r *Record) (sent *session.Context, lost bool, _ error) {
	sent, err := s.Context(session.ContextOptions{Leaf: r.Leaf, Shared: true})
	if errors.Is(err, session.ErrNotExist) {
		return &session.Context{}, true, nil
	}
	return sent, false, err
}

// reuseOf returns the facts about a request by itself.
func reuseOf(s *session.Session, r *Record, now *session.Context, models func(*Record) provider.Model) (*Reuse, error) {
	reuse := &Reuse{Record: *r, ID: r.ID, Time: r.Time}
	if r.Response != "" {
		found, err := s.Peek(r.Response)
		if err != nil && !errors.Is(err, session.ErrNotExist) {
			return nil, err
		}
		if len(found) > 0 && found[0].Message != nil {
			reuse.Usage = found[0].Message.Usage
		}
	}
	if models == nil || r.Sum == "" {
		return reuse, nil
	}
	if m := models(r); m != nil {
		_, same, err := r.Rebuild(s, m)
		same = same && err == nil // no longer encodable means not rebuilt
		reuse.Rebuilt = &same
	}
	return reuse, nil
}

// compare finds where a request differs from the one before it, and why.
func (r *Reuse) compare(last *Record, before, now *session.Context) {
	diff := before.Diff(now)
	r.Same, r.Before = diff.Index, len(before.Entries)
	switch {
	case r.Provider != last.Provider || r.Model != last.Model || r.API != last.API:
		r.Same, r.Why = 0, "another model was asked"
	case r.Tools != last.Tools:
		r.Same, r.Why = 0, "other tools were offered"
	case r.Thinking != last.Thinking:
		r.Why = "another thinking level was asked for"
	case diff.Index < len(before.Entries):
		r.Changed, r.Why = diff.Before, diff.Why
	}
}
