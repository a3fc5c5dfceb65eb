package render

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/session"
)

// Picture is how a conversation went along a path, request by request: how full its context was,
// what came from the provider's cache, what it cost, and where the time went.
type Picture struct {
	Points []Point `json:"points"` // in order
	// Window is how many tokens the last model's context has room for; 0 if that is not known.
	Window int64 `json:"window,omitempty"`
	// Estimated says that the providers reported no tokens, and that the contexts were counted here.
	Estimated bool   `json:"estimated,omitempty"`
	Sum       Point  `json:"sum"`    // of all points, and of what came after them; its context is the fullest one
	Sent      int64  `json:"sent"`   // tokens of all requests, cached or not
	Cached    int64  `json:"cached"` // how many of them came from the cache
	Failed    []Tool `json:"failed"` // the tools that failed, most errors first
}

// Point is a request, or several that follow each other: see Fit.
type Point struct {
	Entry    string    `json:"entry"` // the response; of several, the one with the fullest context
	Time     time.Time `json:"time,omitzero"`
	Model    string    `json:"model,omitempty"`
	Requests int       `json:"requests"`

	Context    int64 `json:"context"` // tokens of the window that were full after the response
	Input      int64 `json:"input"`   // tokens that were sent and not cached
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
	Output     int64 `json:"output"`

	CostMicroUSD int64 `json:"cost_micro_usd"`
	SoFar        int64 `json:"so_far_micro_usd"`   // what the path has cost up to here, whoever paid for it
	Unpriced     int   `json:"unpriced_responses"` // how many of the responses have no known cost

	// What happened since the request before: each names the first entry of its kind.
	Compactions Mark    `json:"compactions,omitzero"`
	Branches    Mark    `json:"branches,omitzero"` // the beginnings of other ways to go on
	Errors      Mark    `json:"errors,omitzero"`   // results of tools
	Misses      Mark    `json:"misses,omitzero"`   // requests that the cache should have known: see isMiss
	Spent       Elapsed `json:"spent"`
}

// Mark is how often something happened, and where first.
type Mark struct {
	Entry string `json:"entry"`
	N     int    `json:"n"`
}

// Elapsed is where time went, in milliseconds. The time before a message, since the entry before it,
// belongs to whoever wrote it, unless it is longer than session.Away.
type Elapsed struct {
	Model  int64 `json:"model_ms"`
	Tools  int64 `json:"tools_ms"` // and whoever had to allow the calls
	Person int64 `json:"person_ms"`
}

// Add adds the time before a message of a role. isTool says that it has the output of a tool.
func (t *Elapsed) Add(role session.MessageRole, isTool bool, ms int64) {
	switch {
	case role == session.RoleAssistant:
		t.Model += ms
	case isTool || role == session.RoleTool:
		t.Tools += ms
	case role == session.RoleUser:
		t.Person += ms
	}
}

// Tool is how many of a tool's calls failed.
type Tool struct {
	Name   string `json:"name"`
	Calls  int    `json:"calls"`
	Errors int    `json:"errors"`
}

// PictureOptions say what a picture needs to know and cannot read in a session.
type PictureOptions struct {
	// Price returns what a response cost, and whether that is known.
	Price func(bill *session.Bill) (microUSD int64, known bool)
	// Count counts the tokens of an entry, for a conversation whose provider reported none.
	Count func(e *session.Entry) int
}

// NewPicture reads the path to a leaf and makes a picture of it.
func NewPicture(ctx context.Context, k *Sketch, leaf int32, o PictureOptions) (*Picture, error) {
	count := o.Count
	o.Count = nil
	p, err := paint(ctx, k, leaf, o)
	if err == nil && !p.reported && count != nil { // which takes longer, so it is not done for nothing
		o.Count = count
		p, err = paint(ctx, k, leaf, o)
	}
	if err != nil {
		return nil, err
	}
	return p.done(), nil
}

func paint(ctx context.Context, k *Sketch, leaf int32, o PictureOptions) (*painter, error) {
	path := k.shape.Path(leaf)
	p := &painter{PictureOptions: o, calls: make(map[string]*Tool), tools: make(map[string]*Tool), bills: make(map[string]int), sizes: make(map[string]int64)}
	shown := none // the last entry that is not left out
	for chunk := range slices.Chunk(path, ReadAtOnce) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		entries, err := k.shape.Peek(chunk, nil)
		if err != nil {
			return nil, err
		}
		for i := range entries {
			if at := chunk[i]; k.traits[at].isShown() {
				p.fork(k, shown, at)
				shown = at
			}
			p.add(&entries[i])
		}
	}
	p.fork(k, shown, none)
	return p, nil
}

