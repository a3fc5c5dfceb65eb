package index

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// filter reads a filter, if the parser is at one.
func (p *parser) filter(negative bool) bool {
	start := p.at
	name, rest, ok := strings.Cut(p.text[p.at:], ":")
	if !ok {
		return false
	}
	filter, ok := FilterOf(name, strings.TrimPrefix(rest, `"`))
	if !ok {
		return false
	}
	p.at += len(name) + 1
	valueAt := p.at
	var value string
	if p.at < len(p.text) && p.text[p.at] == '"' {
		value = p.quoted()
	} else {
		value = p.word()
	}
	if value == "" {
		p.fail(valueAt, "%s: needs a value", name)
	}
	if negative && !canNegate(filter) {
		p.fail(start, "%s: cannot be negated", name)
	}
	p.addFilter(filter, value, valueAt, negative)
	return true
}

// Filters returns the names of the filters of a query, followed by their aliases: see
// FilterOf.
func Filters() []string {
	return append([]string{"kind", "role", "tool", "model", "branch", "session"}, ListFilters()...)
}

// ListFilters returns the filters that apply to whole sessions.
func ListFilters() []string {
	return []string{"agent", "project", "tag", "file", "cwd", "since", "until", "after", "before", "in"}
}

// FilterOf returns the filter that a name means. after means since, before means until, and
// in or dir mean cwd, or project if the value is not a path. ok is false if the name is not a
// filter.
func FilterOf(name, value string) (filter string, ok bool) {
	switch name {
	case "after":
		return "since", true
	case "before":
		return "until", true
	case "in", "dir":
		if strings.HasPrefix(value, ".") || strings.HasPrefix(value, "~") || filepath.IsAbs(value) {
			return "cwd", true
		}
		return "project", true
	}
	return name, slices.Contains(Filters(), name)
}

// Typed returns what a query that is still being typed asks for: a filter without its value is not
// yet one, a quote will be closed, and the last word may be the beginning of a longer one.
func Typed(text string) string {
	text = strings.TrimLeft(text, " ")
	if strings.Count(text, `"`)%2 == 1 {
		text = strings.TrimRight(text, " ")
		if before, ok := strings.CutSuffix(text, `"`); ok {
			return withoutBegun(before)
		}
		return text + `"`
	}
	word := text[strings.LastIndexByte(text, ' ')+1:]
	if len(word) > 1 && isPlainWord(word) {
		return text + "*"
	}
	return withoutBegun(text)
}

// withoutBegun returns a query without a filter at its end that has no value yet.
func withoutBegun(text string) string {
	at := strings.LastIndexByte(text, ' ') + 1
	if name, value, ok := strings.Cut(text[at:], ":"); ok && value == "" && slices.Contains(Filters(), name) {
		text = text[:at]
	}
	return strings.TrimSpace(text)
}

// isPlainWord reports whether a word has no meaning of its own in a query.
func isPlainWord(word string) bool {
	return !strings.ContainsAny(word, `"'*()-+&|:`) && word != "OR" && word != "AND" && word != "NOT"
}

// likeFilter returns the name of something that looks like a filter but is not one, or "".
// Addresses, paths and code with colons do not look like filters.
func likeFilter(word string) string {
	name, value, ok := strings.Cut(word, ":")
	isLetter := func(r rune) bool { return 'a' <= r && r <= 'z' || r == '_' || r == '-' }
	if !ok || len(name) < 2 || value == "" || strings.ContainsAny(value[:1], `:/\=`) || strings.TrimLeftFunc(name, isLetter) != "" {
		return ""
	}
	return name
}

// Dir returns the absolute path of a directory that a person typed: ".", "..", "../x" and
// existing directories are relative to the working directory, and "~" is the user's home.
// Others are returned unchanged.
func Dir(value string) string {
	value = filepath.FromSlash(value)
	rest, isHome := strings.CutPrefix(value, "~")
	if home, err := os.UserHomeDir(); isHome && err == nil && (rest == "" || os.IsPathSeparator(rest[0])) {
		return filepath.Join(home, rest)
	}
	if value == "" || filepath.IsAbs(value) {
		return value
	}
	abs, err := filepath.Abs(value)
	if info, statErr := os.Stat(abs); err == nil && (strings.HasPrefix(value, ".") || statErr == nil && info.IsDir()) {
		return abs
	}
	return value
}

// File returns the absolute path of a file that a person typed with ./, ../ or ~/ before it.
// Others, which name a file or end its path, are returned unchanged.
func File(value string) string {
	for _, begin := range []string{"./", "../", "~/"} {
		if strings.HasPrefix(filepath.ToSlash(value), begin) {
			return Dir(value)
		}
	}
	return value
}

