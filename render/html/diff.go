package html

import (
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
)

// maxUnfolded is how many lines the edits of a call may have to be shown unfolded.
const maxUnfolded = 24

// areShort reports whether edits are short enough to be shown unfolded.
func areShort(edits []render.Edit) bool {
	lines := 0
	for i := range edits {
		for _, h := range edits[i].Hunks {
			lines += len(h.Lines)
		}
	}
	return lines > 0 && lines <= maxUnfolded
}

// changes says how many lines edits add and remove, in all.
func (p *page) changes(edits []render.Edit) {
	if len(edits) == 0 {
		return
	}
	added, removed := 0, 0
	for i := range edits {
		a, r := edits[i].Counts()
		added, removed = added+a, removed+r
	}
	p.raw("<small class=changes>")
	if len(edits) > 1 {
		p.text(render.Counted(len(edits), "file ", "files "))
	}
	if added > 0 {
		p.raw("<ins>+")
		p.number(added)
		p.raw("</ins> ")
	}
	if removed > 0 {
		p.raw("<del>−")
		p.number(removed)
		p.raw("</del>")
	}
	p.raw("</small>")
}

// edits writes the changes to files as diffs.
func (p *page) edits(edits []render.Edit) {
	for i := range edits {
		e := &edits[i]
		if len(edits) > 1 || e.Op == render.Delete || e.To != "" || e.All {
			p.raw("<p class=file dir=auto>")
			p.text(editTitle(e))
			p.raw("</p>")
		}
		if len(e.Hunks) == 0 {
			continue
		}
		p.raw("<pre class=diff>")
		for k, h := range e.Hunks {
			p.hunk(k, h)
		}
		p.raw("</pre>\n")
	}
}

func editTitle(e *render.Edit) string {
	title := render.OneLine(e.Path, 0)
	switch {
	case e.Op == render.Delete:
		title += " is deleted"
	case e.To != "":
		title += " → " + render.OneLine(e.To, 0)
	case e.All:
		title += ", in every place"
	}
	return title
}

// hunk writes lines in the colours of a diff. The marks are text, so that what is
// copied from the page is a diff.
func (p *page) hunk(k int, h render.Hunk) {
	if k > 0 || h.Heading != "" {
		p.raw("<span class=h>@@ ")
		p.text(render.OneLine(h.Heading, 0))
		p.raw("\n</span>")
	}
	for _, line := range h.Lines {
		text := plain.Text(line.Text)
		switch line.Op {
		case '+':
			p.raw("<ins>+")
			p.text(text)
			p.raw("\n</ins>")
		case '-':
			p.raw("<del>-")
			p.text(text)
			p.raw("\n</del>")
		default:
			p.raw("<span> ")
			p.text(text)
			p.raw("\n</span>")
		}
	}
}
