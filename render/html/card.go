package html

import (
	"context"
	"encoding/base64"
	"iter"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/typed"
	"github.com/coppice-dev/coppice/session"
)

// entryRead is an entry together with its item.
type entryRead struct {
	item  int
	entry session.Entry
}

// reads returns the items that the cards need, in that order: each item with a card,
// followed by those with the results of its calls.
func (p *plan) reads() []int {
	var reads []int
	for i := range p.items {
		if !p.hasCard(i) {
			continue
		}
		reads = append(reads, i)
		at := -1
		for _, out := range p.items[i].outs {
			if out.item != at {
				at = out.item
				reads = append(reads, at)
			}
		}
	}
	return reads
}

// cards writes the sections and what is in them.
func (p *page) cards(ctx context.Context) error {
	reads := p.reads()
	nodes := make([]*render.Node, len(reads))
	for k, i := range reads {
		nodes[k] = p.items[i].node
	}
	next, stop := iter.Pull2(p.EachNode(nodes))
	defer stop()
	k := 0
	p.next = func(want int) (entryRead, error) {
		for ; k < len(reads); k++ {
			n, err, _ := next()
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return entryRead{item: want}, err
			}
			if i := reads[k]; i == want {
				k++
				return entryRead{i, n.Entry}, nil
			}
		}
		return entryRead{item: want}, nil
	}
	for k := range p.sections {
		if k%maxInGroup == 0 {
			p.group(k)
		}
		if err := p.section(k); err != nil {
			return err
		}
	}
	if len(p.sections) > 0 {
		p.raw("</div>\n")
	}
	return nil
}

// maxInGroup is how many sections a group has. A browser examines every section near
// what is visible to decide whether to lay it out; it can skip the sections of a group
// that is far away.
const maxInGroup = 40

// group ends a group of sections and begins another.
func (p *page) group(k int) {
	if k > 0 {
		p.raw("</div>\n")
	}
	height, shown := 0, false
	for _, s := range p.sections[k:min(k+maxInGroup, len(p.sections))] {
		if s.shown {
			height += s.height
			shown = true
		}
	}
	p.raw("<div class=z")
	p.number(heightClass(height))
	p.flag(!shown, " hidden")
	p.raw(">\n")
}

// heightClass returns the class that reserves roughly the right amount of room: z1 is
// 100 pixels, and every second one doubles it.
func heightClass(height int) int {
	const classes = 28
	class := 0
	for pixels := 100.0; class < classes && height > 0; pixels *= math.Sqrt2 {
		class++
		if pixels >= float64(height) {
			break
		}
	}
	return class
}

func (p *page) section(k int) error {
	s := &p.sections[k]
	p.raw("<section id=s")
	p.number(k + 1)
	p.raw(" class=z")
	p.number(heightClass(s.height))
	p.attribute(" data-p=", s.parent, k-1)
	p.attribute(" data-n=", s.onward, k+1)
	if !s.shown {
		p.raw(" hidden")
	}
	p.raw(">\n")
	for i := s.first; i <= s.last; i++ {
		if !p.hasCard(i) {
			continue
		}
		if err := p.card(i); err != nil {
			return err
		}
	}
	p.raw("</section>\n")
	return nil
}

// attribute names another section, unless it is the one that is assumed.
func (p *page) attribute(name string, section, assumed int) {
	if section != assumed {
		p.raw(name)
		p.number(section + 1) // 0 means none
	}
}

func (p *page) card(i int) error {
	read, err := p.next(i)
	if err != nil {
		return err
	}
	it, e := &p.items[i], &read.entry
	p.raw("<article id=e")
	p.number(i + 1)
	p.raw(` class="`, it.class)
	p.flag(it.follows, " follows")
	p.flag(it.prose || len(it.node.Children) > 1 || it.node.Label != "", " x")
	p.flag(it.tools, " t")
	p.flag(it.thinking, " h")
	p.raw("\">\n")
	p.cardHead(it, e, i)
	if err := p.content(it, e); err != nil {
		return err
	}
	if it.node.Parent != nil || len(it.node.Children) > 1 {
		p.branches(it.node.Children, "Branches")
	}
	p.raw("</article>\n")
	return nil
}

