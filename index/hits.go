package index

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// location is where the text of a hit is.
type location struct {
	part    int
	pos     store.Pos
	created int64 // when its session was created
	session int64
	sid     string
}

// older reports whether one session was created before another.
func (p location) older(q location) bool {
	return cmp.Or(cmp.Compare(p.created, q.created), cmp.Compare(p.sid, q.sid)) < 0
}

// hits returns the hits that the caller wants to see, and how many there are in all.
func (s *search) hits(found []candidate) (hits []Hit, total int, err error) {
	groups := group(found)
	var places []location
	if total = len(groups); s.o.BySession {
		if hits, places, err = s.locate(groups); err == nil {
			hits, places = firstOfEach(hits, places)
			total = len(hits)
			hits, places = page(hits, &s.o), page(places, &s.o)
		}
	} else {
		hits, places, err = s.locate(page(groups, &s.o))
	}
	if err != nil {
		return nil, 0, err
	}
	if s.o.SnippetLen > 0 {
		s.addSnippets(hits, places)
	}
	return hits, total, nil
}

// page returns the part of a list that the caller wants to see.
func page[T any](all []T, o *SearchOptions) []T {
	from := min(o.Offset, len(all))
	return all[from:min(from+o.Limit, len(all))]
}

// firstOfEach keeps the first hit of each conversation, which counts the others.
func firstOfEach(hits []Hit, places []location) (first []Hit, at []location) {
	of := make(map[string]int)
	for i := range hits {
		n, ok := of[hits[i].Session]
		if !ok {
			n = len(first)
			of[hits[i].Session] = n
			first, at = append(first, hits[i]), append(at, places[i])
		}
		first[n].Hits++
		if tool := hits[i].Tool; tool != "" && !slices.Contains(first[n].Tools, tool) {
			first[n].Tools = append(first[n].Tools, tool)
		}
	}
	return first, at
}

// origin says which text a match is, whatever number it has in the index. Copies have the same, but
// for the session. An id alone is not enough: some writers make ids that are unique only within a
// session.
type origin struct {
	time  int64 // of the entry, in milliseconds; the second of it suffices if no other match has it
	entry string
	part  int
	sid   string // the session
}

// original is what a text and its copies have in common.
type original struct {
	origin
	kind   int
	length float64
}

func (c *candidate) original() original {
	of := original{c.origin, c.kind, c.length}
	of.sid = ""
	return of
}

// group merges the matches that a fork repeats into one hit. The groups keep the order of
// their first matches.
func group(found []candidate) [][]candidate {
	groups := make([][]candidate, 0, len(found))
	seen := make(map[original]int, len(found))
	for i := range found {
		of := found[i].original()
		if at, copied := seen[of]; copied {
			groups[at] = append(groups[at], found[i])
			continue
		}
		seen[of] = len(groups)
		groups = append(groups, found[i:i+1:i+1])
	}
	return groups
}

// findOrigins reads which texts the matches are that share their second with others. Of all others,
// the second suffices: they are no copies, and their order is clear.
func (s *search) findOrigins(found []candidate) error {
	alike := make(map[int64]int, len(found))
	for i := range found {
		alike[found[i].time]++
	}
	var ids []int64
	at := make(map[int64]*candidate)
	for i := range found {
		if alike[found[i].time] > 1 {
			ids, at[found[i].id] = append(ids, found[i].id), &found[i]
		}
	}
	if len(ids) == 0 {
		return nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	rows, err := s.db.QueryContext(s.ctx, `SELECT d.id, e.id, d.part, e.time, s.sid FROM json_each(?) j
		CROSS JOIN docs d ON d.id = j.value CROSS JOIN entries e ON e.session = d.session AND e.n = d.entry CROSS JOIN sessions s ON s.id = d.session`, string(list))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var entry any
		var of origin
		if err := rows.Scan(&id, &entry, &of.part, &of.time, &of.sid); err != nil {
			return err
		}
		if of.entry = idOf(entry); of.time == 0 { // the entry has none
			of.time = at[id].time
		}
		at[id].origin = of
	}
	return rows.Err()
}

// locate reads the rows of the matches that become hits.
func (s *search) locate(groups [][]candidate) (hits []Hit, places []location, err error) {
	all, err := s.readHits(slices.Concat(groups...))
	if err != nil {
		return nil, nil, err
	}
	for _, copies := range groups {
		n := len(hits)
		for _, c := range copies {
			found, ok := all[c.id]
			if !ok {
				continue // it was deleted since
			}
			if err := s.findBranch(&found.hit, c); err != nil {
				return nil, nil, err
			}
			if len(hits) == n {
				hits, places = append(hits, found.hit), append(places, found.where)
			} else {
				hits[n].collapse(&places[n], found.hit, found.where)
			}
		}
	}
	return hits, places, nil
}

