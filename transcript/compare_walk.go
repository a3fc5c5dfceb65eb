package transcript

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// comparison is the walk over two inventories: of the conversation, and of its copy that was read
// back.
type comparison struct {
	want, got *inventory
	excused   map[string]bool // the entries with losses that the writer listed
	odd       map[string]bool // those that are excused because they are odd
	known     map[Loss]bool   // the listed losses, without their reasons
	losses    []Loss
	// before has, for each number of wanted calls, how many calls were read back up to
	// the last of them.
	before []int
}

// lossesIn returns the losses of a copy that was read back, except the known ones.
func (h *inventory) lossesIn(got *inventory, known []Loss) ([]Loss, error) {
	c := comparison{want: h, got: got, excused: make(map[string]bool), odd: make(map[string]bool), known: make(map[Loss]bool)}
	for _, l := range known {
		c.known[Loss{EntryID: l.EntryID, What: l.What}] = true
		if l.EntryID != "" && l.What != LossPlace && !strings.HasPrefix(l.What, lossThinking) {
			c.excused[l.EntryID] = true
		}
	}
	for entry, odd := range h.odd {
		if odd && !c.excused[entry] {
			c.excused[entry], c.odd[entry] = true, true
		}
	}
	if err := c.calls(); err != nil {
		return nil, err
	}
	if err := c.words(); err != nil {
		return nil, err
	}
	for _, p := range missing(h.thoughts, got.thoughts) {
		c.addLoss(p.entry, lossThinking, "it has no place there")
	}
	for _, p := range missing(h.media, got.media) {
		if !c.excused[p.entry] {
			c.addLoss(p.entry, strings.Fields(p.text)[0], "it has no place there")
		}
	}
	return c.losses, nil
}

// LossPlace is the loss when a text has moved between other calls. Nothing else of the
// message may be missing then.
const LossPlace = "where something was said"

// The other losses that compare finds, besides pictures and files.
const (
	lossThinking = "thinking"
	lossName     = "name of a tool"
	lossFailed   = "whether a tool failed"
	lossOdd      = "message that only its own format can hold"
	lossSpeaker  = "who said something"
	lossAnswer   = "which call a result answers"
	lossAside    = "message that is neither a user's nor a model's"
)

// addLoss notes a loss that the writer did not list.
func (c *comparison) addLoss(entry, what, why string) {
	if key := (Loss{EntryID: entry, What: what}); !c.known[key] {
		c.known[key] = true
		c.losses = append(c.losses, Loss{EntryID: entry, What: what, Why: why})
	}
}

// pass records the loss of an odd entry.
func (c *comparison) pass(entry string) {
	if c.odd[entry] {
		c.addLoss(entry, lossOdd, "there is no place for it there")
	}
}

// calls compares the calls one by one, and the answer of each.
func (c *comparison) calls() error {
	want, got := c.want.calls, c.got.calls
	j := 0
	c.before = append(c.before, 0)
	for i := range want {
		w := &want[i]
		switch {
		case j < len(got) && sameInput(w.input, got[j].input):
			if err := c.call(w, &got[j]); err != nil {
				return err
			}
			j++
		case !c.excused[w.entry] && j < len(got):
			return errReadBack(w.entry, "the call of %s has become one of %s: %.60s and not %.60s", w.name, got[j].name, got[j].input, w.input)
		case !c.excused[w.entry]:
			return errReadBack(w.entry, "the call of %s is missing: %.60s", w.name, w.input)
		case j < len(got) && w.name == got[j].name && len(got)-j >= len(want)-i: // it was changed
			c.pass(w.entry)
			j++
		default:
			c.pass(w.entry)
		}
		c.before = append(c.before, j)
	}
	if j < len(got) && len(c.odd) > 0 { // a block that was not understood may have been a call
		c.addLoss("", lossOdd, "it is read as a call there")
	} else if j < len(got) {
		return errReadBack("", "there is a call of %s that was never made", got[j].name)
	}
	return nil
}

// call compares a call with the one that was read back in its place.
func (c *comparison) call(want, got *answeredCall) error {
	if want.name != got.name && !c.excused[want.entry] {
		c.addLoss(want.entry, lossName, "the names of tools are limited there")
	}
	w, g := want.result, got.result
	switch {
	case w == nil, want.made, c.excused[want.entry], c.excused[want.answer]:
		return nil
	case want.shared && (g == nil || !sameTexts(w, g)):
		c.addLoss(want.answer, lossAnswer, "several calls have the same id")
	case g == nil:
		return errReadBack(want.answer, "the result of %s is missing: %.60q", want.name, w.Content)
	case !sameTexts(w, g):
		return errReadBack(want.answer, "the result of %s was changed: it is %.60q and not %.60q", want.name, g.Content, w.Content)
	case w.IsError != g.IsError:
		c.addLoss(want.answer, lossFailed, "a result is only text there")
	}
	return nil
}

// sameInput reports whether two arguments are equal JSON values. No arguments equal an
// empty object.
func sameInput(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) || isEmptyInput(a) && isEmptyInput(b) {
		return true
	}
	var x, y any
	return decode(a, &x) == nil && decode(b, &y) == nil && reflect.DeepEqual(x, y)
}

func isEmptyInput(a json.RawMessage) bool {
	return len(a) == 0 || string(a) == "null" || string(a) == "{}"
}

