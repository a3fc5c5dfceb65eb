package window

import "fmt"

// addImages remembers the images of a new item, and makes placeholders of those
// that are then too many. Images in SYSTEM messages are left alone.
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
	for p.pictures > most {
		p.removeOldestImage(fmt.Sprintf("only the newest %d images are kept", most))
	}
}

// removeOldestImage makes a placeholder of the oldest image. It reports whether
// there was one.
func (p *Planner) removeOldestImage(why string) bool {
	for len(p.images) > 0 {
		at := p.images[0]
		if p.items[at].images > 0 {
			p.removeImage(at, why)
			return true
		}
		p.images = p.images[1:]
	}
	return false
}

// removeImage makes a placeholder of an item's first image.
func (p *Planner) removeImage(at int32, why string) {
	e := p.current(at)
	id := e.ID
	if edit := p.edited[id]; edit != "" {
		id = edit // the image is in the edit, not in the message
	}
	content, reference := withoutFirstImage(id, e.Message.Content)
	p.items[at].images--
	p.pictures--
	p.change(at, content, Omission{Kind: ImageLeftOut, Why: why, Reference: reference})
}