// collapse merges a copy into a hit. The one on a live path represents both, or
// else the one of the older session.
func (h *Hit) collapse(where *location, other Hit, there location) {
	better := other.Live && !h.Live || other.Live == h.Live && there.older(*where)
	if better {
		other.Also, h.Also = h.Also, nil
		*h, other = other, *h
		*where = there
	}
	h.Also = append(h.Also, other.Session)
	slices.Sort(h.Also)
	h.Also = slices.Compact(h.Also)
}

// located is a hit and where its text is.
type located struct {
	hit   Hit
	where location
}

// readHits reads the rows of matches, and the shapes of their sessions.
func (s *search) readHits(found []candidate) (map[int64]*located, error) {
	ids, byID := make([]int64, len(found)), make(map[int64]*candidate, len(found))
	for i := range found {
		ids[i], byID[found[i].id] = found[i].id, &found[i]
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(s.ctx, `SELECT d.id, coalesce(c.sid, s.sid), s.name, coalesce(c.title, s.title), coalesce(c.cwd, s.cwd), coalesce(c.agent, s.agent), coalesce(c.updated, s.updated), s.leaf_id, s.created, s.id, s.sid, e.id, e.pos, e.time, d.part, d.kind,
			coalesce(r.name, ''), coalesce(t.name, ''), coalesce(m.name, ''), s.next, s.leaf, s.breaks
		FROM json_each(?) j CROSS JOIN docs d ON d.id = j.value JOIN sessions s ON s.id = d.session LEFT JOIN sessions c ON c.id = s.chain AND s.chain <> 0 JOIN entries e ON e.session = d.session AND e.n = d.entry
			LEFT JOIN names r ON r.id = d.role LEFT JOIN names t ON t.id = d.tool LEFT JOIN names m ON m.id = d.model
		WHERE s.name IS NOT NULL`, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make(map[int64]*located, len(found))
	for rows.Next() {
		var l located
		var sh shapeRow
		var entry any
		var id, ms, kind, updated int64
		h, where := &l.hit, &l.where
		if err := rows.Scan(&id, &h.Session, &h.Name, &h.Title, &h.CWD, &h.Agent, &updated, &h.Leaf, &where.created, &where.session, &where.sid, &entry, &where.pos, &ms, &where.part, &kind,
			&h.Role, &h.Tool, &h.Model, &sh.next, &sh.leaf, &sh.breaks); err != nil {
			return nil, err
		}
		h.Entry, h.Kind, h.Score, h.Updated = idOf(entry), kinds[kind], byID[id].score, timeOf(updated)
		if h.Time = timeOf(ms); ms == 0 {
			h.Time = timeOf(byID[id].time)
		}
		all[id] = &l
		if _, known := s.shapes[where.session]; !known && sh.breaks == 0 {
			s.shapes[where.session] = sh.straight()
		}
	}
	return all, rows.Err()
}

// findBranch sets whether a hit is on the live branch, or else the leaf of its branch.
func (s *search) findBranch(h *Hit, c candidate) error {
	sh, err := s.shape(c.session)
	if err != nil {
		return err
	}
	if h.Live, err = s.isLive(sh, c); err != nil || h.Live {
		return err // the leaf is the session's
	}
	var id any
	err = s.db.QueryRowContext(s.ctx, `SELECT id FROM entries WHERE session = ? AND n = ?`, c.session, sh.leafOf(c.n)).Scan(&id)
	h.Leaf = idOf(id)
	return err
}

// addSnippets reads the text of the hits from their logs. A hit whose text cannot be read, or
// has changed, gets no snippet.
func (s *search) addSnippets(hits []Hit, places []location) {
	s.readTexts(hits, places, func(i int, text string) {
		hits[i].Snippet, hits[i].Highlights = s.m.snippet(text, s.o.SnippetLen)
	})
}

// logsAtOnce is how many logs are read at the same time: a store may be far away.
const logsAtOnce = 8

// readTexts opens each log once, and calls use with the text of each hit in order.
func (s *search) readTexts(hits []Hit, places []location, use func(i int, text string)) {
	of := make(map[string][]int) // the hits of each log
	for i := range hits {
		of[hits[i].Name] = append(of[hits[i].Name], i)
	}
	texts := make([]*string, len(hits))
	var all sync.WaitGroup
	turn := make(chan struct{}, logsAtOnce)
	for name, list := range of {
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			log, err := s.ix.store.Open(s.ctx, name)
			if err != nil {
				return
			}
			defer log.Close()
			for _, i := range list {
				if text, ok := s.text(log, &hits[i], places[i]); ok {
					texts[i] = &text
				}
			}
		})
	}
	all.Wait()
	for i, text := range texts {
		if text != nil {
			use(i, *text)
		}
	}
}

