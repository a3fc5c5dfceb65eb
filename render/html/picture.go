package html

import (
	"bufio"
	"bytes"
	"cmp"
	_ "embed" // the style of a picture
	"fmt"
	"strconv"
	"time"

	"github.com/coppice-dev/coppice/render"
)

//go:embed picture.css
var pictureStyle string

// maxPoints is how many columns a picture has: on a telephone, each is a few pixels wide.
const maxPoints = 120

// Picture returns a picture of how a conversation went as a piece of HTML, without a script. link
// returns the address of an entry, or "" if it has none.
func Picture(p *render.Picture, link func(entry string) string) string {
	var b bytes.Buffer
	w := &writer{Writer: bufio.NewWriter(&b)}
	w.picture(p, link)
	_ = w.Flush() // a buffer takes everything
	return b.String()
}

// figure is a picture while it is written. Its charts have no height of their own in view boxes: what
// lies beside each other is in per cent, what lies above each other in pixels. So they fit every width without a
// script, and their marks keep their shape.
type figure struct {
	*writer
	*render.Picture
	points []render.Point
	link   func(entry string) string
	first  []int // the number of each point's first request
}

func (w *writer) picture(p *render.Picture, link func(entry string) string) {
	f := figure{writer: w, Picture: p, points: render.Fit(p.Points, maxPoints), link: link}
	n := 1
	for i := range f.points {
		f.first = append(f.first, n)
		n += f.points[i].Requests
	}
	if len(f.points) == 0 {
		w.raw(`<p class=none>No request has been answered on this path yet, so there is nothing to draw.</p>`)
		return
	}
	f.summary()
	f.context()
	f.cost()
	f.time()
	f.failed()
	f.table()
}

// summary says what the picture shows, in words.
func (f *figure) summary() {
	f.raw("<dl class=totals>")
	fact := func(name, value, more string) {
		f.raw("<div><dt>")
		f.text(name)
		f.raw("</dt><dd>")
		f.text(value)
		if more != "" {
			f.raw(" <small>")
			f.text(more)
			f.raw("</small>")
		}
		f.raw("</dd></div>")
	}
	s := &f.Sum
	fact("Requests", render.Thousands(s.Requests), "")
	fact("Fullest context", f.tokens(s.Context), render.ShareOf(s.Context, f.Window))
	if s.Compactions.N > 0 {
		fact("Compactions", render.Thousands(s.Compactions.N), "")
	}
	if cached := render.Percent(f.Cached, f.Sent); cached != "" {
		fact("From the cache", cached, missed(s.Misses.N))
	}
	if s.Errors.N > 0 {
		fact("Errors", render.Thousands(s.Errors.N), "")
	}
	if s.Branches.N > 0 {
		fact("Other branches", render.Thousands(s.Branches.N), "")
	}
	fact("Cost of this path", f.money(s.CostMicroUSD, s.Unpriced), "")
	f.raw("</dl>\n")
}

func missed(n int) string {
	if n == 0 {
		return ""
	}
	return "missed " + render.Counted(n, "time", "times")
}

// tokens writes a number of tokens, and whether it is an estimate.
func (f *figure) tokens(n int64) string {
	if f.Estimated {
		return "about " + render.Count(n)
	}
	return render.Count(n)
}

func (f *figure) money(micro int64, unpriced int) string {
	return render.Cost(micro, unpriced > 0 || f.Estimated)
}

// percent writes a place or a length beside others.
func percent(n, of int64) string {
	return strconv.FormatFloat(100*float64(n)/float64(max(of, 1)), 'f', 3, 64) + "%"
}

const (
	chartHeight = 150 // of the contexts, in pixels
	markHeight  = 15  // of a row of marks
	costHeight  = 56
)

// context draws how full the context was at each request, from what it was made, and the marks.
func (f *figure) context() {
	f.raw("<figure><figcaption>How full the context was</figcaption>\n<p class=key>")
	if !f.Estimated {
		f.raw("<span><i class=p-out></i>answered</span> <span><i class=p-new></i>not cached</span> <span><i class=p-hit></i>from the cache</span> ")
	}
	rows := f.markRows()
	for _, r := range rows {
		f.raw("<span><i class=p-sign>", r.sign, "</i>", r.name, "</span> ")
	}
	height := chartHeight + markHeight*len(rows)
	f.raw("</p>\n<svg class=picture role=group width=100% height=", strconv.Itoa(height), " aria-label=\"Tokens in the context, request by request\">")
	top := f.Full()
	f.scale(chartHeight)
	count := int64(len(f.points))
	for i := range f.points {
		at := &f.points[i]
		f.open(at.Entry)
		f.raw("<title>")
		f.text(f.says(i))
		f.raw("</title><rect class=p-back x=", percent(int64(i), count), " width=", percent(1, count), " height=", strconv.Itoa(height), " />")
		y := chartHeight // of the top of what is drawn
		parts := []struct {
			class string
			n     int64
		}{{"p-hit", at.CacheRead}, {"p-new", at.Sent() - at.CacheRead}, {"p-out", at.Output}}
		if at.Sent() == 0 {
			parts = parts[:1]
			parts[0].n = at.Context
		}
		for _, part := range parts {
			h := int(chartHeight*part.n/max(top, 1)) + min(int(part.n), 1)
			y -= h
			f.bar(part.class, i, max(y, 0), h)
		}
		f.raw("</a>")
	}
	words := f.tokens(top)
	if top == f.Window {
		words += ", all of the window"
	}
	f.top(words)
	for k, r := range rows {
		f.marks(&r, chartHeight+markHeight*k)
	}
	f.raw("</svg>\n")
	f.ends()
	f.raw("</figure>\n")
}