// painter makes a picture of entries that are added in the order of a path.
type painter struct {
	PictureOptions
	picture Picture
	next    Point // what has happened since the last request
	last    time.Time
	held    int64 // tokens that the cache has of the last request, if nothing compacted it since
	model   string

	calls map[string]*Tool // by the call's id, until its result
	tools map[string]*Tool // by name
	bills map[string]int   // the points of the responses

	full     int64 // tokens in the context, as counted here
	before   int64 // tokens of all entries so far
	sizes    map[string]int64
	reported bool
}

// fork notes the other ways to go on from an entry.
func (p *painter) fork(k *Sketch, from, to int32) {
	if from == none {
		return
	}
	for _, child := range k.Children(from) {
		if child != to {
			p.next.Branches.note(k.shape.ID(child))
		}
	}
}

func (m *Mark) note(entry string) {
	if m.N == 0 {
		m.Entry = entry
	}
	m.N++
}

func (m *Mark) plus(other Mark) {
	if m.N == 0 {
		m.Entry = other.Entry
	}
	m.N += other.N
}

func (p *painter) add(e *session.Entry) {
	p.count(e)
	if e.Compaction != nil {
		p.next.Compactions.note(e.ID)
		p.held = 0
	}
	p.elapse(e)
	if e.Message != nil {
		p.look(e)
	}
	bill, ok := session.BillOf(e)
	isResponse := e.Message != nil && e.Message.Role == session.RoleAssistant
	switch at, known := p.bills[bill.Response]; {
	case ok && known:
		p.raise(&p.picture.Points[at], &bill)
	case ok && isResponse:
		p.bills[bill.Response] = len(p.picture.Points)
		p.request(e, &bill)
	case ok: // such as a summary, which is paid for with the next request
		p.next.pay(&bill, p.Price)
	case isResponse && !e.IsRepeated():
		p.request(e, &session.Bill{Provider: e.Message.Provider, Model: e.Message.Model})
	}
}

// count keeps account of the size of the context.
func (p *painter) count(e *session.Entry) {
	if p.Count == nil || e.Message == nil && e.Compaction == nil {
		return
	}
	n := int64(p.Count(e))
	p.sizes[e.ID] = p.before
	if e.Compaction != nil { // the summary, and what is kept
		p.full = 0
		if kept, ok := p.sizes[e.Compaction.FirstKeptEntryID]; ok {
			p.full = p.before - kept
		}
	} else {
		p.before += n
	}
	p.full += n
}

// elapse says whose time it was since the entry before.
func (p *painter) elapse(e *session.Entry) {
	at, last := e.Timestamp, p.last
	if at.IsZero() || at.Before(last) {
		return
	}
	p.last = at
	if last.IsZero() {
		return
	}
	ms := at.Sub(last).Milliseconds()
	if ms > session.Away.Milliseconds() {
		return
	}
	switch _, isDraft := e.DraftText(); {
	case e.Message != nil:
		isTool := slices.ContainsFunc(e.Message.Content, func(c session.Content) bool { return c.ToolResult != nil })
		p.next.Spent.Add(e.Message.Role, isTool, ms)
	case isDraft:
		p.next.Spent.Model += ms
	}
}

// look counts the calls of a message, and the results that are errors.
func (p *painter) look(e *session.Entry) {
	for i := range e.Message.Content {
		switch c := &e.Message.Content[i]; {
		case c.ToolUse != nil:
			tool := p.tools[c.ToolUse.Name]
			if tool == nil {
				tool = &Tool{Name: c.ToolUse.Name}
				p.tools[c.ToolUse.Name] = tool
			}
			tool.Calls++
			p.calls[c.ToolUse.ID] = tool
		case c.ToolResult != nil && c.ToolResult.IsError:
			p.next.Errors.note(e.ID)
			if tool := p.calls[c.ToolResult.ToolUseID]; tool != nil {
				tool.Errors++
			}
		}
	}
}

// request adds a point for a response.
func (p *painter) request(e *session.Entry, bill *session.Bill) {
	u := &bill.Usage
	p.reported = p.reported || u.Context() > 0
	at := p.next
	p.next = Point{}
	at.Entry, at.Time, at.Model, at.Requests = e.ID, e.Timestamp.UTC(), bill.Model, 1
	at.take(u)
	if at.Context == 0 {
		at.Context = p.full
	}
	if u.Context() > 0 {
		at.pay(bill, p.Price)
	}
	if p.isMiss(&at) {
		at.Misses = Mark{at.Entry, 1}
	}
	p.held, p.model = at.Sent()-at.Input, at.Model
	p.picture.Points = append(p.picture.Points, at)
}

