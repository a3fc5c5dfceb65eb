package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// OpenChain opens the sessions of a chain as the one conversation that they are.
// What a session was only given by those before it is left out, unless the
// original of a copy is in none of them because a session is missing. All branches
// are there; the first entries of a session hang on the leaf of the one before it.
//
// The session that it returns can be read like any other, has the chain's id, and
// cannot be written to: append to the last of the chain. Only AppendCompaction
// works, because a compaction is of the whole: it is written to the session that has
// the first entry that it keeps. A fork of it is a session of its own with all of
// the conversation. It shows the sessions as they are when it is opened. No content
// is copied: it stays in the logs.
func OpenChain(ctx context.Context, st store.Store, c Linked, o *Options) (*Session, error) {
	if len(c.Links) == 0 {
		return nil, &Error{Op: "open", Name: c.ID, Kind: ErrNotExist, Err: errors.New("all sessions of the conversation are missing")}
	}
	log := &chainLog{name: c.ID}
	j := chainJoiner{ctx: ctx, log: log, opts: o, seen: make(map[string]string), lossy: len(c.Missing) > 0}
	for _, name := range c.Links {
		if err := j.add(st, name); err != nil {
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
	s := &Session{core: &core{opts: o.withDefaults(), store: st, log: log, name: c.ID, header: h, tree: newTree()}}
	t, err := s.loadAll(ctx)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	log.leaf = t.leaf
	t.leaf, t.logLeaf = j.leaf, j.leaf
	if err := log.hang(ctx, t); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	s.tree = t
	return s, nil
}

// hang hangs on the leaf of the session before it what damage made a root, or what
// was taken for lost in the damage of another session. The lines say so, too, so
// that a copy of them has the same shape.
func (l *chainLog) hang(ctx context.Context, t *tree) error {
	for i := range t.nodes {
		n := &t.nodes[i]
		p := l.partAt(n.pos)
		if n.parent != none && t.nodes[n.parent].kind == kindGap {
			if n = &t.nodes[n.parent]; l.partAt(n.pos).base < p.base {
				n.parent, n.pos = none, t.nodes[i].pos
			}
		}
		at, ok := t.at(p.above)
		if !ok || n.parent != none || p.above == n.id {
			continue
		}
		n.parent = at
		if n.kind == kindGap {
			l.gaps = append(l.gaps, *n)
		} else if err := p.hangLine(ctx, n.pos-p.base); err != nil {
			return err
		}
	}
	return nil
}

// hangLine makes a line follow the session before it. One that cannot be read stays
// as it is.
func (p *chainPart) hangLine(ctx context.Context, pos store.Pos) error {
	for line, err := range p.lines(ctx, pos) {
		if err != nil {
			return err
		}
		e, err := decodeEntry(bytes.Clone(line.Data))
		if err != nil {
			break
		}
		e.ParentID = &p.above
		if changed, err := appendEntry(nil, e); err == nil {
			p.patch[pos] = changed
		}
		break
	}
	return nil
}

// partAt returns the log that a position is in.
func (l *chainLog) partAt(pos store.Pos) *chainPart {
	for _, p := range slices.Backward(l.parts) {
		if p.base <= pos {
			return p
		}
	}
	return l.parts[0]
}

// chainJoiner finds out which lines of a chain's logs have to be left out or
// changed, so that together they are the log of one session.
type chainJoiner struct {
	ctx    context.Context
	log    *chainLog
	opts   *Options
	header Header
	headed bool              // the first log begins with it
	leaf   string            // of what was joined so far
	seen   map[string]string // the ids of what was joined: as they are now by what they were
	lossy  bool              // a session that something was carried from is not among them
	said   map[saying]bool   // instructions and documents that were joined, if anybody asked
}

// add joins the log of a session.
func (j *chainJoiner) add(st store.Store, name string) (err error) {
	log, err := st.Open(j.ctx, name)
	if err != nil {
		return err
	}
	part := &chainPart{name: name, log: log, base: j.log.end, above: j.leaf, patch: make(map[store.Pos][]byte), was: make(map[string]string)}
	j.log.parts = append(j.log.parts, part)
	if part.end, err = log.End(j.ctx); err != nil {
		return err
	}
	j.log.end += part.end
	s := &Session{core: &core{opts: j.opts.withDefaults(), store: st, log: log, name: name}}
	if err := s.load(j.ctx); err != nil {
		return err
	}
	first := len(j.log.parts) == 1
	if first {
		j.header = s.header
		j.lossy = j.lossy || s.header.Relation == RelationContinuation
	}
	l := linkJoiner{
		chainJoiner: j, part: part, first: first, carried: CarriedIn(&s.header),
		gone: make(map[string]string), now: make(map[string]string), stands: make(map[string]string), copies: make(map[string]string),
	}
	if err := l.run(); err != nil {
		return err
	}
	for was, is := range l.now {
		if _, known := j.seen[was]; !known {
			j.seen[was] = is
		}
	}
	for from, copied := range l.copies {
		j.seen[from] = l.now[copied]
	}
	if leaf := l.resolve(s.tree.leaf); leaf != "" {
		j.leaf = leaf
	}
	return nil
}

// linkJoiner joins one log to those before it.
type linkJoiner struct {
	*chainJoiner
	part    *chainPart
	first   bool
	carried Carried
	begun   []carriedLine     // messages at the beginning that may turn out to be copies
	gone    map[string]string // what is left out, and the entry that comes before it
	stands  map[string]string // the original of a copy that is left out
	copies  map[string]string // the copies that stay because the original is missing, by its id
	now     map[string]string // the ids of what stays, as they are now
	after   []string          // what is left out, as long as nothing that stays came after it
	next    map[string]string // the first that stays after what is left out
}

type carriedLine struct {
	pos store.Pos
	e   *Entry
}

// run decides on what is left out, and then changes the lines that refer to it.
func (l *linkJoiner) run() error {
	if err := l.choose(); err != nil {
		return err
	}
	l.next = make(map[string]string)
	for line, err := range l.part.log.Forward(l.ctx, 0) {
		if err != nil {
			return err
		}
		if line.Next > l.part.end {
			break
		}
		h, ok := rawjson.ScanHead(line.Data)
		if !ok || line.Cut || len(h.ID) == 0 {
			continue // damage stays where it is
		}
		if string(h.Type) == string(TypeSession) {
			l.part.patch[line.Pos] = []byte{}
			l.headed = l.headed || l.first && line.Pos == 0
			continue
		}
		l.change(line, h)
	}
	return nil
}

// choose finds the copies at the beginning.
func (l *linkJoiner) choose() error {
	if !l.carried.Open {
		return nil
	}
	for line, err := range l.part.log.Forward(l.ctx, 0) {
		if err != nil {
			return err
		}
		if line.Next > l.part.end || !l.carried.Open {
			break
		}
		e, err := decodeEntry(bytes.Clone(line.Data))
		if err != nil || e.Message == nil {
			continue
		}
		carried, before := l.carried.Take(CarryOf(e))
		l.begun = append(l.begun, carriedLine{line.Pos, e})
		if before {
			for _, c := range l.begun {
				if err := l.leave(c.pos, c.e); err != nil {
					return err
				}
			}
			l.begun = nil
		} else if carried {
			if err := l.leave(line.Pos, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave leaves a carried message out, unless its original is nowhere.
func (l *linkJoiner) leave(pos store.Pos, e *Entry) error {
	from := CarriedFrom(e)
	original, ok := l.seen[from]
	if !ok {
		original, ok = l.seen[e.ID]
	}
	switch {
	case IsTransition(e), ok:
	case from != "": // of several copies the first stands for the original
		l.copies[from] = e.ID
		return nil
	case l.first:
		return nil
	case l.lossy:
		said, err := l.isSaid(e)
		if err != nil || !said {
			return err
		}
	}
	l.part.patch[pos] = []byte{}
	parent := ""
	if e.ParentID != nil {
		parent = *e.ParentID
	}
	l.gone[e.ID], l.stands[e.ID] = parent, original
	return nil
}

// isSaid reports whether a session before has a message that says the same.
func (l *linkJoiner) isSaid(e *Entry) (bool, error) {
	if l.said == nil {
		l.said = make(map[saying]bool)
		for _, part := range l.log.parts[:len(l.log.parts)-1] {
			for line, err := range part.lines(l.ctx, 0) {
				if err != nil {
					return false, err
				}
				if old, err := decodeEntry(bytes.Clone(line.Data)); err == nil && CarryOf(old) > CarryOwn {
					l.said[sayingOf(old)] = true
				}
			}
		}
	}
	return l.said[sayingOf(e)], nil
}

// saying is the same for messages that say the same.
type saying [sha256.Size]byte

func sayingOf(e *Entry) saying {
	plain := Entry{Type: TypeMessage, Message: &MessageEntry{Role: e.Message.Role, Category: e.Message.Category, Content: e.Message.Content}}
	line, err := appendEntry(nil, &plain)
	if err != nil {
		line = []byte(e.ID)
	}
	return sha256.Sum256(line)
}

// change leaves a line out or makes it refer to what is there.
func (l *linkJoiner) change(line store.Line, h rawjson.Head) {
	id := string(h.ID)
	if _, gone := l.gone[id]; gone {
		l.after = append(l.after, id)
		return
	}
	if string(h.Type) == string(TypeCustom) && bytes.Contains(line.Data, []byte(CustomContinuedTo)) && l.isRecord(line.Data) {
		l.part.patch[line.Pos] = []byte{}
		l.gone[id] = string(h.Parent)
		return
	}
	if _, again := l.now[id]; again {
		return // the first counts
	}
	parent := l.resolve(string(h.Parent))
	if len(h.Parent) == 0 {
		parent = l.part.above
	}
	is := l.idFor(id)
	for _, gone := range l.after {
		l.next[gone] = is
	}
	l.after = nil
	if is == id && parent == string(h.Parent) && !l.refers(h) {
		return
	}
	e, err := decodeEntry(bytes.Clone(line.Data))
	if err != nil {
		return
	}
	e.ID, e.ParentID = is, nil
	if parent != "" {
		e.ParentID = &parent
	}
	l.refer(e)
	if changed, err := appendEntry(nil, e); err == nil {
		l.part.patch[line.Pos] = changed
	}
}

// isRecord reports whether a line names the continuation of the session that it
// is in.
func (l *linkJoiner) isRecord(line []byte) bool {
	e, err := decodeEntry(bytes.Clone(line))
	return err == nil && e.Custom != nil && e.Custom.CustomType == CustomContinuedTo
}

// idFor returns the id that an entry has in the conversation: its own, unless an
// entry of another session has that.
func (l *linkJoiner) idFor(id string) string {
	is := id
	for n := len(l.log.parts); ; n++ {
		if _, taken := l.seen[is]; !taken {
			break
		}
		is = id + "~" + strconv.Itoa(n)
	}
	l.now[id] = is
	if is != id {
		l.part.was[is] = id
	}
	return is
}

// resolve returns what an entry's id is now; for one that is left out, that of
// the nearest before it that stays.
func (l *linkJoiner) resolve(id string) string {
	for range len(l.gone) + 1 {
		if id == "" {
			return l.part.above
		}
		before, gone := l.gone[id]
		if !gone {
			break
		}
		id = before
	}
	if is, ok := l.now[id]; ok {
		return is
	}
	return id
}

// refers reports whether entries of a type name others, and some have changed.
func (l *linkJoiner) refers(h rawjson.Head) bool {
	return kinds[kindOfType(h.Type)].refs != nil && (len(l.gone) > 0 || len(l.seen) > 0)
}

// refer makes an entry name the entries that are there. Copies that are left out
// are named by their originals; but where a compaction keeps from one on, it keeps
// from what follows it. What has no original, such as the marker, is not there: what
// an entry says of it has no meaning, and must not be said of the message before it.
func (l *linkJoiner) refer(e *Entry) {
	point := func(id *string) {
		if original := l.stands[*id]; original != "" {
			*id = original
		} else if is, ok := l.now[*id]; ok {
			*id = is
		}
	}
	place := func(id *string) { // where the conversation was
		if _, gone := l.gone[*id]; gone && l.stands[*id] == "" {
			*id = l.resolve(*id)
		} else {
			point(id)
		}
	}
	if e.Compaction != nil && e.Compaction.State != nil {
		e.Compaction.State.Kept = nil // it names what this session was given, not what came before it
	}
	e.eachRef(func(as ref, id *string) {
		switch next := l.next[*id]; {
		case as == refFirstKept && next != "":
			*id = next
		case as == refFirstKept || as == refFrom:
			place(id)
		default:
			point(id)
		}
	})
}

// chainLog is the logs of a chain as one that can only be read. Positions are
// those in the logs, one after the other.
type chainLog struct {
	name  string
	parts []*chainPart
	end   store.Pos
	leaf  string // where the lines leave it, which need not be where the conversation has it
	gaps  []node // what is missing at the beginning of a session, and hangs on the one before it
}

// chainPart is one of the logs, up to where it was when the chain was opened.
type chainPart struct {
	name      string
	log       store.Log
	base, end store.Pos
	above     string               // what its roots hang on; "" for nothing
	patch     map[store.Pos][]byte // lines that read differently; empty ones are left out
	was       map[string]string    // the ids in the log of entries that have another in the chain
}

// shown returns a line as the chain has it, and whether it is there.
func (p *chainPart) shown(line store.Line) (store.Line, bool) {
	if data, ok := p.patch[line.Pos]; ok {
		line.Data, line.Cut = slices.Clone(data), false
		if len(data) == 0 {
			return line, false
		}
	}
	line.Pos += p.base
	line.Next += p.base
	return line, true
}

func (p *chainPart) lines(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for line, err := range p.log.Forward(ctx, from) {
			if err == nil && line.Next > p.end {
				return
			}
			there := true
			if err == nil {
				line, there = p.shown(line)
			}
			if there && !yield(line, err) {
				return
			}
		}
	}
}

func (l *chainLog) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for _, p := range l.parts {
			if p.base+p.end <= from {
				continue
			}
			for line, err := range p.lines(ctx, max(from-p.base, 0)) {
				if !yield(line, err) {
					return
				}
			}
		}
	}
}

func (l *chainLog) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for _, p := range slices.Backward(l.parts) {
			if p.base >= from {
				continue
			}
			for line, err := range p.log.Backward(ctx, min(from-p.base, p.end)) {
				there := true
				if err == nil {
					line, there = p.shown(line)
				}
				if there && !yield(line, err) {
					return
				}
			}
		}
	}
}

func (l *chainLog) Append(context.Context, store.Pos, ...[]byte) (store.Pos, error) {
	return 0, &store.Error{
		Op: "append", Name: l.name, Kind: ErrInvalid, Err: errors.New("the sessions of a chain can only be read together"),
		Hint: "append to the last of them",
	}
}

// Watch yields what is there, and then waits: others append to the logs, not to
// what was opened.
func (l *chainLog) Watch(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		for line, err := range l.Forward(ctx, from) {
			if !yield(line, err) {
				return
			}
		}
		<-ctx.Done()
	}
}

func (l *chainLog) End(context.Context) (store.Pos, error) { return l.end, nil }

func (l *chainLog) Flush(context.Context) error { return nil }

func (l *chainLog) Close() error {
	var errs []error
	for _, p := range l.parts {
		if err := p.log.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", l.name, err))
		}
	}
	return errors.Join(errs...)
}

// Pin keeps all logs as they are: see store.Pinner.
func (l *chainLog) Pin(ctx context.Context) (func(), error) {
	var releases []func()
	release := func() {
		for _, r := range releases {
			r()
		}
	}
	for _, p := range l.parts {
		log, ok := p.log.(store.Pinner)
		if !ok {
			continue
		}
		r, err := log.Pin(ctx)
		if err != nil {
			release()
			return nil, err
		}
		releases = append(releases, r)
	}
	return release, nil
}

// Current reports whether somebody rewrote one of the logs: see store.Pinner.
func (l *chainLog) Current() error {
	for _, p := range l.parts {
		if log, ok := p.log.(store.Pinner); ok {
			if err := log.Current(); err != nil {
				return err
			}
		}
	}
	return nil
}