// bar draws a part of the column of a point, with a little room beside it.
func (f *figure) bar(class string, i, y, height int) {
	if height <= 0 {
		return
	}
	n := int64(len(f.points))
	f.raw("<rect class=", class, " x=", percent(int64(i)*20+2, n*20), " width=", percent(16, n*20), " y=", strconv.Itoa(y), " height=", strconv.Itoa(height), " />")
}

// scale draws the lines of a chart.
func (f *figure) scale(height int) {
	f.raw("<line class=p-grid x2=100% y1=.5 y2=.5 /><line class=p-grid x2=100% y1=", strconv.Itoa(height/2), " y2=", strconv.Itoa(height/2), " /><line class=p-grid x2=100% y1=", strconv.Itoa(height), " y2=", strconv.Itoa(height), " />")
}

// top writes what the top of a chart is, over its columns.
func (f *figure) top(words string) {
	f.raw("<text x=0 y=13>")
	f.text(words)
	f.raw("</text>")
}

// ends writes what is at both ends of a chart.
func (f *figure) ends() {
	from, to := f.points[0].Time, f.points[len(f.points)-1].Time
	if from.IsZero() || to.IsZero() {
		return
	}
	layout := "2 January 2006, 15:04"
	f.raw("<p class=ends><span>", from.UTC().Format(layout), "</span> <span>", to.UTC().Format(layout), " UTC</span></p>\n")
}

// markRow is a kind of thing that happened, drawn in a row of its own.
type markRow struct {
	sign, name string
	of         func(*render.Point) *render.Mark
}

func (f *figure) markRows() (rows []markRow) {
	for _, r := range []markRow{
		{"▼", "compacted", func(p *render.Point) *render.Mark { return &p.Compactions }},
		{"○", "missed the cache", func(p *render.Point) *render.Mark { return &p.Misses }},
		{"✕", "error", func(p *render.Point) *render.Mark { return &p.Errors }},
		{"Y", "another branch", func(p *render.Point) *render.Mark { return &p.Branches }},
	} {
		for i := range f.points {
			if r.of(&f.points[i]).N > 0 {
				rows = append(rows, r)
				break
			}
		}
	}
	return rows
}

func (f *figure) marks(r *markRow, y int) {
	n := int64(len(f.points))
	for i := range f.points {
		m := r.of(&f.points[i])
		if m.N == 0 {
			continue
		}
		f.open(m.Entry)
		f.raw("<title>")
		f.text(fmt.Sprintf("%s before request %s", r.name, f.number1(i)))
		if m.N > 1 {
			f.text(fmt.Sprintf(", %d times", m.N))
		}
		f.raw("</title><text class=p-sign text-anchor=middle x=", percent(int64(i)*2+1, n*2), " y=", strconv.Itoa(y+markHeight-2), ">", r.sign, "</text></a>")
	}
}

// open begins a link to an entry. The table behind the picture has the same links for those who go
// from one to the next with the keyboard.
func (f *figure) open(entry string) {
	f.raw("<a tabindex=-1")
	f.href(entry)
	f.raw(">")
}

func (f *figure) href(entry string) {
	if to := f.link(entry); to != "" {
		f.raw(` href="`)
		f.text(to)
		f.raw(`"`)
	}
}

// number1 says which request a point is, or which ones.
func (f *figure) number1(i int) string {
	if n := f.points[i].Requests; n > 1 {
		return fmt.Sprintf("%d–%d", f.first[i], f.first[i]+n-1)
	}
	return strconv.Itoa(f.first[i])
}

// says describes a point in words.
func (f *figure) says(i int) string {
	at := &f.points[i]
	text := "request " + f.number1(i)
	if !at.Time.IsZero() {
		text += ", " + at.Time.UTC().Format("2 Jan 15:04")
	}
	text += ": " + f.tokens(at.Context) + " tokens"
	if share := render.ShareOf(at.Context, f.Window); share != "" {
		text += ", " + share
	}
	if cached := render.Percent(at.CacheRead, at.Sent()); cached != "" {
		text += "; " + cached + " of what was sent came from the cache"
	}
	if at.Output > 0 {
		text += "; " + render.Count(at.Output) + " answered"
	}
	if !f.Estimated {
		text += "; " + f.money(at.CostMicroUSD, at.Unpriced) + ", " + f.money(at.SoFar, 0) + " so far"
	}
	return text
}