// isMiss reports whether less than half of what the cache had of the request before was used, by
// the same model and without a compaction between them.
func (p *painter) isMiss(at *Point) bool {
	return p.held > 0 && at.Model == p.model && at.Compactions.N == 0 && at.CacheRead < p.held/2
}

// Sent returns the size of the request in tokens, cached or not.
func (at *Point) Sent() int64 {
	u := session.Usage{Input: int(at.Input), CacheRead: int(at.CacheRead), CacheWrite: int(at.CacheWrite)}
	return int64(u.Sent())
}

// take sets what a response used.
func (at *Point) take(u *session.Usage) {
	at.Context = int64(u.Context())
	at.Input, at.CacheRead, at.CacheWrite, at.Output = int64(u.Input), int64(u.CacheRead), int64(u.CacheWrite), int64(u.Output)
}

func (at *Point) pay(bill *session.Bill, price func(*session.Bill) (int64, bool)) {
	micro, known := int64(bill.Usage.CostMicroUSD), bill.Usage.CostMicroUSD > 0
	if !known && price != nil {
		micro, known = price(bill)
	}
	at.CostMicroUSD += micro
	if !known {
		at.Unpriced++
	}
}

// raise applies what another message says about the same response: the greatest counts are right.
func (p *painter) raise(at *Point, bill *session.Bill) {
	if int64(bill.Usage.Context()) <= at.Context && int64(bill.Usage.Output) <= at.Output {
		return
	}
	at.take(&bill.Usage)
	at.CostMicroUSD, at.Unpriced = 0, 0
	at.pay(bill, p.Price)
}

func (p *painter) done() *Picture {
	pic := &p.picture
	pic.Estimated = !p.reported && len(pic.Points) > 0
	if pic.Points == nil {
		pic.Points = []Point{}
	}
	sum := &pic.Sum
	for i := range pic.Points {
		at := &pic.Points[i]
		at.SoFar = sum.CostMicroUSD + at.CostMicroUSD
		pic.Sent += at.Sent()
		pic.Cached += at.CacheRead
		if i == 0 {
			*sum = *at
		} else {
			sum.plus(at)
		}
	}
	// What came after the last request belongs to none, and is not lost.
	rest := p.next
	sum.CostMicroUSD += rest.CostMicroUSD
	sum.SoFar = sum.CostMicroUSD
	sum.Compactions.plus(rest.Compactions)
	sum.Branches.plus(rest.Branches)
	sum.Errors.plus(rest.Errors)
	sum.Spent.plus(rest.Spent)
	pic.Failed = []Tool{}
	for _, tool := range p.tools {
		if tool.Errors > 0 {
			pic.Failed = append(pic.Failed, *tool)
		}
	}
	slices.SortFunc(pic.Failed, func(a, b Tool) int { return cmp.Or(b.Errors-a.Errors, cmp.Compare(a.Name, b.Name)) })
	return pic
}

func (t *Elapsed) plus(other Elapsed) {
	t.Model += other.Model
	t.Tools += other.Tools
	t.Person += other.Person
}

// plus makes one point of two that follow each other. The fuller context is what counts: the
// tokens are those of its request, and what was paid is the sum.
func (at *Point) plus(next *Point) {
	sum := *at
	if next.Context > at.Context {
		sum = *next
	}
	sum.Requests = at.Requests + next.Requests
	sum.CostMicroUSD, sum.SoFar, sum.Unpriced = at.CostMicroUSD+next.CostMicroUSD, next.SoFar, at.Unpriced+next.Unpriced
	for _, m := range []struct{ to, a, b *Mark }{
		{&sum.Compactions, &at.Compactions, &next.Compactions},
		{&sum.Branches, &at.Branches, &next.Branches},
		{&sum.Errors, &at.Errors, &next.Errors},
		{&sum.Misses, &at.Misses, &next.Misses},
	} {
		*m.to = *m.a
		m.to.plus(*m.b)
	}
	sum.Spent = at.Spent
	sum.Spent.plus(next.Spent)
	*at = sum
}

// Fit returns at most so many points: requests that follow each other become one.
func Fit(points []Point, most int) []Point {
	n := len(points)
	if most <= 0 || n <= most {
		return points
	}
	fit := make([]Point, 0, most)
	for i := range most {
		from, to := i*n/most, (i+1)*n/most
		at := points[from]
		for k := from + 1; k < to; k++ {
			at.plus(&points[k])
		}
		fit = append(fit, at)
	}
	return fit
}

// Full returns how much of the window is the top of a chart of the contexts: the window, or less
// if nothing came near it.
func (p *Picture) Full() int64 {
	most := max(p.Sum.Context, 1)
	if p.Window >= most && p.Window <= 3*most {
		return p.Window
	}
	return most + most/16
}