func (p *page) flag(yes bool, class string) {
	if yes {
		p.raw(class)
	}
}

// cardHead writes who speaks and when. A card that continues the one before has only
// the time.
func (p *page) cardHead(it *item, e *session.Entry, i int) {
	p.raw("<header>")
	if !it.follows {
		p.raw("<b>")
		p.text(cardName(it, e))
		p.raw("</b>")
	}
	if it.node.Label != "" {
		p.raw("<mark dir=auto>")
		p.text(render.OneLine(it.node.Label, 0))
		p.raw("</mark>")
	}
	if e.Message != nil && !it.follows {
		for _, fact := range render.MessageFacts(e.Message) {
			p.raw("<small>")
			p.text(fact)
			p.raw("</small>")
		}
	}
	p.raw(`<a class=at href="#e`)
	p.number(i + 1)
	p.raw(`" title="entry `)
	p.text(p.outline.Names.Shown(e.ID))
	if !e.Timestamp.IsZero() {
		p.raw(", ", e.Timestamp.UTC().Format("Monday 2 January 2006, 15:04:05 UTC"), `"><time datetime="`, e.Timestamp.UTC().Format(time.RFC3339), `">`)
		if it.newDay {
			p.raw(e.Timestamp.UTC().Format("2 Jan, "))
		}
		p.raw(e.Timestamp.UTC().Format("15:04"), "</time></a>")
	} else {
		p.raw(`">#</a>`)
	}
	p.raw("</header>\n")
}

// cardName is who speaks, as a person would say it.
func cardName(it *item, e *session.Entry) string {
	switch it.class {
	case "compaction":
		return "Compacted"
	case "summary":
		if e.Merge != nil {
			return "Merged"
		}
		return "Summary of another branch"
	}
	kind := render.Kind(e)
	switch kind {
	case "user", "assistant", "tool", "system":
		return strings.ToUpper(kind[:1]) + kind[1:]
	}
	return kind
}

func (p *page) content(it *item, e *session.Entry) error {
	p.entry = e.ID
	switch {
	case e.Message != nil:
		return p.message(it, e.Message)
	case e.Compaction != nil:
		p.compaction(e.Compaction)
	case e.BranchSummary != nil:
		p.passage(e.BranchSummary.Summary)
	case e.Merge != nil && e.Merge.Summary != "":
		p.passage(e.Merge.Summary)
	default:
		p.raw("<p dir=auto>")
		p.text(render.GistNaming(e, 0, p.outline.Names.Shown))
		p.raw("</p>\n")
	}
	return nil
}

// compaction draws a line across the page. The summary that the model is sent instead
// of what is above can be unfolded.
func (p *page) compaction(c *session.CompactionEntry) {
	p.raw("<details><summary>The model was sent this summary instead of what is above")
	if c.TokensBefore > 0 {
		p.raw(" (")
		p.text(render.Counted(c.TokensBefore, "token", "tokens"))
		p.raw(")")
	}
	p.raw("</summary>")
	p.passage(c.Summary)
	p.raw("</details>\n")
}

// passage writes text from a message.
func (p *page) passage(s string) {
	p.raw("<div class=text dir=auto>")
	p.prose(s)
	p.raw("</div>\n")
}

// messageText writes the text of a message: commands as they were typed, and what they printed
// as the output that it is.
func (p *page) messageText(text string) {
	for _, part := range render.Passages(text) {
		switch part.Kind {
		case typed.Command:
			p.raw("<div class=text dir=auto><p class=asis>")
			p.output(part.Text)
			p.raw("</p></div>\n")
		case typed.Output:
			p.raw("<pre dir=auto>")
			p.output(strings.Trim(part.Text, "\n"))
			p.raw("</pre>\n")
		default:
			p.passage(part.Text)
		}
	}
}