// cost draws what the path had cost up to each request.
func (f *figure) cost() {
	total := f.Sum.CostMicroUSD
	if total == 0 {
		return
	}
	f.raw("<figure><figcaption>Cost so far</figcaption>\n<svg class=picture role=group width=100% height=", strconv.Itoa(costHeight), " aria-label=\"Cost so far, request by request\">")
	f.raw("<line class=p-grid x2=100% y1=", strconv.Itoa(costHeight), " y2=", strconv.Itoa(costHeight), " />")
	n := int64(len(f.points))
	for i := range f.points {
		at := &f.points[i]
		f.open(at.Entry)
		f.raw("<title>")
		f.text(f.says(i))
		h := max(int((costHeight-14)*at.SoFar/total), min(int(at.SoFar), 1))
		was := max(int((costHeight-14)*(at.SoFar-at.CostMicroUSD)/total), 0)
		f.raw("</title><rect class=p-back x=", percent(int64(i), n), " width=", percent(1, n), " height=", strconv.Itoa(costHeight), " />")
		f.bar("p-was", i, costHeight-was, was)
		f.bar("p-cost", i, costHeight-h, h-was)
		f.raw("</a>")
	}
	f.top(f.money(total, f.Sum.Unpriced))
	f.raw("</svg></figure>\n")
}

// time draws where the time went.
func (f *figure) time() {
	t := f.Sum.Spent
	all := t.Model + t.Tools + t.Person
	if all == 0 {
		return
	}
	f.raw("<figure><figcaption>Where the time went</figcaption>\n<table class=bars><tbody>")
	for _, part := range []struct {
		name, class string
		ms          int64
	}{{"the model", "p-hit", t.Model}, {"tools", "p-new", t.Tools}, {"waiting for a person", "p-out", t.Person}} {
		f.line(part.name, part.class, part.ms, all, render.Duration(time.Duration(part.ms)*time.Millisecond), render.Percent(part.ms, all))
	}
	f.raw("</tbody></table></figure>\n")
}

// line writes a row of a table with a bar.
func (f *figure) line(name, class string, n, of int64, value, more string) {
	f.raw("<tr><th scope=row>")
	f.text(name)
	f.raw("</th><td class=p-bar><svg width=100% height=12 aria-hidden=true>")
	if n > 0 {
		f.raw("<rect class=", class, " width=", percent(n, of), " height=12 /><rect class=", class, " width=1 height=12 />")
	}
	f.raw("</svg></td><td class=right>")
	f.text(value)
	f.raw("</td><td class=\"right soft\">")
	f.text(more)
	f.raw("</td></tr>")
}

// maxFailed is how many tools with errors are listed.
const maxFailed = 8

// failed draws which tools failed, and how often.
func (f *figure) failed() {
	if len(f.Failed) == 0 {
		return
	}
	f.raw("<figure><figcaption>Errors by tool</figcaption>\n<table class=bars><tbody>")
	for i := range f.Failed[:min(len(f.Failed), maxFailed)] {
		t := &f.Failed[i]
		f.line(render.OneLine(cmp.Or(t.Name, "-"), 40), "p-bad", int64(t.Errors), int64(max(t.Calls, 1)), render.Thousands(t.Errors),
			"of "+render.Counted(t.Calls, "call", "calls"))
	}
	f.raw("</tbody></table></figure>\n")
}

// table writes the same in numbers.
func (f *figure) table() {
	f.raw("<details class=numbers><summary>The numbers</summary><div class=wide><table><thead><tr><th>Request<th class=right>Context<th class=right>From the cache<th class=right>Sent anew<th class=right>Answered<th class=right>Cost<th class=right>So far<th>What happened before it</tr></thead><tbody>\n")
	for i := range f.points {
		at := &f.points[i]
		f.raw("<tr><th scope=row><a")
		f.href(at.Entry)
		f.raw(">", f.number1(i), "</a></th>")
		for _, n := range []int64{at.Context, at.CacheRead, at.Sent() - at.CacheRead, at.Output} {
			f.raw("<td class=right>")
			f.text(render.Thousands(int(n)))
			f.raw("</td>")
		}
		f.raw("<td class=right>")
		f.text(f.money(at.CostMicroUSD, at.Unpriced))
		f.raw("</td><td class=right>")
		f.text(f.money(at.SoFar, 0))
		f.raw("</td><td>")
		f.events(at)
		f.raw("</td></tr>\n")
	}
	f.raw("</tbody></table></div></details>\n")
}

// events writes links to what happened before a request.
func (f *figure) events(at *render.Point) {
	after := false
	for _, r := range f.markRows() {
		m := r.of(at)
		if m.N == 0 {
			continue
		}
		if after {
			f.raw(", ")
		}
		after = true
		f.raw("<a")
		f.href(m.Entry)
		f.raw(">", r.sign, " ", r.name, "</a>")
		if m.N > 1 {
			f.raw(" ×", strconv.Itoa(m.N))
		}
	}
}