func decode(text json.RawMessage, v *any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

// words compares what users and models said, text by text.
func (c *comparison) words() error {
	said := slices.DeleteFunc(slices.Clone(c.got.words), func(u passage) bool { return u.shown })
	want, got := readingOf(c.want.words), readingOf(said)
	asides := readingOf(missing(c.want.asides, c.got.asides))
	var spare []string // the entries that texts may replace
	cut := false       // a summary was just met
	for {
		w, g := want.first(), got.first()
		switch {
		case w == nil && g == nil:
			c.addLosses(asides)
			return nil
		case w != nil && w.shown:
			want.next()
			if c.excused[w.entry] {
				spare = append(spare, w.entry)
			}
		case w != nil && g != nil && w.summary && strings.Contains(got.rest, w.text):
			want.next()
			got.next()
			cut = true
		case w != nil && g != nil && w.role == g.role && c.isPlace(w, g) && both(want, got):
		case g != nil && g.role == session.RoleUser && c.skipAside(asides, got):
			// Most formats have no other role for it.
		case w != nil && g != nil && w.role != g.role && both(want, got):
			c.addLoss(w.entry, lossSpeaker, "it is said by another there")
		case w != nil && c.excused[w.entry] && !want.begins(got, 1):
			c.pass(w.entry)
			want.next()
		case g != nil && cut && g.role == session.RoleUser:
			// A session repeats the prompt of a turn that a compaction cuts. Whether a
			// file does depends on where its format puts the compaction.
			c.addLoss("", "where a compaction cuts", "the prompt before it is sent again there")
			got.next()
			cut = false
		case g != nil && len(spare) > 0:
			c.pass(spare[0])
			got.next()
			spare = spare[1:]
		case g == nil:
			return errReadBack(w.entry, "a text is missing: %.60q", want.rest)
		case w == nil:
			return errReadBack("", "there is a text that is not in the session: %.60q", got.rest)
		case both(want, got):
			c.addLoss(w.entry, LossPlace, "it is between other calls there")
		default:
			return errReadBack(w.entry, "a text is missing or was changed: there is %.60q and not %.60q", got.rest, want.rest)
		}
	}
}

// isPlace reports whether a text is where it should be: a user's between the same calls.
// A model's text may be before or after its own calls.
func (c *comparison) isPlace(w, g *passage) bool {
	return w.role == session.RoleAssistant || c.before[w.calls] == g.calls || c.excused[w.entry]
}

// maxAsides is how many asides in a row may be lost before one that is there.
const maxAsides = 32

// skipAside passes over a text that is an aside.
func (c *comparison) skipAside(asides, got *reading) bool {
	for i := range min(len(asides.list), maxAsides) {
		at := readingOf(asides.list[i:])
		if i == 0 {
			at = asides
		}
		if !both(at, got) {
			continue
		}
		c.addLosses(&reading{list: asides.list[:i]})
		*asides = *at
		return true
	}
	return false
}

// addLosses notes the loss of the texts that are left.
func (c *comparison) addLosses(left *reading) {
	for ; left.first() != nil; left.next() {
		if !c.excused[left.first().entry] {
			c.addLoss(left.first().entry, lossAside, "the format has no place for it")
		}
	}
}

// sameTexts reports whether two results say the same. The texts of one may be split
// differently.
func sameTexts(a, b *session.ToolResultContent) bool {
	if plain(a.Content) == plain(b.Content) {
		return true
	}
	x, y := readingOf(textsOf(a)), readingOf(textsOf(b))
	for x.first() != nil || y.first() != nil {
		if !both(x, y) {
			return false
		}
	}
	return true
}

func textsOf(r *session.ToolResultContent) []passage {
	var list []passage
	for i := range r.Parts {
		if t := r.Parts[i].Text; t != nil && plain(t.Content) != "" {
			list = append(list, passage{text: plain(t.Content)})
		}
	}
	if len(list) == 0 && plain(r.Content) != "" {
		list = append(list, passage{text: plain(r.Content)})
	}
	return list
}

// reading is a place in a list of texts. A text may be the beginning of another, because
// formats join texts.
type reading struct {
	list []passage
	rest string // of the first
}

func readingOf(list []passage) *reading {
	r := &reading{list: list}
	r.begin()
	return r
}

func (r *reading) begin() {
	if r.rest = ""; len(r.list) > 0 {
		r.rest = r.list[0].text
	}
}

// first returns the current text, or nil.
func (r *reading) first() *passage {
	if len(r.list) == 0 {
		return nil
	}
	return &r.list[0]
}

func (r *reading) next() {
	r.list = r.list[1:]
	r.begin()
}

// begins reports whether the current text and one of the next texts of another list
// begin in the same way.
func (r *reading) begins(other *reading, next int) bool {
	if len(r.list) == 0 || len(other.list) <= next {
		return false
	}
	text := other.list[next].text
	n := min(len(r.rest), len(text))
	return n > 0 && r.list[0].role == other.list[next].role && r.rest[:n] == text[:n]
}

// both passes over what two texts have in common, if one begins with the other.
func both(a, b *reading) bool {
	n := min(len(a.rest), len(b.rest))
	if n == 0 || a.rest[:n] != b.rest[:n] {
		return false
	}
	for _, r := range []*reading{a, b} {
		if r.rest = strings.TrimSpace(r.rest[n:]); r.rest == "" {
			r.next()
		}
	}
	return true
}

// missing returns what is in one list and not in another.
func missing(want, got []passage) []passage {
	left := make(map[string]int)
	for _, g := range got {
		left[g.text]++
	}
	var list []passage
	for _, w := range want {
		if left[w.text]--; left[w.text] < 0 {
			list = append(list, w)
		}
	}
	return list
}
