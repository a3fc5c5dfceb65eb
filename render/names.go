package render

import (
	"cmp"
	"slices"
	"strings"
)

// Names maps ids to the short names that people see: the shortest prefix that no other
// id has. Commands accept such a prefix for the id.
type Names map[string]string

// minShort is the minimum length of a shortened id.
const minShort = 8

// ShortIDs returns the names of ids, each of at least eight characters. In sorted
// order it is enough to compare each id with its neighbours.
func ShortIDs(ids []string) Names {
	sorted := slices.Compact(slices.Sorted(slices.Values(ids)))
	names := make(Names, len(sorted))
	for i, id := range sorted {
		n := minShort - 1
		if i > 0 {
			n = max(n, SharedPrefix(id, sorted[i-1]))
		}
		if i+1 < len(sorted) {
			n = max(n, SharedPrefix(id, sorted[i+1]))
		}
		names[id] = id[:min(n+1, len(id))]
	}
	return names
}

// revised separates an id from the suffix that distinguishes entries which share it:
// revisions of an imported record, and entries that two sessions of a conversation both
// have.
const revised = "~"

// minSuffix is the minimum length of a shortened suffix.
const minSuffix = 4

// ShortEntryIDs returns the names of a session's entries. They are those of ShortIDs,
// except that the id and the suffix of a revision are shortened separately: "0123…36
// characters…~89abcdef" is "01234567~89ab", which is not a prefix of it. See
// EntriesNamed.
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

// isEntryName reports whether what somebody typed fits an entry: as a prefix of its id, or as
// prefixes of both parts of a revision's id.
func isEntryName(given, id string) bool {
	if strings.HasPrefix(id, given) {
		return true
	}
	base, suffix := cutRevision(given)
	idBase, idSuffix := cutRevision(id)
	return base != given && idBase != id && strings.HasPrefix(idBase, base) && strings.HasPrefix(idSuffix, suffix)
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
		return base != id && bases[base] && strings.HasPrefix(base, given)
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

// ShortID returns a name for an id when the other ids are not known. For a UUID of a
// session that began here it is the first half, the time and a counter, which no other
// id has. For a hash that an importer made it is the beginning, which others hardly
// ever share; if one does, whoever types it learns that it is ambiguous. Ids of other
// programs may share a long beginning, and stay whole.
func ShortID(id string) string {
	const half = len("00000000-0000-7000")
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[half] != '-' {
		return id
	}
	switch id[14] {
	case '7': // begins with a time
		return id[:half]
	case '8': // a hash
		return id[:minShort]
	}
	return id
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

// ShortDirs returns the names of directories: of each its last element, or as many of the
// last ones as tell it from the others.
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