func (p *page) message(it *item, m *session.MessageEntry) error {
	outs, results := it.outs, it.results
	var at entryRead // the entry that has the current results
	at.item = -1
	for i := range m.Content {
		c := &m.Content[i]
		switch {
		case isBlank(c):
		case c.Text != nil:
			p.messageText(c.Text.Content)
		case c.Thinking != nil:
			p.raw("<details class=thinking><summary>Thinking</summary>")
			p.passage(c.Thinking.Content)
			p.raw("</details>\n")
		case c.ToolUse != nil:
			n := 0
			for n < len(outs) && outs[n].callBlock == i {
				n++
			}
			if err := p.call(it, c.ToolUse, outs[:n], &at); err != nil {
				return err
			}
			outs = outs[n:]
		case c.ToolResult != nil:
			for len(results) > 0 && results[0].block < i {
				results = results[1:]
			}
			if len(results) > 0 && results[0].block == i && results[0].moved {
				continue
			}
			tool := ""
			if len(results) > 0 && results[0].block == i {
				tool = results[0].tool
			}
			p.loneResult(tool, c.ToolResult)
		default:
			p.media(c)
		}
	}
	if words := render.StopWords(m); words != "" {
		p.raw("<p class=stop dir=auto>")
		p.text(words)
		p.raw("</p>\n")
	}
	return nil
}

var imageType = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^image/[a-z0-9.+-]{1,40}$`) })

// media writes an image, or says what else there is. An image that is not part of the
// session is not fetched.
func (p *page) media(c *session.Content) {
	gist := render.MediaGist(c)
	if c.Image != nil {
		if s := c.Image.Source; s != nil && s.Type != "url" && s.Data != "" && imageType().MatchString(s.MediaType) && isBase64(s.Data) {
			p.raw(`<p class=media><img loading=lazy decoding=async src="data:`, s.MediaType, ";base64,", s.Data, `" alt="`)
			p.text(gist)
			p.raw("\"></p>\n")
			return
		}
	}
	p.raw("<p class=media")
	if p.parts && c.Image != nil && c.Image.Source != nil && c.Image.Source.Type != "url" {
		p.raw(` data-entry="`)
		p.text(p.entry)
		p.raw(`" data-blob="`)
		p.text(string(c.Image.Source.Blob))
		p.raw(`"`)
	}
	p.raw(">")
	p.text(gist)
	p.raw("</p>\n")
}

func isBase64(s string) bool {
	n, err := base64.StdEncoding.Decode(make([]byte, base64.StdEncoding.DecodedLen(len(s))), []byte(s))
	return err == nil && n > 0 && !strings.ContainsAny(s, "\r\n")
}

// branches lists the ways to continue, if there is a choice.
func (p *page) branches(nodes []*render.Node, title string) {
	if len(nodes) < 2 {
		return
	}
	const maxOpen = 6
	p.raw("<nav class=branches aria-label=", title, "><details")
	p.flag(len(nodes) <= maxOpen, " open")
	p.raw("><summary>")
	p.text(render.Counted(len(nodes), "branch", "branches"))
	p.raw("</summary><ol>\n")
	for _, n := range nodes {
		i := p.at[n]
		p.raw(`<li><a href="#`)
		p.anchor(i)
		p.raw(`" data-s=`)
		p.number(p.items[i].section + 1)
		p.flag(p.isShown(i), " aria-current=true")
		p.raw("><b>")
		p.text(p.items[i].kind)
		p.raw("</b> <span dir=auto>")
		p.text(p.items[i].gist)
		p.raw("</span> <small>")
		p.text(render.Counted(n.Length, "entry", "entries"))
		p.raw("</small></a></li>\n")
	}
	p.raw("</ol></details></nav>\n")
}

// anchorOf returns the name of the element at which an item begins: its card, its first
// result or, if nothing of it is visible, its section.
func (p *page) anchorOf(i int) string {
	if results := p.items[i].results; p.hasCard(i) || len(results) > 0 && results[0].moved {
		return "e" + strconv.Itoa(i+1)
	}
	return "s" + strconv.Itoa(p.items[i].section+1)
}

func (p *page) anchor(i int) { p.raw(p.anchorOf(i)) }
