package index

import (
	"cmp"
	"context"
	"database/sql"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/index/room"
	"github.com/coppice-dev/coppice/store"
)

const (
	defaultHits    = 20
	defaultNewest  = 1_000
	newestPhrases  = 400 // is defaultNewest for phrases: each costs several times as much to find
	defaultSnippet = 160

	// maxFacets is the number of sessions, or directories, up to which the full-text table
	// narrows a search. For more, each match is checked.
	maxFacets = 200
	// maxLooked bounds how many matches are checked when few of them are in the wanted
	// sessions or on the wanted branch.
	maxLooked = 6_000
)

// kindWeight is the factor of a score for each kind. People look for what was said more often
// than for a tool's output.
var kindWeight = []float64{
	1.0, // text
	0.8, // thinking
	0.9, // call
	0.7, // output
	1.0, // summary
	1.5, // title
	1.2, // tag
	1.2, // label
	1.0, // draft
	1.2, // note
}

// Search finds text. It returns a *QueryError if the query cannot be understood.
func (ix *Index) Search(ctx context.Context, o SearchOptions) (*Results, error) {
	q, err := o.query(time.Now())
	if err != nil {
		return nil, err
	}
	var res *Results
	err = ix.read(ctx, "search", func(db room.Tables) error {
		s := &search{ctx: ctx, ix: ix, db: db, o: o, f: q.filters, shapes: make(map[int64]*shape)}
		res, err = s.run(q)
		return err
	})
	return res, err
}

// query combines the options and the query.
func (o *SearchOptions) query(now time.Time) (*query, error) {
	q, err := parseQuery(o.Query, now, o.Elsewhere)
	if err != nil {
		return nil, err
	}
	f := &q.filters
	for _, k := range o.Kinds {
		if kindNumber(k) < 0 {
			return nil, &store.Error{Op: "search", Kind: store.ErrInvalid, Err: unknownKind(k)}
		}
	}
	f.tags = append(f.tags, o.Tags...)
	if o.CWD != "" {
		f.cwd = append(f.cwd, o.CWD)
	}
	if o.Agent != "" {
		f.agents = append(f.agents, o.Agent)
	}
	if o.Project != "" {
		f.projects = append(f.projects, o.Project)
	}
	if o.File != "" {
		f.files = append(f.files, o.File)
	}
	if o.Session != "" {
		f.session = append(f.session, o.Session)
	}
	if o.Since.After(f.since) {
		f.since = o.Since
	}
	if !o.Until.IsZero() && (f.until.IsZero() || o.Until.Before(f.until)) {
		f.until = o.Until
	}
	if o.Branch == LiveBranch {
		f.branch = LiveBranch
	}
	o.Order = cmp.Or(o.Order, ByRank)
	o.Limit = min(cmp.Or(max(o.Limit, 0), defaultHits), maxRows)
	o.Newest = max(o.Newest, 0)
	o.SnippetLen = cmp.Or(o.SnippetLen, defaultSnippet)
	o.Offset = min(max(o.Offset, 0), maxRows)
	if q.expr == nil && !f.any(o) {
		return nil, &QueryError{Query: o.Query, Reason: "the query has nothing to search for"}
	}
	return q, nil
}

// any reports whether something narrows the search.
func (f *filters) any(o *SearchOptions) bool {
	n := len(f.kinds) + len(f.roles) + len(f.tools) + len(f.models) + len(f.tags) + len(f.cwd) + len(f.session) + len(f.agents) + len(f.projects) + len(f.files) +
		len(f.notKinds) + len(f.notRoles) + len(f.notTools) + len(f.notMod) +
		len(o.Kinds) + len(o.Roles) + len(o.Tools) + len(o.Models)
	return n > 0 || !f.since.IsZero() || !f.until.IsZero() || f.branch == LiveBranch
}

// search is one Search.
type search struct {
	ctx    context.Context
	ix     *Index
	db     room.Tables
	o      SearchOptions
	f      filters
	m      *matcher
	shapes map[int64]*shape // by session

	match            string   // see room.Match
	wanted, unwanted []string // facets
	// A condition on the sessions of documents, or "", and its parameters.
	pass     string
	passArgs []any
	from, to int64   // the range of documents, both included
	partly   bool    // a room looked into the newest texts only, so older matches may be missing
	docs     float64 // at most, in the wanted sessions
	expected float64 // roughly how many match
}

