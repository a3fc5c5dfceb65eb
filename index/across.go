package index

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// # Words in different texts
//
// If no text has all parts of a query, a conversation may have them in several: what was asked
// for in one message was often named in another. Such a conversation is found by one text for
// each part, the newest that has it.
//
// The work is bounded. The rarest part is looked for first, in the newest conversations; the
// others only in those that have all parts before them.

// maxAcross is the number of conversations that are searched for the other parts of a query.
const maxAcross = 200

// acrossMatches is how many matches are asked for at a time.
const acrossMatches = 1_000

// acrossPart is a part of a query that one text must have.
type acrossPart struct {
	piece
	terms []*leaf
}

// across returns texts of the conversations that have all parts of a query in different texts,
// and whether there may be more such conversations. There are none if the query has one part.
func (s *search) across(expr node) (found []candidate, bounded bool, err error) {
	query, ok := expr.(and)
	if !ok || len(query.all) < 2 {
		return nil, false, nil
	}
	parts, err := s.acrossParts(query)
	if err != nil {
		return nil, false, err
	}
	whole, wanted := s.m, s.wanted
	defer func() { s.m, s.wanted = whole, wanted }()
	var texts map[int64][]candidate // by conversation
	most := maxAcross
	for i, part := range parts {
		if i > 0 {
			sessions, err := s.sessionsOf(texts)
			if err != nil {
				return nil, false, err
			}
			s.wanted = append(slices.Clip(wanted), sessions)
		}
		m := *whole
		m.terms, s.m = part.terms, &m
		s.combine(part.piece)
		more, cut, err := s.newestOfEach(most)
		if err != nil || len(more) == 0 {
			return nil, false, err
		}
		bounded = bounded || cut || i == 0 && len(more) == most
		for id := range more {
			more[id] = append(slices.Clip(texts[id]), more[id]...)
		}
		texts, most = more, len(more)
	}
	return s.arrange(texts), bounded, nil
}

// acrossParts returns the parts of a query, the rarest first. It makes a matcher that has the
// terms of all of them, to show what matched.
func (s *search) acrossParts(query and) ([]acrossPart, error) {
	m, err := newMatcher(s.ctx, s.db)
	if err != nil {
		return nil, err
	}
	m.forms, s.m = true, m
	parts := make([]acrossPart, len(query.all))
	for i, n := range query.all {
		before := len(m.terms)
		p, err := m.node(and{all: []node{n}, not: query.not}, true)
		if err != nil {
			return nil, err
		}
		parts[i] = acrossPart{p, m.terms[before:]}
	}
	slices.SortStableFunc(parts, func(a, b acrossPart) int { return cmp.Compare(a.df, b.df) })
	return parts, nil
}

// newestOfEach returns the newest match of each conversation, of so many conversations at most,
// with its score; and whether there were too many matches to look at all.
func (s *search) newestOfEach(most int) (found map[int64][]candidate, bounded bool, err error) {
	found = make(map[int64][]candidate)
	chains := make(map[int64]int64) // the conversations of sessions
	var order []candidate
	looked := 0
	for c, err := range s.matches(acrossMatches, &bounded) {
		if err != nil {
			return nil, false, err
		}
		if looked++; looked > maxLooked {
			bounded = true
			break
		}
		id, ok := chains[c.session]
		if !ok {
			if err := s.db.QueryRowContext(s.ctx, `SELECT CASE chain WHEN 0 THEN id ELSE chain END FROM sessions WHERE id = ?`, c.session).Scan(&id); err != nil {
				return nil, false, err
			}
			chains[c.session] = id
		}
		if found[id] != nil {
			continue
		}
		pass, err := s.isWanted(c.candidate, c.inSession)
		if err != nil {
			return nil, false, err
		}
		if pass {
			found[id], order = []candidate{c.candidate}, append(order, c.candidate)
		}
		if len(found) == most {
			break
		}
	}
	err = s.findOrigins(order)
	if err == nil {
		err = s.score(order)
	}
	if err != nil {
		return nil, false, err
	}
	for _, c := range order {
		found[chains[c.session]] = []candidate{c}
	}
	return found, bounded, nil
}

// sessionsOf returns the facets of all sessions of conversations.
func (s *search) sessionsOf(texts map[int64][]candidate) (string, error) {
	ids := make([]int64, 0, len(texts))
	for id := range texts {
		ids = append(ids, id)
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return "", err
	}
	rows, err := s.db.QueryContext(s.ctx, `SELECT value FROM json_each(?1) UNION SELECT s.id FROM json_each(?1) j CROSS JOIN sessions s ON s.chain = j.value AND s.chain <> 0`, string(list))
	if err != nil {
		return "", err
	}
	all, err := scanColumn[int64](rows)
	facets := make([]string, len(all))
	for i, id := range all {
		facets[i] = quote(facet('s', id))
	}
	return "(" + strings.Join(facets, " OR ") + ")", err
}

// arrange returns the texts in the wanted order: conversations by the sum of their scores, or
// all texts by time. A text that has several parts comes once.
func (s *search) arrange(texts map[int64][]candidate) (found []candidate) {
	of := make(map[int64]*candidate) // the newest text of each one's conversation
	for _, list := range texts {
		sum, newest := 0.0, &list[0]
		for i := range list {
			sum += list[i].score
			if list[i].compare(newest) < 0 {
				newest = &list[i]
			}
		}
		for _, c := range list {
			if _, twice := of[c.id]; !twice {
				of[c.id], c.score = newest, sum
				found = append(found, c)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int {
		if s.o.Order == ByTime {
			return a.compare(&b)
		}
		return cmp.Or(cmp.Compare(b.score, a.score), of[a.id].compare(of[b.id]), a.compare(&b))
	})
	return found
}
