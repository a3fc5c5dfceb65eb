package terminal

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// ShowOptions say which part of a conversation to show.
type ShowOptions struct {
	// Leaf is the end of the path that is shown; "" is before the first entry.
	Leaf string
	// At is an entry to show with its surroundings on its branch: entries of the path
	// before and after it. Last shows the end of the path. "" and 0 show all of it.
	At   string
	Last int
	// All shows every entry in the order of the log instead.
	All bool
	// Full shows all of tool calls and results.
	Full  bool
	Hints Hints
}

// maxOutput is how much output of one call is fetched.
func (o *ShowOptions) maxOutput() int64 {
	if o.Full {
		return math.MaxInt64
	}
	return render.MaxOutput
}

// Show writes a conversation so that a person can read it: what it is, and the path
// to a leaf with a note wherever another branch begins.
func Show(ctx context.Context, w io.Writer, c render.Conversation, s Style, o ShowOptions) error {
	r := newReader(w, s, o)
	remarks, err := c.Remarks()
	if err != nil {
		return err
	}
	if r.labels, err = c.Labels(); err != nil {
		return err
	}
	r.notes = remarks.Notes
	r.key = c.Header().Key
	r.subagent = c.Subagent
	r.head(c, remarks.Tags)
	if o.All {
		return r.all(ctx, c)
	}
	return r.path(ctx, c)
}

// Entries writes whole entries one after another. names has the short names of their
// ids.
func Entries(w io.Writer, s Style, entries []session.Entry, names render.Names) error {
	r := newReader(w, s, ShowOptions{Full: true})
	r.names = names
	r.first = true
	for i := range entries {
		r.entry(&entries[i])
		if err := r.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) all(ctx context.Context, c render.Conversation) error {
	shape, err := c.Shape()
	if err != nil {
		return err
	}
	ids := shape.IDs()
	r.names = render.ShortEntryIDs(ids)
	for some := range slices.Chunk(ids, render.ReadAtOnce) {
		entries, err := c.Peek(some...)
		if err != nil {
			return err
		}
		for i := range entries {
			if err := c.FetchOutput(ctx, &entries[i], r.o.maxOutput()); err != nil {
				return err
			}
			r.entry(&entries[i])
			if err := r.flush(); err != nil {
				return err
			}
		}
	}
	return r.flush()
}

func (r *reader) path(ctx context.Context, c render.Conversation) error {
	out, err := render.NewOutline(c, render.OutlineOptions{Leaf: r.o.Leaf, At: r.o.At})
	if err != nil {
		return err
	}
	r.names = out.Names
	path := out.Path()
	from, to := r.window(out, path)
	if from > 0 {
		r.skipped(from, "before")
		unseen := c
		unseen.Lost = nil // what is not shown is not missed
		if err := r.noteTools(ctx, unseen, path[:from]); err != nil {
			return err
		}
	} else {
		roots := out.OtherRoots()
		if err := c.Read(ctx, roots, render.MaxOutput); err != nil {
			return err
		}
		r.branches(roots)
	}
	for some := range slices.Chunk(path[from:to], render.ReadAtOnce) {
		if err := r.nodes(ctx, c, out, some); err != nil {
			return err
		}
	}
	if to < len(path) {
		r.skipped(len(path)-to, "after")
	}
	return r.flush()
}

// window returns which part of the path to show.
func (r *reader) window(out *render.Outline, path []*render.Node) (from, to int) {
	from, to = 0, len(path)
	if r.o.Last > 0 {
		from = max(to-r.o.Last, 0)
	}
	if r.o.At != "" {
		if near := out.Around(r.o.At); len(near) > 0 {
			from = slices.Index(path, near[0])
			to = from + len(near)
		}
		r.pointAt = r.o.At
	}
	return from, to
}

// noteTools looks at what comes right before the part that is shown: its first results
// may answer calls there, and are shown with the tool's name.
func (r *reader) noteTools(ctx context.Context, c render.Conversation, before []*render.Node) error {
	const enough = 32
	near := before[max(len(before)-enough, 0):]
	if err := c.Read(ctx, near, 0); err != nil {
		return err
	}
	for _, n := range near {
		if m := n.Entry.Message; m != nil {
			for i := range m.Content {
				if t := m.Content[i].ToolUse; t != nil {
					r.tools[t.ID] = t.Name
				}
			}
		}
		n.Forget()
	}
	return nil
}

// skipped says that some entries of the path are not shown.
func (r *reader) skipped(n int, where string) {
	text := fmt.Sprintf("⋮ %s %s", render.Counted(n, "entry", "entries"), where)
	if r.o.Hints.Whole != "" {
		text += ": " + r.o.Hints.Whole
	}
	r.dense = false
	r.line()
	r.line(r.Paint(Dim, text))
}

// nodes shows a part of the path, and what branches off from it.
func (r *reader) nodes(ctx context.Context, c render.Conversation, out *render.Outline, path []*render.Node) error {
	wanted := slices.Clone(path)
	others := make(map[*render.Node][]*render.Node)
	for _, n := range path {
		others[n] = n.Others()
		if n == out.Leaf {
			others[n] = n.Children
		}
		wanted = append(wanted, others[n]...)
	}
	if err := c.Read(ctx, wanted, r.o.maxOutput()); err != nil {
		return err
	}
	for _, n := range path {
		r.entry(&n.Entry)
		if n == out.Leaf {
			r.afterLeaf(others[n])
		} else {
			r.branches(others[n])
		}
		if err := r.flush(); err != nil {
			return err
		}
		n.Forget()
	}
	return nil
}