// candidate is a document that matches.
type candidate struct {
	id, session, n int64 // n is the number of its entry in the session
	kind           int
	elsewhere      bool // see markElsewhere
	length         float64
	tf             []byte
	score          float64
	origin
}

// compare orders matches that are equal otherwise: the newest first. It goes by what they are and
// not by their numbers, which depend on what came into the index first.
func (c *candidate) compare(d *candidate) int {
	return cmp.Or(cmp.Compare(d.time, c.time), cmp.Compare(d.entry, c.entry), cmp.Compare(c.part, d.part), cmp.Compare(c.sid, d.sid))
}

func (s *search) run(q *query) (*Results, error) {
	if possible, err := s.narrow(); err != nil {
		return nil, err
	} else if !possible {
		return s.nothing(&Results{})
	}
	// In the order of time all forms of a word are equal.
	found, bounded, err := s.rank(q.expr, s.o.Order == ByTime)
	if err != nil {
		return nil, err
	}
	if s.m.varied && !s.m.forms && !bounded && len(found) < s.most() {
		if found, bounded, err = s.addForms(q.expr, found); err != nil {
			return nil, err
		}
	}
	res := &Results{Bounded: bounded || s.m.bounded}
	if len(found) == 0 && s.partly {
		return s.nothing(res) // it was work enough
	}
	if len(found) == 0 {
		if found, bounded, err = s.across(q.expr); err != nil {
			return nil, err
		}
		if len(found) > 0 {
			res.Across, res.Bounded = true, bounded || s.m.bounded
		}
	}
	if len(found) == 0 {
		if res.NotFilters = q.notFilters; len(res.NotFilters) > 0 {
			return s.nothing(res) // an unknown filter is the mistake, not the spelling
		}
		if res.DidYouMean, err = s.suggest(q); err != nil {
			return nil, err
		}
		return s.nothing(res)
	}
	res.Hits, res.Matches, err = s.hits(found)
	return res, err
}

// nothing completes results without hits with the filters that no session passes.
func (s *search) nothing(res *Results) (_ *Results, err error) {
	f := s.f
	f.tools, f.models = slices.Concat(f.tools, s.o.Tools), slices.Concat(f.models, s.o.Models)
	res.Unknown, err = f.unknown(s.ctx, s.db)
	return res, err
}

// rank returns the matches of a query, the best first, or the newest first if that is wanted,
// and whether there are more. forms allows other forms of a word.
func (s *search) rank(expr node, forms bool) (found []candidate, bounded bool, err error) {
	if s.m, err = newMatcher(s.ctx, s.db); err != nil {
		return nil, false, err
	}
	s.m.forms = forms
	words, err := s.m.node(expr, true)
	if err != nil {
		return nil, false, err
	}
	s.combine(words)
	found, bounded, err = s.candidates()
	slices.SortStableFunc(found, func(a, b candidate) int { // in the order of time there are no scores
		return cmp.Or(cmp.Compare(b.score, a.score), a.compare(&b))
	})
	return found, bounded, err
}

// addForms adds the texts that have a word only in another form. They come after the others,
// so their scores are reduced.
func (s *search) addForms(expr node, found []candidate) ([]candidate, bool, error) {
	more, bounded, err := s.rank(expr, true)
	if err != nil {
		return nil, false, err
	}
	below := math.Inf(1)
	have := make(map[int64]bool, len(found))
	for _, c := range found {
		have[c.id], below = true, min(below, c.score)
	}
	for _, c := range more {
		if have[c.id] {
			continue
		}
		if len(have) > 0 {
			c.score = below * c.score / (c.score + 1)
		}
		found = append(found, c)
	}
	return found, bounded, nil
}

// most is how many matches are ranked. In the order of time fewer would suffice, if some of
// them were not copies of others.
func (s *search) most() int {
	newest := s.o.Newest
	switch {
	case newest > 0:
	case strings.Contains(s.match, inBody):
		newest = newestPhrases
	default:
		newest = defaultNewest
	}
	return max(newest, s.o.Offset+s.o.Limit)
}

