package window

import (
	"fmt"

	"github.com/coppice-dev/coppice/session"
)

// addImages records the images of a new item, and turns those that are too many into
// placeholders. Images in SYSTEM messages are left alone.
func (p *Planner) addImages(at int32) {
	it := &p.items[at]
	if it.images == 0 || it.category == System {
		it.images = 0
		return
	}
	p.images = append(p.images, at)
	p.pictures += int(it.images)
	most := p.options.Images
	switch most {
	case AllImages:
		return
	case NoImages:
		most = 0
	}
	why := fmt.Sprintf("only the newest %d images are kept", most)
	for p.pictures > most {
		p.removeImages(p.oldestImages(), why, func() bool { return p.pictures > most })
	}
}

// oldestImages returns the oldest item that has images, or none.
func (p *Planner) oldestImages() int32 {
	for len(p.images) > 0 && p.items[p.images[0]].images == 0 {
		p.images = p.images[1:]
	}
	if len(p.images) == 0 {
		return none
	}
	return p.images[0]
}

// removeImages turns an item's images into placeholders, first ones first, as long as
// more have to go. A message may have any number of them, so it is copied and counted
// only once.
func (p *Planner) removeImages(at int32, why string, more func() bool) {
	e := p.current(at)
	id, owner := e.ID, e.ID
	if edit := p.edited[id]; edit != "" {
		owner = edit // the image is in the edit, not in the message
	}
	cost := countAfresh(p.counter, p.whose, e).Cost
	content, _ := replaceImages(e.Message.Content, func(image *session.Content) (session.Content, bool) {
		if !more() {
			return session.Content{}, false
		}
		reference := referenceTo(owner, image.Image.Source)
		text := session.Text(placeholder(image.Image.Source, reference))
		cost.Tokens += blockCost(p.counter, p.whose, &text) - blockCost(p.counter, p.whose, image)
		cost.Bytes += contentBytes(&text) - contentBytes(image)
		p.items[at].images--
		p.pictures--
		p.setCost(at, id, cost, Omission{Kind: ImageLeftOut, Why: why, Reference: reference})
		return text, true
	})
	p.setContent(at, content)
}
