package session

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"

	"github.com/coppice-dev/coppice/store"
)

// How several logs become one. Session s1 continues s0. It begins with a copy of s0's
// instructions and the marker after which its own entries come, and happens to use an id
// that s0 has too:
//
//	s0                     s1
//	a  system "be kind"    a' system "be kind", a copy of a
//	b  user "one"          m  the marker
//	c  user "two"          b  user "three"
//	                       d  user "four"
//
// The chain is the log of s0 and then that of s1, with some lines changed:
//
//	a   system "be kind"
//	b   user "one"
//	c   user "two"
//	b~2 user "three"       its parent was m; a' and m are left out, so it hangs on c
//	d   user "four"        its parent was b
//
// linkJoiner does that for one log, in this order: hand and choose decide what is left out,
// takeNodes puts the rest into the chain's tree, changeLine notes in chainPart.patch the
// lines that must now say something else. What names a' (a label, say) means a from then on;
// had a been lost with its session, a' would have stayed in its place. chainLog reads the
// logs with those changes.
//
// What is appended to the chain goes to the last log, in the words of that session: see
// inLink in join_live.go. It is then joined like any other line.

// OpenChain opens the sessions of a chain as one conversation. What a session was only given
// by those before it is left out, unless the original is in none of them because a session is
// missing. All branches are there; the first entries of a session follow the leaf of the one
// before it.
//
// The session that it returns can be used like any other, and has the chain's id. What is
// appended goes to the last session of the chain, and may name entries of all. Only Branch
// cannot go back to an entry of an earlier session, unless the last one was given a copy of
// it. A fork of it is a session of its own with all of the conversation. No content is
// copied: it stays in the logs.
func OpenChain(ctx context.Context, st store.Store, c Linked, o *Options) (*Session, error) {
	if len(c.Links) == 0 {
		return nil, &Error{Op: "open", Name: c.ID, Kind: ErrNotExist, Err: errors.New("all sessions of the conversation are missing")}
	}
	if err := checkStore("open", c.ID, st); err != nil {
		return nil, err
	}
	log := &chainLog{name: c.ID}
	j := &chainJoiner{log: log, opts: o, tree: newTree(), seen: make(map[string]string), made: make(map[string]bool), stood: make(map[string]string)}
	for _, name := range c.Links {
		if err := j.add(ctx, st, name); err != nil {
			return nil, errors.Join(err, log.Close())
		}
	}
	h := j.header
	if h.ID != c.ID { // the original is missing
		h.ID, h.ParentSession, h.Relation, h.Continuation = c.ID, "", "", 0
	}
	if j.headed {
		log.parts[0].patch[0] = appendHeader(nil, &h)
	}
	t := j.tree
	t.header, t.extent = &h, extentWhole
	t.end, _ = log.End(ctx)
	log.leaf, _ = t.standsAt(log.leaf)
	t.leaf, t.logLeaf = j.leaf, j.leaf
	return &Session{core: &core{opts: o.withDefaults(), store: st, log: log, name: c.ID, header: h, tree: t}}, nil
}

// chainJoiner makes one session of a chain. Its tree is the trees of the sessions, one
// on the leaf of the other, less what is left out: so each of them has the shape that
// it has alone, damage included. The lines are changed only where they would not say
// that themselves, so that together they are the log of such a session.
type chainJoiner struct {
	ctx    context.Context
	log    *chainLog
	opts   *Options
	tree   *tree
	header Header
	headed bool              // the first log begins with it
	leaf   string            // of what was joined so far
	seen   map[string]string // the ids of what was joined, as they are now by what they were, if they differ
	made   map[string]bool   // ids that no session has: they were made for entries whose own was taken
	stood  map[string]string // the originals of copies that were left out
	said   map[Saying]string // who said an instruction or a document first: filled when needed,
	asked  int               // from this many of the logs
}

// original returns the entry that an id of an earlier session means.
func (j *chainJoiner) original(id string) (string, bool) {
	if is, ok := j.seen[id]; ok {
		return is, true
	}
	if _, ok := j.tree.at(id); ok && !j.made[id] {
		return id, true
	}
	is, ok := j.stood[id]
	return is, ok
}