// text reads a hit's text.
func (s *search) text(log store.Log, h *Hit, where location) (string, bool) {
	for line, err := range log.Forward(s.ctx, where.pos) {
		var e session.Entry
		if err != nil || e.UnmarshalJSON(line.Data) != nil || bounded(e.ID) != h.Entry {
			return "", false
		}
		h.Entry = e.ID
		parts := partsOf(s.ctx, s.ix.store.Blobs(), &e, s.ix.opts.MaxText)
		if where.part >= len(parts) || parts[where.part].kind != h.Kind {
			return "", false
		}
		return canonical(parts[where.part].text), true
	}
	return "", false
}

// snippet returns the piece of a text that has most of the wanted terms, on one line, and
// where they are in it.
func (m *matcher) snippet(text string, length int) (string, []Range) {
	marks := m.marks(text)
	from, to := max(0, bestStart(marks, length)-length/4), len(text)
	if to-from > length {
		from = wordStart(text, from)
		to = wordEnd(text, from, min(from+length, to))
	} else { // the end of the text: show more of what is before it
		from = wordStart(text, max(0, to-length))
	}
	var b strings.Builder
	if from > 0 {
		b.WriteString("…")
	}
	var ranges []Range
	at := from
	for _, mark := range marks {
		if mark.Start < at || mark.End > to {
			continue
		}
		writeFlat(&b, text[at:mark.Start])
		start := b.Len()
		writeFlat(&b, text[mark.Start:mark.End])
		ranges = append(ranges, Range{start, b.Len()})
		at = mark.End
	}
	writeFlat(&b, text[at:to])
	if to < len(text) {
		b.WriteString("…")
	}
	return b.String(), ranges
}

// marks returns where a text has the wanted terms, in order and without overlap.
func (m *matcher) marks(text string) []Range {
	var parts, wholes []token
	scan(text, func(t token) {
		if t.whole {
			wholes = append(wholes, t)
		} else {
			parts = append(parts, t)
		}
	})
	var marks []Range
	for _, l := range m.terms {
		for i := range parts {
			if l.option == "" && l.isAt(parts[i:]) {
				marks = append(marks, l.mark(parts[i:]))
			}
		}
		want := l.term.whole
		switch {
		case l.option != "":
			want = l.option
		case len(l.tokens) == 1:
			want = l.tokens[0]
		}
		for _, t := range wholes {
			if t.text == want || l.prefix && want != "" && strings.HasPrefix(t.text, want) {
				marks = append(marks, Range{t.start, t.end})
			}
		}
	}
	return mergeRanges(marks)
}

// isAt reports whether the tokens begin with the term's.
func (l *leaf) isAt(tokens []token) bool {
	if len(tokens) < len(l.tokens) {
		return false
	}
	for i, want := range l.tokens {
		have := tokens[i].text
		if have != want && !slices.Contains(l.forms, have) && !(l.prefix && i == len(l.tokens)-1 && strings.HasPrefix(have, want)) {
			return false
		}
	}
	return true
}

// mark returns what to highlight where the tokens begin with the term's. If the token is a
// pair of characters and only one was searched for, it is that one.
func (l *leaf) mark(tokens []token) Range {
	r := Range{tokens[0].start, tokens[len(l.tokens)-1].end}
	if first, size := utf8.DecodeRuneInString(l.tokens[0]); len(l.tokens) == 1 && size == len(l.tokens[0]) && classOf(first) == dense {
		r.End = r.Start + size
	}
	return r
}

func mergeRanges(ranges []Range) []Range {
	slices.SortFunc(ranges, func(a, b Range) int { return a.Start - b.Start })
	var merged []Range
	for _, r := range ranges {
		if n := len(merged); n > 0 && r.Start < merged[n-1].End {
			merged[n-1].End = max(merged[n-1].End, r.End)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// bestStart returns the beginning of the mark that most other marks follow within a length.
func bestStart(marks []Range, length int) int {
	best, most := 0, 0
	for i, last := 0, 0; i < len(marks); i++ {
		for last < len(marks) && marks[last].End <= marks[i].Start+length {
			last++
		}
		if n := last - i; n > most {
			best, most = marks[i].Start, n
		}
	}
	return best
}

// wordStart moves an offset to the beginning of a word nearby.
func wordStart(text string, at int) int {
	const near = 20
	for i := at; i > 0 && i > at-near; i-- {
		if text[i-1] == ' ' || text[i-1] == '\n' {
			return i
		}
	}
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// wordEnd moves an offset to the end of a word nearby.
func wordEnd(text string, from, at int) int {
	const near = 20
	if at == len(text) {
		return at
	}
	for i := at; i > from && i > at-near; i-- {
		if text[i] == ' ' || text[i] == '\n' {
			return i
		}
	}
	for at > from && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// writeFlat writes a text on one line.
func writeFlat(b *strings.Builder, text string) { b.WriteString(plain.Flat(text)) }