// candidates returns the newest matches with their scores, and whether there are
// more.
func (s *search) candidates() (found []candidate, bounded bool, err error) {
	if found, bounded, err = s.newest(); err == nil {
		err = s.findOrigins(found)
	}
	if err != nil || s.o.Order == ByTime {
		return found, bounded, err
	}
	return found, bounded, s.score(found)
}

// score gives matches their scores. They come newest first.
func (s *search) score(found []candidate) error {
	if err := s.findOptional(found); err != nil {
		return err
	}
	// Ages are counted from the newest match and not from now: the same question to the same
	// texts has the same answer tomorrow.
	newest := int64(math.MinInt64)
	for i := range found {
		newest = max(newest, found[i].time)
	}
	for i := range found {
		c := &found[i]
		c.score = s.m.score(c.id, c.length, c.tf) * kindWeight[c.kind] * recency(float64(newest-c.time)/dayMillis)
	}
	return nil
}

// newest returns the newest matches, and whether there are more.
func (s *search) newest() (found []candidate, bounded bool, err error) {
	wanted, looked := s.most(), 0
	for c, err := range s.matches(wanted+1, &bounded) {
		if err != nil {
			return nil, false, err
		}
		if len(found) == wanted || looked >= max(maxLooked, wanted) {
			return found, true, nil
		}
		looked++
		pass, err := s.isWanted(c.candidate, c.inSession)
		if err != nil {
			return nil, false, err
		}
		if pass {
			found = append(found, c.candidate)
		}
	}
	return found, bounded, nil
}

// isWanted reports whether a match counts: it is in a wanted session (inSession says so) and on
// a wanted branch, and is neither a repetition nor a draft of a message.
func (s *search) isWanted(c candidate, inSession bool) (bool, error) {
	if c.elsewhere {
		return false, nil
	}
	if inSession && kinds[c.kind] == KindDraft {
		said, err := s.isSaid(c)
		if err != nil || said {
			return false, err
		}
	}
	if !inSession || s.f.branch != LiveBranch {
		return inSession, nil
	}
	sh, err := s.shape(c.session)
	if err != nil {
		return false, err
	}
	return s.isLive(sh, c)
}

// isLive reports whether a match is on the path of the leaf, or is about the session as a
// whole, such as its name, which holds on every branch.
func (s *search) isLive(sh *shape, c candidate) (bool, error) {
	if sh.isLive(c.n) {
		return true, nil
	}
	var class entryClass
	_, err := scanRow(s.db.QueryRowContext(s.ctx, `SELECT class FROM entries WHERE session = ? AND n = ?`, c.session, c.n), []any{&class})
	return class == classRemark, err
}

// maxDraftRun is how many entries after a draft are looked at for the answer that it is a
// piece of. It is nearly always among the next few dozen.
const maxDraftRun = 4096

// isSaid reports whether a draft or a queued prompt has become a message.
func (s *search) isSaid(c candidate) (bool, error) {
	var role int64
	var byUser, said bool
	err := s.db.QueryRowContext(s.ctx, `SELECT d.role, r.name = 'user' FROM docs d JOIN names r ON r.id = d.role WHERE d.id = ?`, c.id).Scan(&role, &byUser)
	if err != nil {
		return false, err
	}
	if !byUser {
		return s.isComplete(c)
	}
	// A queued prompt becomes the user's next message.
	err = s.db.QueryRowContext(s.ctx, `SELECT EXISTS (SELECT 1 FROM fts f CROSS JOIN docs d ON d.id = f.rowid
		WHERE f.fts MATCH ? AND f.rowid > ? AND d.entry > ? AND d.kind = ? AND d.role = ?)`,
		room.Match{Query: ofSession(c.session).Query, From: c.id + 1}, c.id, c.n, kindNumber(KindText), role).Scan(&said)
	return said, err
}

// isComplete reports whether the answer that a draft is a piece of is in the log: a
// message comes after it, with nothing but drafts and notes between them.
func (s *search) isComplete(c candidate) (bool, error) {
	rows, err := s.db.QueryContext(s.ctx, `SELECT n, parent, class FROM entries WHERE session = ? AND n > ? ORDER BY n LIMIT ?`, c.session, c.n, maxDraftRun)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	below := map[int64]bool{c.n: true}
	for rows.Next() {
		var n, parent, class int64
		if err := rows.Scan(&n, &parent, &class); err != nil {
			return false, err
		}
		if !below[parent] {
			continue
		}
		if entryClass(class) == classEntry {
			return true, nil
		}
		below[n] = true
	}
	return false, rows.Err()
}