// wholePath returns the value of a filter: that of a directory or a file as an absolute path.
func wholePath(name, value string) string {
	switch name {
	case "cwd":
		return Dir(value)
	case "file":
		return File(value)
	}
	return value
}

// typedPath is the value of a filter that a person typed for a whole path.
type typedPath struct {
	value string
	at    int
	whole string
}

// WithWholePaths returns a query in which directories and files are absolute paths, so that it means
// the same on another machine.
func WithWholePaths(query string) string {
	q, err := parseQuery(query, time.Now(), false)
	if err != nil {
		return query // parsing it will say what is wrong
	}
	for _, path := range slices.Backward(q.typed) {
		if strings.Contains(path.whole, `"`) {
			continue // no query can have it
		}
		before, after := q.text[:path.at], strings.TrimPrefix(q.text[path.at:], `"`)
		query = before + `"` + path.whole + `"` + strings.TrimPrefix(after[len(path.value):], `"`)
		q.text = query
	}
	return query
}

func canNegate(name string) bool {
	return name == "kind" || name == "role" || name == "tool" || name == "model"
}

func (p *parser) addFilter(name, value string, at int, negative bool) {
	lists := map[string][2]*[]string{
		"kind": {&p.kinds, &p.notKinds}, "role": {&p.roles, &p.notRoles},
		"tool": {&p.tools, &p.notTools}, "model": {&p.models, &p.notMod},
		"tag": {&p.tags}, "cwd": {&p.cwd}, "session": {&p.session},
		"agent": {&p.agents}, "project": {&p.projects}, "file": {&p.files},
	}
	switch name {
	case "since":
		p.since = p.time(value, at)
	case "until":
		p.until = p.time(value, at)
	case "branch":
		if p.branch = Branch(value); p.branch != LiveBranch && p.branch != AllBranches {
			p.fail(at, "branch: takes live or all, not %q", value)
		}
	case "kind":
		if kindNumber(Kind(value)) < 0 {
			p.fail(at, "%v", unknownKind(Kind(value)))
		}
		fallthrough
	default:
		if whole := wholePath(name, value); whole != value && !p.elsewhere {
			p.typed, value = append(p.typed, typedPath{value, at, whole}), whole
		}
		i := 0
		if negative {
			i = 1
		}
		list := lists[name][i]
		*list = append(*list, value)
	}
}

func (p *parser) time(value string, at int) time.Time {
	t, ok := ParseTime(value, p.now)
	if !ok {
		p.fail(at, "%q is not a time: use 2026-03-14, 2026-03, 30min, 12h, 7d, 2w, today, yesterday, or RFC 3339 (m could be minutes or months)", value)
	}
	return t
}

// ParseTime reads a time as people write it. Days begin in the time zone of now.
func ParseTime(value string, now time.Time) (time.Time, bool) {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch value {
	case "now":
		return now, true
	case "today":
		return today, true
	case "yesterday":
		return today.AddDate(0, 0, -1), true
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly, "2006-01", "2006"} {
		if t, err := time.ParseInLocation(layout, value, now.Location()); err == nil {
			return t, true
		}
	}
	return parseAge(value, now)
}

// parseAge reads how long ago something was. Days are those of the calendar: a week
// ago is the same time of day, even if the clocks were changed since.
func parseAge(value string, now time.Time) (time.Time, bool) {
	days, rest, ok := splitAge(value)
	return now.AddDate(0, 0, -days).Add(-rest), ok
}

// ParseAge reads an age as people write it: 2w, 7d, 1d12h, 90min, 30s. A day has 24 hours. There
// is no m, because 6m could be six months as well as six minutes.
func ParseAge(value string) (time.Duration, bool) {
	days, rest, ok := splitAge(value)
	return time.Duration(days)*24*time.Hour + rest, ok
}

const maxAge = 100_000 // days, so that a duration can hold it

// splitAge reads weeks and days, and then hours, minutes and seconds.
func splitAge(value string) (days int, rest time.Duration, ok bool) {
	if value == "" {
		return 0, 0, false
	}
	for {
		at := strings.IndexAny(value, "dw")
		if at < 0 {
			break
		}
		n, err := strconv.ParseUint(value[:at], 10, 32)
		if err != nil || n > maxAge {
			return 0, 0, false
		}
		if value[at] == 'w' {
			n *= 7
		}
		days, value = days+int(n), value[at+1:]
	}
	if value != "" {
		if strings.Count(value, "m") != strings.Count(value, "min") {
			return 0, 0, false
		}
		var err error
		if rest, err = time.ParseDuration(strings.ReplaceAll(value, "min", "m")); err != nil || rest < 0 {
			return 0, 0, false
		}
	}
	return days, rest, days <= maxAge && rest <= maxAge*24*time.Hour
}
