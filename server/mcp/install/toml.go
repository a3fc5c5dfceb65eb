package install

import (
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

// tomlFile is a file with a table for each entry, below a table of this name.
type tomlFile struct{ servers string }

// errByHand means that a file is written in a form that this package cannot edit.
var errByHand = errors.New("the entry is written in a way that a program cannot change; edit the file")

func (f tomlFile) decode(text []byte) (all map[string]any, err error) {
	err = toml.Unmarshal(text, &all)
	if all == nil {
		all = map[string]any{}
	}
	return all, err
}

func (f tomlFile) read(text []byte) (map[string]any, error) {
	all, err := f.decode(text)
	entries, _ := all[f.servers].(map[string]any)
	return entries, err
}

func (f tomlFile) add(text []byte, name string, entry []field) ([]byte, error) {
	table, end := string(text), ""
	switch {
	case strings.HasSuffix(table, "\n"):
		table, end = table+"\n", "\n"
	case table != "":
		table += "\n\n"
	default:
		end = "\n"
	}
	table += "[" + f.servers + "." + tomlKey(name) + "]"
	for _, one := range entry {
		table += "\n" + one.key + " = " + tomlValue(one.value)
	}
	return f.checked(text, table+end, func(entries map[string]any) { entries[name] = decoded(entry) })
}

func (f tomlFile) update(text []byte, name string, entry []field) ([]byte, error) {
	lines, from, to := f.table(text, name)
	if from < 0 {
		return nil, errByHand
	}
	for _, one := range entry {
		set := regexp.MustCompile(`^(\s*` + one.key + `\s*=\s*)("[^"]*"|'[^']*'|\[.*\])(\s*(?:#.*)?\s*)$`)
		i := slices.IndexFunc(lines[from:to], set.MatchString)
		if i < 0 {
			return nil, errByHand
		}
		parts := set.FindStringSubmatch(lines[from+i])
		lines[from+i] = parts[1] + tomlValue(one.value) + parts[3]
	}
	return f.checked(text, strings.Join(lines, ""), func(entries map[string]any) {
		had, _ := entries[name].(map[string]any)
		maps.Copy(had, decoded(entry))
	})
}

func (f tomlFile) remove(text []byte, name string) ([]byte, error) {
	lines, from, to := f.table(text, name)
	if from < 0 {
		return nil, errByHand
	}
	before, after := strings.Join(lines[:from], ""), strings.Join(lines[to:], "")
	switch {
	case after == "" && !strings.HasSuffix(lines[to-1], "\n"): // the file ended without one before
		before = strings.TrimSuffix(before, "\n\n")
	case after == "":
		before = strings.TrimSuffix(before, "\n")
		if before != "" && !strings.HasSuffix(before, "\n") {
			before += "\n"
		}
	}
	return f.checked(text, before+after, func(entries map[string]any) { delete(entries, name) })
}

func (f tomlFile) isWithout(text, edited []byte, name string) bool {
	_, err := f.checked(text, string(edited), func(entries map[string]any) { delete(entries, name) })
	return edited != nil && err == nil
}

// table returns the lines of a text, and which of them are the table of an entry and those
// below it. from is -1 if it has none.
func (f tomlFile) table(text []byte, name string) (lines []string, from, to int) {
	lines = strings.SplitAfter(string(text), "\n")
	key := regexp.QuoteMeta(name)
	own := regexp.MustCompile(`^\s*\[\s*` + f.servers + `\s*\.\s*(` + key + `|"` + key + `"|'` + key + `')\s*[.\]]`)
	header := regexp.MustCompile(`^\s*\[`)
	if from = slices.IndexFunc(lines, own.MatchString); from < 0 {
		return lines, -1, -1
	}
	to = len(lines)
	for i := from + 1; i < len(lines); i++ {
		if header.MatchString(lines[i]) && !own.MatchString(lines[i]) {
			to = i
			break
		}
	}
	for to > from && lines[to-1] == "" {
		to--
	}
	return lines, from, to
}

// checked returns the edited text, if it differs from the old one only in the change of the
// entries.
func (f tomlFile) checked(text []byte, edited string, change func(entries map[string]any)) ([]byte, error) {
	want, err := f.decode(text)
	if err != nil {
		return nil, err
	}
	got, err := f.decode([]byte(edited))
	if err != nil {
		return nil, errByHand
	}
	if !sameBut(want, got, f.servers, change) {
		return nil, errByHand
	}
	return []byte(edited), nil
}

// sameBut reports whether two files say the same apart from a change of the entries. No
// entries and an empty list of entries are the same.
func sameBut(want, got map[string]any, servers string, change func(map[string]any)) bool {
	entries, _ := want[servers].(map[string]any)
	if entries == nil {
		entries = map[string]any{}
	}
	change(entries)
	now, _ := got[servers].(map[string]any)
	if now == nil {
		now = map[string]any{}
	}
	delete(want, servers)
	delete(got, servers)
	return reflect.DeepEqual(want, got) && reflect.DeepEqual(entries, now)
}

// decoded is an entry as a decoder returns it.
func decoded(entry []field) map[string]any {
	all := make(map[string]any)
	for _, one := range entry {
		all[one.key] = one.value
		if words, ok := one.value.([]string); ok {
			list := make([]any, len(words))
			for i, word := range words {
				list[i] = word
			}
			all[one.key] = list
		}
	}
	return all
}

func tomlValue(v any) string {
	words, ok := v.([]string)
	if !ok {
		text, _ := v.(string) // entries have nothing else
		return tomlString(text)
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = tomlString(word)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// tomlString writes a string as JSON does, which TOML reads.
func tomlString(text string) string { return encode(text, "", "") }

var bareKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

func tomlKey(name string) string {
	if bareKey().MatchString(name) {
		return name
	}
	return tomlString(name)
}
