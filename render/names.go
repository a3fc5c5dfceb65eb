package render

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// Names maps ids to the short names that people see and type: the shortest beginning of
// an id's random part (see session.RandomPart) that no other id and no other random part
// has.
type Names map[string]string

const (
	// minShort is the minimum length of a name. Eight random digits seldom need a ninth, so
	// a name hardly ever changes because another session comes.
	minShort = 8
	// minChosen is that of an id that is not random but says something, such as
	// tokenizer-20: cut after tokenizer-2 it would seem to be another.
	minChosen = 12
)

// ShortIDs returns the names of ids.
func ShortIDs(ids []string) Names {
	type spelling struct{ text, id string }
	all := make([]spelling, 0, 2*len(ids)) // whatever could be typed for an id
	for _, id := range ids {
		all = append(all, spelling{id, id})
		if part := session.RandomPart(id); part != id {
			all = append(all, spelling{part, id})
		}
	}
	slices.SortFunc(all, func(a, b spelling) int { return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.id, b.id)) })
	all = slices.Compact(all)
	names := make(Names, len(ids))
	for i, s := range all {
		if s.text != session.RandomPart(s.id) {
			continue
		}
		// In sorted order it is enough to compare it with its neighbours. One of them may be
		// the other spelling of the same id.
		n := minLength(s.id) - 1
		for _, step := range []int{-1, 1} {
			at := i + step
			if at >= 0 && at < len(all) && all[at].id == s.id {
				at += step
			}
			if at >= 0 && at < len(all) {
				n = max(n, SharedPrefix(s.text, all[at].text))
			}
		}
		if n < len(s.text) && s.text[n] == '-' {
			n++ // which looks less cut off
		}
		if n >= len(s.text) { // all of it is the beginning of another
			names[s.id] = s.id
		} else {
			names[s.id] = s.text[:min(n+1, len(s.text))]
		}
	}
	return names
}

// ShortID returns the name of an id when the others are not known. Another random id
// hardly ever begins like it; if one does, using the name gives an error that says it
// is ambiguous. An id that is not random stays whole.
func ShortID(id string) string {
	base, suffix := cutRevision(id)
	switch {
	case minLength(base) == minChosen:
		return id
	case base != id:
		return ShortID(base) + revised + suffix[:min(minSuffix, len(suffix))]
	}
	return session.RandomPart(id)[:minShort]
}

// minLength returns the minimum length of the name of an id.
func minLength(id string) int {
	isDigit := func(r rune) bool { return '0' <= r && r <= '9' || 'a' <= r && r <= 'f' }
	digits := strings.ReplaceAll(id, "-", "")
	if len(digits) < 32 || strings.ContainsFunc(digits, func(r rune) bool { return !isDigit(r) }) {
		return minChosen
	}
	return minShort // a UUID, or a hash
}

// isNamed reports whether a typed name may mean an id: it is the beginning of the id or
// of its random part.
func isNamed(given, id string) bool {
	return strings.HasPrefix(id, given) || strings.HasPrefix(session.RandomPart(id), given)
}

// IDsNamed returns the ids that a typed name may mean.
func IDsNamed(given string, ids []string) []string {
	var found []string
	for _, id := range ids {
		if isNamed(given, id) {
			found = append(found, id)
		}
	}
	return found
}

// revised separates an id from the suffix that distinguishes entries that share it:
// revisions of an imported record, and entries that two sessions of a conversation both
// have.
const revised = "~"

// minSuffix is the minimum length of a shortened suffix.
const minSuffix = 4

// ShortEntryIDs returns the names of a session's entries. They are those of ShortIDs,
// except that the id and the suffix of a revision are shortened separately:
// "0190a1b2-0000-7000-8000-89abcdef0123~45670000" is "89abcdef~4567". See EntriesNamed.
func ShortEntryIDs(ids []string) Names {
	bases := make([]string, len(ids))
	suffixes := make(map[string][]string)
	for i, id := range ids {
		base, suffix := cutRevision(id)
		bases[i] = base
		if base != id {
			suffixes[base] = append(suffixes[base], suffix)
		}
	}
	short := ShortIDs(bases)
	names := make(Names, len(ids))
	for i, id := range ids {
		names[id] = short[bases[i]]
		if bases[i] == id {
			continue
		}
		_, suffix := cutRevision(id)
		n := minSuffix - 1
		for _, other := range suffixes[bases[i]] {
			if other != suffix {
				n = max(n, SharedPrefix(suffix, other))
			}
		}
		names[id] += revised + suffix[:min(n+1, len(suffix))]
	}
	return names
}

// isEntryName reports whether a typed name may mean an entry: as a name of its id, or as a
// name of the id and a prefix of the suffix of a revision.
func isEntryName(given, id string) bool {
	base, suffix := cutRevision(given)
	idBase, idSuffix := cutRevision(id)
	if isNamed(given, idBase) || strings.HasPrefix(id, given) {
		return true
	}
	return base != given && idBase != id && isNamed(base, idBase) && strings.HasPrefix(idSuffix, suffix)
}

// EntriesNamed returns the ids that a typed name may mean. If an id and its revisions
// fit, the id is meant.
func EntriesNamed(given string, ids []string) []string {
	var found []string
	bases := make(map[string]bool)
	for _, id := range ids {
		if isEntryName(given, id) {
			found = append(found, id)
			bases[id] = true
		}
	}
	return slices.DeleteFunc(found, func(id string) bool {
		base, _ := cutRevision(id)
		return base != id && bases[base] && isNamed(given, base)
	})
}

// cutRevision splits an id into that of the entry and the suffix of a revision. Other
// ids stay whole.
func cutRevision(id string) (base, suffix string) {
	at := strings.LastIndex(id, revised)
	if at <= 0 || at == len(id)-1 {
		return id, ""
	}
	return id[:at], id[at+1:]
}

// SharedPrefix returns how many bytes two strings have in common at the beginning.
func SharedPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Name returns what to type for an id: its short name, or the id if it has none. It is
// not escaped: a command that contains it must quote it.
func (n Names) Name(id string) string { return cmp.Or(n[id], id) }

// Shown returns an id for printing: its name, with nothing in it that could act on a
// terminal or begin another line.
func (n Names) Shown(id string) string { return OneLine(n.Name(id), 0) }

// ShortDirs returns short names of directories: the last element of each, or as many of
// the last ones as make it unique.
func ShortDirs(dirs []string) Names {
	names := make(Names)
	for _, dir := range dirs {
		names[dir] = ""
	}
	for elements := 1; ; elements++ {
		used := make(map[string]int)
		again := false
		for dir, name := range names {
			if name == "" {
				used[lastElements(dir, elements)]++
			}
		}
		for dir, name := range names {
			if short := lastElements(dir, elements); name == "" && dir != "" && (used[short] == 1 || short == dir) {
				names[dir] = short
			} else if name == "" && dir != "" {
				again = true
			}
		}
		if !again {
			return names
		}
	}
}

// lastElements returns the last elements of a path, whatever system it is from.
func lastElements(path string, n int) string {
	trimmed := strings.TrimRight(path, `/\`)
	at := len(trimmed)
	for ; n > 0 && at > 0; n-- {
		at = strings.LastIndexAny(trimmed[:at], `/\`)
	}
	if at <= 0 && n > 0 || at < 0 {
		return path
	}
	return trimmed[at+1:]
}
