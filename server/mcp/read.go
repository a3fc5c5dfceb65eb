package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

type readRequest struct {
	Session   string `json:"session" jsonschema:"the session's id; last for the latest one"`
	At        string `json:"at,omitempty" jsonschema:"begin with this entry, on whichever branch it is: an entry id or a label"`
	FromStart bool   `json:"from_start,omitempty" jsonschema:"begin with the first entry"`
	Entry     string `json:"entry,omitempty" jsonschema:"read this entry alone, and whole, in as many answers as it takes"`
	page
}

func (f *face) read(ctx context.Context, r readRequest) (*answer, error) {
	a, at, err := r.begin()
	if err != nil {
		return nil, err
	}
	v, err := f.open(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	defer v.c.Close() // we only read
	if r.Entry != "" {
		return a, v.readEntry(ctx, a, r.Entry, at.Byte)
	}
	s, err := v.span(r, at)
	if err == nil {
		err = v.fill(ctx, a, s)
	}
	return a, err
}

// view is a session that is being read.
type view struct {
	c     *home.Conversation
	drawn render.Conversation
}

func (f *face) open(ctx context.Context, name string) (*view, error) {
	c, err := f.home.Conversation(ctx, home.OpenRequest{Session: name})
	if err != nil {
		return nil, err
	}
	drawn, err := c.Rendered(ctx)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &view{c, drawn}, nil
}

// span is a part of a branch: the entries from a place on, or those before it.
type span struct {
	path  []*render.Node
	names render.Names
	leaf  string
	at    int
	back  bool
}

// span finds the requested part.
func (v *view) span(r readRequest, at cursor) (s span, err error) {
	o := render.OutlineOptions{Leaf: v.c.LeafID()}
	if at.Leaf != "" {
		o.At = at.Leaf
	} else if r.At != "" {
		if o.At, err = v.c.Resolve(r.At); err != nil {
			return s, err
		}
	}
	out, err := render.NewOutline(v.drawn, o)
	if err != nil {
		return s, err
	}
	s = span{path: out.Path(), names: out.Names}
	if at.Leaf != "" { // the branch may have grown since
		s.path = s.path[:slices.Index(s.path, out.Node(at.Leaf))+1]
	}
	if n := len(s.path); n > 0 {
		s.leaf = s.path[n-1].Entry.ID
	}
	switch {
	case at.Leaf != "":
		s.at, s.back = min(at.At, len(s.path)), at.Back
	case r.At != "":
		s.at = max(slices.Index(s.path, out.Node(o.At)), 0)
	case !r.FromStart:
		s.at, s.back = len(s.path), true
	}
	return s, nil
}

// fill quotes as much of a span as fits, and says how to get the rest.
func (v *view) fill(ctx context.Context, a *answer, s span) error {
	if !a.add(v.about()) {
		return nil
	}
	title := a.blocks
	a.blocks = nil
	from, to := s.at, s.at
	for {
		i := to
		if s.back {
			i = from - 1
		}
		if i < 0 || i >= len(s.path) {
			break
		}
		if err := v.drawn.Read(ctx, s.path[i:i+1], render.MaxOutput); err != nil {
			return err
		}
		added := a.add(v.entryText(s.path[i], s.names, a.limit))
		s.path[i].Forget()
		if !added {
			break
		}
		from, to = min(from, i), max(to, i+1)
	}
	if s.back {
		slices.Reverse(a.blocks)
	}
	a.blocks = append(title, a.blocks...)
	a.head = fmt.Sprintf("Session %s, entries %d to %d of %d on this branch.", shownID(v.c.Handle), from+1, to, len(s.path))
	if len(s.path) == 0 {
		a.head = fmt.Sprintf("Session %s has no entries yet.", shownID(v.c.Handle))
	}
	if from > 0 {
		a.addHint("%s before: the same call with cursor %s", render.Counted(from, "entry", "entries"), cursor{Leaf: s.leaf, At: from, Back: true})
	}
	if rest := len(s.path) - to; rest > 0 {
		a.addHint("%s after: the same call with cursor %s", render.Counted(rest, "entry", "entries"), cursor{Leaf: s.leaf, At: to})
	}
	return nil
}

// about returns what the session is called, and where it was held.
func (v *view) about() string {
	h := v.c.Header()
	held := "held in: " + session.AgentOf(&h)
	if h.CWD != "" {
		held += ", in the directory " + h.CWD
	}
	return "title: " + titleText(v.drawn.Title) + "\n" + render.OneLine(held, 0)
}

// readEntry quotes one entry, beginning at a byte of its text.
func (v *view) readEntry(ctx context.Context, a *answer, given string, from int) error {
	id, err := v.c.Resolve(given)
	if err != nil {
		return err
	}
	node := &render.Node{Entry: session.Entry{ID: id}}
	if err := v.drawn.Read(ctx, []*render.Node{node}, render.MaxOutput); err != nil {
		return err
	}
	text := v.entryText(node, nil, 0)
	from = min(from, len(text))
	to := from + upTo(text[from:], a.limit-2)
	a.add(strings.ToValidUTF8(text[from:to], ""))
	a.head = fmt.Sprintf("Session %s, one entry, bytes %d to %d of %d.", shownID(v.c.Handle), from, to, len(text))
	if to < len(text) {
		a.addHint("The rest: the same call with cursor %s", cursor{Byte: to})
	}
	return nil
}

// shownID returns an id for use outside of a quotation. An id that a person chose could say
// anything, so it is quoted.
func shownID(id string) string {
	if strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_' || r == '.')
	}) || len(id) > 64 {
		return "(see above)"
	}
	return id
}
