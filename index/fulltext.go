package index

import (
	"strconv"
	"strings"

	"github.com/coppice-dev/coppice/index/room"
)

// Facets are tokens that no text has, because of their underscore. A filter is a
// facet that a document must have, so the database looks for both at once.
func facet(letter byte, value int64) string {
	return "_" + string(letter) + strconv.FormatInt(value, 10)
}

// facetKey identifies a facet without spelling its token.
type facetKey struct {
	letter byte
	value  int64
}

// facets returns the vocabulary's numbers for the document's facets. known caches them.
func (d *docRow) facets(words *vocabulary, known map[facetKey]uint32) []uint32 {
	keys := [...]facetKey{
		{'s', d.session},
		{'k', kindNumber(d.kind)},
		{'r', d.role},
		{'t', d.tool},
		{'m', d.model},
		{'c', d.cwd},
		{'a', d.agent},
	}
	var list [len(keys)]uint32
	numbers := list[:0]
	for i, key := range keys {
		if i >= 2 && key.value == 0 {
			continue // it has none
		}
		n, ok := known[key]
		if !ok {
			n = words.number(facet(key.letter, key.value))
			known[key] = n
		}
		numbers = append(numbers, n)
	}
	return words.keepNumbers(numbers)
}

// texts returns the queued documents with their facets.
func (w *writer) texts(words *vocabulary) []room.Text {
	texts, known := make([]room.Text, len(w.docs)), make(map[facetKey]uint32)
	for i := range w.docs {
		d := &w.docs[i]
		texts[i] = room.Text{ID: d.id, Body: d.body, Whole: d.whole, Facets: d.facets(words, known)}
	}
	return texts
}

// ofSession matches the documents of a session.
func ofSession(id int64) room.Match { return anyFacet([]string{quote(facet('s', id))}) }

// anyFacet matches the documents that have one of the facets, which are few.
func anyFacet(facets []string) room.Match { return room.Match{Query: strings.Join(facets, " OR ")} }
