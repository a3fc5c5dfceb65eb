package index

import (
	"math"
	"slices"
	"strings"
)

// narrow turns the filters into FTS5's language. It reports whether anything can match at
// all.
func (s *search) narrow() (possible bool, err error) {
	o, f := &s.o, &s.f
	if err := s.checkRoles(); err != nil {
		return false, err
	}
	wanted, unwanted := []string{}, []string{}
	s.docs = math.Inf(1)
	for _, filter := range []struct {
		letter         byte
		written, given []string // in the query, and by the caller
		not            []string
	}{
		{'k', f.kinds, kindNames(o.Kinds), f.notKinds},
		{'r', f.roles, o.Roles, f.notRoles},
		{'t', f.tools, o.Tools, f.notTools},
		{'m', f.models, o.Models, f.notMod},
	} {
		for _, list := range [][]string{filter.written, filter.given} {
			if len(list) == 0 {
				continue
			}
			facets, err := s.facets(filter.letter, list)
			if err != nil || len(facets) == 0 {
				return false, err
			}
			wanted = append(wanted, "("+strings.Join(facets, " OR ")+")")
		}
		facets, err := s.facets(filter.letter, filter.not)
		if err != nil {
			return false, err
		}
		unwanted = append(unwanted, facets...)
	}
	sessions, possible, err := s.sessions()
	if err != nil || !possible {
		return false, err
	}
	s.wanted, s.unwanted = append(wanted, sessions...), unwanted
	s.between()
	return true, nil
}

func kindNames(list []Kind) []string {
	var names []string
	for _, k := range list {
		names = append(names, string(k))
	}
	return names
}

// combine joins facets and words. Facets come first: they are rarer than the words that make
// a search slow.
func (s *search) combine(words piece) {
	wanted := slices.Clone(s.wanted)
	s.expected = s.m.docs
	if words.match != "" {
		wanted, s.expected = append(wanted, words.match), words.df
	}
	s.expected = min(s.expected, s.docs)
	if len(wanted) == 0 {
		wanted = []string{anything()}
	}
	s.match = "(" + strings.Join(wanted, " AND ") + ")"
	if len(s.unwanted) > 0 {
		s.match = "(" + s.match + " NOT (" + strings.Join(s.unwanted, " OR ") + "))"
	}
}

// between narrows the search to a range of time, which is a range of ids.
func (s *search) between() {
	s.from, s.to = 0, math.MaxInt64
	if !s.f.since.IsZero() {
		s.from = docID(s.f.since.UnixMilli()+999, 0)
	}
	if !s.f.until.IsZero() {
		s.to = docID(s.f.until.UnixMilli()+999, 0) - 1
	}
}

// facets returns the facets of names, quoted. Names that the index does not know
// give none.
func (s *search) facets(letter byte, list []string) ([]string, error) {
	var facets []string
	if letter == 'k' {
		for _, name := range list {
			facets = append(facets, quote(facet('k', kindNumber(Kind(name)))))
		}
		return facets, nil
	}
	for _, name := range list {
		cond, args := `lower(name) = lower(?1)`, []any{bounded(name)}
		if letter == 'm' { // people seldom know the date at the end of a model's name
			args = append(args, afterPrefix(name))
			cond = `lower(name) >= lower(?1) AND lower(name) < lower(?2) OR instr(lower(name), '/' || lower(?1)) > 0`
		}
		rows, err := s.db.QueryContext(s.ctx, `SELECT id FROM names WHERE `+cond, args...)
		if err != nil {
			return nil, err
		}
		ids, err := scanColumn[int64](rows)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			facets = append(facets, quote(facet(letter, id)))
		}
	}
	return facets, nil
}