// add joins the log of a session.
func (j *chainJoiner) add(ctx context.Context, st store.Store, name string) (err error) {
	log, err := st.Open(ctx, name)
	if err != nil {
		return err
	}
	j.ctx = ctx
	part := &chainPart{name: name, log: log, patch: make(map[store.Pos][]byte), was: make(map[string]string)}
	if j.log.live != nil {
		before := j.log.last()
		part.base = before.base + before.end
	}
	j.log.mu.Lock()
	j.log.parts = append(j.log.parts[:j.log.ready:j.log.ready], part)
	j.log.mu.Unlock()
	defer func() {
		if err != nil {
			j.log.mu.Lock()
			j.log.parts = j.log.parts[:j.log.ready]
			j.log.mu.Unlock()
			err = errors.Join(err, log.Close())
		}
	}()
	if part.end, err = log.End(ctx); err != nil {
		return err
	}
	s := &Session{core: &core{opts: j.opts.withDefaults(), store: st, log: log, name: name}}
	if err := s.load(j.ctx); err != nil {
		return err
	}
	whole, err := loadTree(j.ctx, log, part.end, detailRoles)
	if err != nil {
		return err
	}
	first := len(j.log.parts) == 1
	if first {
		j.header = s.header
	}
	l := &linkJoiner{
		chainJoiner: j, part: part, own: whole, first: first, carried: CarriedIn(&s.header), above: none,
		gone: make(map[string]bool), now: make(map[string]string), stands: make(map[string]string), copies: make(map[string]string), named: make(map[string]string),
		next: make(map[string]string), records: make(map[string]bool),
	}
	if at, ok := j.tree.at(j.leaf); ok {
		l.above = at
	}
	if err := l.run(); err != nil {
		return err
	}
	j.log.mu.Lock()
	defer j.log.mu.Unlock()
	j.log.live, j.log.ready = l, len(j.log.parts)
	return nil
}

// linkJoiner joins one log to those before it.
type linkJoiner struct {
	*chainJoiner
	part    *chainPart
	own     *tree // of this session alone
	first   bool
	above   int32 // the leaf of the session before, in the chain's tree, or none
	carried Carried
	begun   []*Entry          // messages at the beginning that may turn out to be copies
	gone    map[string]bool   // what is left out
	stands  map[string]string // the original of a copy that is left out
	named   map[string]string // what copies that are left out name, and the originals
	copies  map[string]string // the copies that stay because the original is missing, by its id
	places  []int32           // where each node is in the chain's tree, or none
	line    int32             // the node whose line changeLine expects next
	now     map[string]string // the ids of what stays, as they are now, if they differ or came later than places
	after   []string          // what is left out, as long as nothing that stays came after it
	next    map[string]string // the first that stays after what is left out

	// Of the last session only:
	records   map[string]bool // what names its continuation
	base      string          // the last that it was given, after which its own entries come; "" if it was given nothing
	continued continued       // where it continues
}

// run decides on what is left out, adds the rest to the chain's tree, and then changes
// the lines that would say something else.
func (l *linkJoiner) run() error {
	if err := l.choose(); err != nil {
		return err
	}
	if err := l.leaveRecords(); err != nil {
		return err
	}
	l.takeNodes()
	for line, err := range l.linesToChange() {
		if err != nil {
			return err
		}
		if line.Next > l.part.end {
			break
		}
		l.changeLine(line)
	}
	l.hand()
	return nil
}

// linesToChange yields the lines that changeLine must see: those that may change, those next
// to what is left out, and the last. If they are many, it yields all lines, and so it does
// if the tree does not have them all.
func (l *linkJoiner) linesToChange() iter.Seq2[store.Line, error] {
	all := l.part.log.Forward(l.ctx, 0)
	if len(l.own.problems) > 0 {
		return all
	}
	picked := []store.Pos{0} // the header
	wasGone := false
	for i := range l.own.nodes {
		n := &l.own.nodes[i]
		gone := l.gone[n.id]
		if last := i == len(l.own.nodes)-1; n.pos > 0 && (gone || wasGone || last || l.changes(int32(i))) {
			if picked = append(picked, n.pos); len(picked) > maxPicked {
				return all
			}
		}
		wasGone = gone
	}
	return linesAt(l.ctx, l.part.log, picked)
}

// changes reports whether the line of an entry that stays may say something else in the
// chain.
func (l *linkJoiner) changes(i int32) bool {
	was, is := &l.own.nodes[i], &l.tree.nodes[l.places[i]]
	return was.id != is.id || l.refers(was.kind) || (was.parent == none) != (is.parent == none) ||
		was.parent != none && l.own.nodes[was.parent].id != l.tree.nodes[is.parent].id
}

// hand gives the next session what it has to know of this one.
func (l *linkJoiner) hand() {
	for was, is := range l.now {
		if _, known := l.original(was); !known {
			l.seen[was] = is
		}
	}
	for from, copied := range l.copies {
		l.seen[from], _ = l.isNow(copied)
	}
	maps.Copy(l.stood, l.stands)
	for from, original := range l.named {
		if _, known := l.original(from); !known {
			l.stood[from] = original
		}
	}
	if _, ok := l.own.at(l.own.leaf); ok {
		l.leaf, _ = l.tree.standsAt(l.resolve(l.own.leaf)) // a leaf never stands on a move
	}
}

