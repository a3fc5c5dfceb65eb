package tools

import "strings"

// In a pattern these bytes mean * and ?, so that a quoted * is just a character. Text with
// control characters cannot be a pattern.
const (
	anything byte = 1
	anyOne   byte = 2
)

// manyNames matches any number of names in a path.
var manyNames = string([]byte{anything, anything})

// pathPattern converts what people write to a pattern.
func pathPattern(text string) string {
	return strings.NewReplacer("*", string(anything), "?", string(anyOne)).Replace(text)
}

// matchPath reports whether a path with slashes matches a pattern: * and ? match anything
// within a name, and ** as a whole name matches any number of names. As in a shell, none of
// them matches a dot at the beginning of a name, so that "write(**)" does not open
// .git/hooks; nor do they match the name of a file that keeps keys, unless the pattern is for
// such files: *.pem. With dots they match everything.
func matchPath(pattern, path string, dots bool) bool {
	return matchNames(strings.Split(pattern, "/"), strings.Split(path, "/"), dots)
}

func matchNames(pattern, names []string, dots bool) bool {
	for len(pattern) > 0 {
		if pattern[0] == manyNames {
			for i := range len(names) + 1 {
				if matchNames(pattern[1:], names[i:], dots) {
					return true
				}
				if i < len(names) && !dots && (hidden(names[i]) || i == len(names)-1 && keepsKeys(names[i])) {
					return false
				}
			}
			return false
		}
		if len(names) == 0 || !matchName(pattern[0], names[0], dots) {
			return false
		}
		if len(names) == 1 && !dots && keepsKeys(names[0]) && !keepsKeys(pattern[0]) {
			return false
		}
		pattern, names = pattern[1:], names[1:]
	}
	return len(names) == 0
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// matchName matches one name. It backtracks to the last * only, which is enough.
func matchName(pattern, name string, dots bool) bool {
	if hidden(name) && !hidden(pattern) && !(dots && name != "." && name != "..") {
		return false
	}
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == anything:
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == anyOne || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], string(anything)) == ""
}