// sessions narrows the search to the sessions that the filters name: by facets if they are
// few, or else by a condition on each match.
func (s *search) sessions() (facets []string, possible bool, err error) {
	where, args := s.sessionFilter()
	if facets, possible, err = s.makers(); err != nil || !possible {
		return nil, false, err
	}
	for _, by := range []struct {
		values []string
		cond   func(string) (string, []any)
	}{{s.f.cwd, underDir}, {s.f.projects, isProject}} {
		if len(by.values) == 0 {
			continue
		}
		dirs, err := s.directories(by.values, by.cond)
		if err != nil || len(dirs) == 0 {
			return nil, false, err
		}
		if len(dirs) <= maxFacets {
			facets = append(facets, "("+strings.Join(dirs, " OR ")+")")
		} else {
			where, args = anyOf(where, args, by.values, by.cond)
		}
	}
	if len(where) == 0 {
		return facets, true, nil
	}
	cond := ` FROM sessions s WHERE s.name IS NOT NULL AND ` + strings.Join(where, " AND ")
	rows, err := s.db.QueryContext(s.ctx, `SELECT s.id, s.docs`+cond+` LIMIT ?`, append(slices.Clone(args), maxFacets+1)...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	var ids []int64
	var docs float64
	for rows.Next() {
		var id, n int64
		if err := rows.Scan(&id, &n); err != nil {
			return nil, false, err
		}
		ids, docs = append(ids, id), docs+float64(n)
	}
	if err := rows.Err(); err != nil {
		return nil, false, err
	}
	if len(ids) > maxFacets {
		s.pass, s.passArgs = "d.session IN (SELECT s.id"+cond+")", args
		return facets, true, nil
	}
	s.docs = docs
	if len(ids) == 0 && len(s.f.session) > 0 {
		if err := s.checkSessions(); err != nil {
			return nil, false, err
		}
	}
	var sessions []string
	for _, id := range ids {
		sessions = append(sessions, quote(facet('s', id)))
	}
	return append(facets, "("+strings.Join(sessions, " OR ")+")"), len(ids) > 0, nil
}

// directories returns the facets of the sessions' directories that the filters name. If there
// are too many, it returns one more than allowed.
func (s *search) directories(values []string, cond func(string) (string, []any)) ([]string, error) {
	where, args := anyOf(nil, nil, values, cond)
	rows, err := s.db.QueryContext(s.ctx, `SELECT s.id FROM (SELECT id, name AS cwd FROM names) s WHERE `+where[0]+` LIMIT ?`,
		append(args, maxFacets+1)...)
	if err != nil {
		return nil, err
	}
	ids, err := scanColumn[int64](rows)
	var facets []string
	for _, id := range ids {
		facets = append(facets, quote(facet('c', id)))
	}
	return facets, err
}

// makers returns the facets of the agents that the filters name, and whether any of them
// exists.
func (s *search) makers() (facets []string, possible bool, err error) {
	for _, agent := range s.f.agents {
		id, err := makerID(s.ctx, s.db, agent)
		if err != nil {
			return nil, false, err
		}
		if id != noMaker {
			facets = append(facets, quote(facet('a', id)))
		}
	}
	if len(facets) == 0 {
		return nil, len(s.f.agents) == 0, nil
	}
	return []string{"(" + strings.Join(facets, " OR ") + ")"}, true, nil
}

// checkSessions returns an error if there are no sessions to search because of their names,
// not because of other filters.
func (s *search) checkSessions() error {
	where, args := s.named()
	var n int
	err := s.db.QueryRowContext(s.ctx, `SELECT count(*) FROM (SELECT 1 FROM sessions s WHERE `+where[0]+` LIMIT 1) few`, args...).Scan(&n)
	if err == nil && n == 0 {
		err = errNoSession(s.f.session)
	}
	return err
}

func (s *search) sessionFilter() (where []string, args []any) {
	where, args = s.named()
	for _, tag := range s.f.tags { // a chain has the tags of all its sessions
		cond, more := withBelow("tag", tag)
		has := "(SELECT session FROM tags WHERE " + cond + ")"
		where = append(where, "(s.id IN "+has+" OR s.chain <> 0 AND s.chain IN "+has+")")
		args = append(append(args, more...), more...)
	}
	return anyOf(where, args, s.f.files, func(file string) (string, []any) {
		query, args := touched(file)
		return "s.id IN (" + query + ") OR s.chain <> 0 AND s.chain IN (" + query + ")", append(args, args...)
	})
}

// named is the condition that a session has one of the names in the filters.
func (s *search) named() (where []string, args []any) {
	return anyOf(nil, nil, s.f.session, func(prefix string) (string, []any) {
		end := afterPrefix(prefix)
		named := []any{prefix, end, prefix, end, prefix, end, bounded(prefix), bounded(prefix)}
		const is = "s.name >= ? AND s.name < ? OR s.sid >= ? AND s.sid < ? OR s.tail >= ? AND s.tail < ? AND s.tail <> ''" +
			" OR s.key = ? AND s.key <> '' OR s.native = ? AND s.native <> ''"
		return is + " OR s.chain <> 0 AND s.chain IN (SELECT CASE s.part WHEN 2 THEN s.id ELSE s.chain END FROM sessions s WHERE " + is + ")",
			append(named, named...)
	})
}

// anyOf adds the condition that one of the values holds.
func anyOf(where []string, args []any, list []string, cond func(string) (string, []any)) ([]string, []any) {
	var conds []string
	for _, value := range list {
		c, a := cond(value)
		conds, args = append(conds, "("+c+")"), append(args, a...)
	}
	if len(conds) > 0 {
		where = append(where, "("+strings.Join(conds, " OR ")+")")
	}
	return where, args
}