// choose finds the copies at the beginning.
func (l *linkJoiner) choose() error {
	if !l.carried.Open {
		return nil
	}
	for e, err := range countedEntries(l.ctx, l.part.log, l.part.end) {
		if err != nil {
			return err
		}
		if e.Message == nil {
			continue
		}
		carried, before := l.carried.Take(CarryOf(e))
		if !carried && !l.carried.Open {
			break
		}
		l.begun = append(l.begun, e)
		if before {
			for _, c := range l.begun {
				if err := l.leave(c); err != nil {
					return err
				}
			}
			l.begun = nil
		} else if carried {
			if err := l.leave(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave leaves a carried message out, unless its original is nowhere. A marker has none.
func (l *linkJoiner) leave(e *Entry) error {
	if IsTransition(e) { // it is of its own session only, even if it is a copy itself
		l.gone[e.ID], l.base = true, e.ID
		return nil
	}
	from := CarriedFrom(e)
	original, err := l.originalOf(e, from)
	switch {
	case err != nil:
		return err
	case original == "":
		if _, ok := l.copies[from]; !ok && from != "" { // of several copies the first takes the original's place
			l.copies[from] = e.ID
		}
		return nil
	case from != "" && l.named[from] == "":
		l.named[from] = original
	}
	l.gone[e.ID], l.stands[e.ID], l.base = true, original, e.ID
	return nil
}

// originalOf returns what a carried message is a copy of, or "": what it names, what has
// its own id, or if it names nothing, what says the same.
func (l *linkJoiner) originalOf(e *Entry, from string) (string, error) {
	if original, err := l.readable(from); original != "" || err != nil {
		return original, err
	}
	if original, err := l.readable(e.ID); original != "" || err != nil || from != "" {
		return original, err
	}
	same, err := l.firstSaying(e)
	if err != nil {
		return "", err
	}
	return l.readable(same)
}

// readable returns the message that an id of an earlier session means, or "" if there is
// none to read. Of an original that is damaged only the copy is left, which takes its place.
func (l *linkJoiner) readable(id string) (string, error) {
	is, _ := l.original(id)
	at, ok := l.tree.at(is)
	if !ok || l.tree.nodes[at].kind == kindGap {
		return "", nil
	}
	for line, err := range l.log.Forward(l.ctx, l.tree.nodes[at].pos) {
		if err != nil {
			return "", err
		}
		if e, err := decodeEntry(bytes.Clone(line.Data)); err == nil && e.Message != nil {
			return is, nil
		}
		break
	}
	return "", nil
}

// firstSaying returns the id of the first message in the sessions before that says the
// same as a message, or "".
func (l *linkJoiner) firstSaying(e *Entry) (string, error) {
	if l.said == nil {
		l.said = make(map[Saying]string)
	}
	for _, part := range l.log.parts[l.asked : len(l.log.parts)-1] {
		for old, err := range countedEntries(l.ctx, part.log, part.end) {
			if err != nil {
				return "", err
			}
			if !MayBeCarried(old) {
				continue
			}
			if says := SayingOf(old); l.said[says] == "" {
				l.said[says] = old.ID
			}
		}
		l.asked++
	}
	return l.said[SayingOf(e)], nil
}

// leaveRecords leaves out what names the continuation of the session: in the chain it
// is the next session.
func (l *linkJoiner) leaveRecords() error {
	for i := range l.own.nodes {
		n := &l.own.nodes[i]
		if n.kind != kindCustom {
			continue
		}
		for line, err := range l.part.log.Forward(l.ctx, n.pos) {
			if err != nil {
				return err
			}
			l.takeRecord(line, n.id)
			break
		}
	}
	return nil
}

// takeRecord leaves a line out that names the continuation of a session, and reports whether
// it is one.
func (l *linkJoiner) takeRecord(line store.Line, id string) bool {
	if !bytes.Contains(line.Data, []byte(CustomContinuedTo)) {
		return false
	}
	e, err := decodeEntry(bytes.Clone(line.Data))
	if err != nil || e.Custom == nil || e.Custom.CustomType != CustomContinuedTo {
		return false
	}
	l.gone[id], l.records[id] = true, true
	l.continued.take(e, l.part.name, line.Pos)
	return true
}

// takeNodes adds what stays of the session to the chain's tree.
func (l *linkJoiner) takeNodes() {
	t := l.tree
	l.places = make([]int32, len(l.own.nodes))
	for i := range l.own.nodes {
		n := l.own.nodes[i]
		l.places[i] = none
		if l.gone[n.id] {
			continue
		}
		// What this session only names may be in one before it.
		if n.kind == kindGap {
			if is, ok := l.original(n.id); ok {
				l.now[n.id] = is
				l.places[i], _ = t.at(is)
				continue
			}
		}
		n.id, n.pos, n.parent = l.idFor(n.id), n.pos+l.part.base, none
		l.places[i] = int32(len(t.nodes))
		t.nodes = append(t.nodes, n)
		t.byID.add(t.nodes)
		t.count(l.places[i])
	}
	given := l.base != "" // what comes next was given
	for i := range l.own.nodes {
		n := &l.own.nodes[i]
		if at := l.places[i]; at != none && t.nodes[at].pos >= l.part.base {
			t.nodes[at].parent = l.up(n.parent, given)
		}
		given = given && n.id != l.base
	}
	for _, p := range l.own.problems {
		if is, ok := l.isNow(p.EntryID); ok {
			p.EntryID = is
		}
		p.Pos += l.part.base
		t.problems = append(t.problems, p)
	}
}