// match is a document that matches, and whether it is in a wanted session.
type match struct {
	candidate
	inSession bool
}

// matches goes through the matches, the newest first. It asks for some at a time, because a
// room may read an answer as a whole. If a room looks at a part only, it sets bounded.
func (s *search) matches(some int, bounded *bool) iter.Seq2[match, error] {
	pass := cmp.Or(s.pass, "1 = 1")
	// A plain JOIN might begin with the other table.
	query := `SELECT f.rowid, d.session, d.entry, d.kind, d.elsewhere > 0, d.len, d.tf, d.late, ` + pass + ` FROM fts f CROSS JOIN docs d ON d.id = f.rowid
		WHERE f.fts MATCH ? AND f.rowid BETWEEN ? AND ? ORDER BY f.rowid DESC LIMIT ?`
	return func(yield func(match, error) bool) {
		for from, to := s.from, s.to; from <= to; {
			m := room.Match{Query: s.match, From: from, To: to, Newest: some, Few: s.expected <= float64(some), Partly: &s.partly}
			n, last, err := s.someMatches(query, append(slices.Clone(s.passArgs), m, from, to, some), yield)
			*bounded = *bounded || s.partly
			if err != nil {
				yield(match{}, err)
			}
			if err != nil || n < some {
				return
			}
			to = last - 1
		}
	}
}

// someMatches hands on the rows of a query, and returns how many there were and the last id. If
// the receiver has enough, there were none.
func (s *search) someMatches(query string, args []any, yield func(match, error) bool) (n int, last int64, err error) {
	rows, err := s.db.QueryContext(s.ctx, query, args...)
	if err != nil {
		return 0, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var c match
		var late int64
		if err := rows.Scan(&c.id, &c.session, &c.n, &c.kind, &c.elsewhere, &c.length, &c.tf, &late, &c.inSession); err != nil {
			return 0, 0, err
		}
		c.time = (c.id>>docSeqBits - late) * 1000
		if !yield(c, nil) {
			return 0, 0, nil
		}
		n, last = n+1, c.id
	}
	return n, last, rows.Err()
}

// findOptional finds out which matches have which optional terms.
func (s *search) findOptional(found []candidate) error {
	if len(found) == 0 {
		return nil
	}
	newest, oldest := found[0].id, found[len(found)-1].id
	for _, l := range s.m.terms {
		if !l.optional {
			continue
		}
		rows, err := s.db.QueryContext(s.ctx, `SELECT rowid FROM fts WHERE fts MATCH ? AND rowid BETWEEN ? AND ?`,
			room.Match{Query: s.match + " AND " + l.match, From: oldest, To: newest}, oldest, newest)
		if err != nil {
			return err
		}
		ids, err := scanColumn[int64](rows)
		if err != nil {
			return err
		}
		l.has = make(map[int64]bool, len(ids))
		for _, id := range ids {
			l.has[id] = true
		}
	}
	return nil
}

// shapeRow is what the row of a session says of its tree.
type shapeRow struct{ next, leaf, breaks int64 }

// straight returns the tree of a session without breaks.
func (r shapeRow) straight() *shape {
	return &shape{leaf: r.leaf, live: []span{{0, r.leaf}}, runs: []run{{first: 0, last: r.next - 1, parent: -1}}}
}

// shape returns the tree of a session.
func (s *search) shape(id int64) (*shape, error) {
	if sh, ok := s.shapes[id]; ok {
		return sh, nil
	}
	var r shapeRow
	err := s.db.QueryRowContext(s.ctx, `SELECT next, leaf, breaks FROM sessions WHERE id = ?`, id).Scan(&r.next, &r.leaf, &r.breaks)
	if err != nil && err != sql.ErrNoRows { //nolint:errorlint // it comes unwrapped
		return nil, err
	}
	sh := r.straight()
	if r.breaks > 0 {
		if sh, err = loadShape(s.ctx, s.db, id, r.next, r.leaf); err != nil {
			return nil, err
		}
	}
	s.shapes[id] = sh
	return sh, nil
}
