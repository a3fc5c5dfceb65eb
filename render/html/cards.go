package html

import (
	"bufio"
	"bytes"
	"slices"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

// Reach is how many entries a result may be away from its call to be shown with it by Cards.
const Reach = 16

// maxColouredAtOnce is how many bytes of code Cards colours.
const maxColouredAtOnce = 256 << 10

// Cards returns what the page shows of entries that follow each other on a path: for each a
// piece of HTML, in which all text of a session is harmless, without the frame around it. It is
// "" for an entry that shows nothing, or whose results are shown with their calls. So whether an
// entry shows something depends only on the Reach entries before it, and how it looks on the
// Reach entries after it.
//
// An image has no content here. Its element names the entry and, if there is one, the blob
// that have it.
func Cards(entries []session.Entry) []string {
	p := &page{plan: &plan{outline: &render.Outline{}, items: make([]item, len(entries))}, parts: true}
	f := follower{plan: p.plan}
	var last *render.Node
	for i := range entries {
		n := &render.Node{Entry: entries[i], Parent: last}
		p.items[i].node, last = n, n
		p.inspect(i, &entries[i])
		f.add(i, &entries[i])
	}
	for i := range p.items {
		p.items[i].outs = slices.DeleteFunc(p.items[i].outs, func(out placedResult) bool { return out.item-i > Reach })
	}
	p.moveResults()
	p.next = func(i int) (entryRead, error) { return entryRead{i, entries[i]}, nil }
	var b bytes.Buffer
	cards, colourable := make([]string, len(entries)), maxColouredAtOnce
	for i := range entries {
		if !p.hasCard(i) {
			continue
		}
		b.Reset()
		p.writer = &writer{Writer: bufio.NewWriter(&b), colourable: colourable}
		_ = p.content(&p.items[i], &entries[i]) // next never fails
		_ = p.writer.Flush()                    // nor does a buffer
		cards[i], colourable = b.String(), p.colourable
	}
	return cards
}

// Edits returns changes to files as Cards shows them, below the names of the files.
func Edits(edits []render.Edit) string {
	var b bytes.Buffer
	p := &page{writer: &writer{Writer: bufio.NewWriter(&b), colourable: maxColouredAtOnce}}
	p.edits(edits)
	_ = p.writer.Flush() // a buffer never fails
	return b.String()
}
