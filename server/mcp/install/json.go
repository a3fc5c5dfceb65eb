package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"

	"github.com/tailscale/hujson"
)

// jsonFile is a file with an object of entries under a key. It may have comments and commas
// at the end of lists, as the files of many agents do.
type jsonFile struct{ servers string }

func (f jsonFile) decode(text []byte) (all map[string]any, err error) {
	if isBlank(text) {
		return map[string]any{}, nil
	}
	plain, err := hujson.Standardize(bytes.Clone(bytes.TrimPrefix(text, bom))) // it overwrites its argument
	if err == nil {
		err = json.Unmarshal(plain, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("the file is not JSON: %w", err)
	}
	if all == nil {
		return nil, fmt.Errorf("the file has null, not an object")
	}
	return all, nil
}

func (f jsonFile) read(text []byte) (map[string]any, error) {
	all, err := f.decode(text)
	if err != nil {
		return nil, err
	}
	entries, ok := all[f.servers].(map[string]any)
	if had := all[f.servers]; !ok && had != nil {
		return nil, fmt.Errorf("%s is not an object; %w", f.servers, errByHand)
	}
	return entries, nil
}

func (f jsonFile) add(text []byte, name string, entry []field) ([]byte, error) {
	edited := text
	if isBlank(text) {
		edited = []byte("{}\n")
	}
	root, err := findObject(edited)
	if err != nil {
		return nil, err
	}
	if at := root.member(f.servers); at != nil {
		servers, err := findObject(edited, f.servers)
		if err != nil {
			return nil, err
		}
		edited = servers.insert(edited, name, entry)
	} else {
		edited = root.insert(edited, f.servers, []field{{name, entry}})
	}
	return f.checked(text, edited, func(entries map[string]any) { entries[name] = decoded(entry) })
}

func (f jsonFile) update(text []byte, name string, entry []field) ([]byte, error) {
	edited := text
	for _, one := range entry {
		o, err := findObject(edited, f.servers, name)
		if err != nil {
			return nil, err
		}
		if m := o.member(one.key); m != nil {
			text := encode(one.value, o.indentIn(edited), o.unit(edited))
			edited = splice(edited, m.value, m.end, strings.ReplaceAll(text, "\n", newline(edited)))
		} else {
			edited = o.insert(edited, one.key, one.value)
		}
	}
	return f.checked(text, edited, func(entries map[string]any) {
		had, _ := entries[name].(map[string]any)
		maps.Copy(had, decoded(entry))
	})
}

func (f jsonFile) remove(text []byte, name string) ([]byte, error) {
	servers, err := findObject(text, f.servers)
	if err != nil {
		return nil, err
	}
	edited := servers.remove(text, name)
	if servers, err = findObject(edited, f.servers); err == nil && len(servers.members) == 0 && servers.open+2 == servers.end {
		root, err := findObject(edited)
		if err != nil {
			return nil, err
		}
		edited = root.remove(edited, f.servers)
	}
	return f.checked(text, edited, func(entries map[string]any) { delete(entries, name) })
}

func (f jsonFile) isWithout(text, edited []byte, name string) bool {
	_, err := f.checked(text, edited, func(entries map[string]any) { delete(entries, name) })
	return edited != nil && err == nil
}

func (f jsonFile) checked(text, edited []byte, change func(map[string]any)) ([]byte, error) {
	want, err := f.decode(text)
	if err != nil {
		return nil, err
	}
	got, err := f.decode(edited)
	if err != nil || !sameBut(want, got, f.servers, change) {
		return nil, errByHand
	}
	return edited, nil
}

func isBlank(text []byte) bool { return len(bytes.TrimSpace(bytes.TrimPrefix(text, bom))) == 0 }

var bom = []byte("\ufeff")

// object is an object in a text, as the positions of its members.
type object struct {
	open, end int // of the braces: the first, and behind the last
	members   []member
}

// member is a member of an object.
type member struct {
	key        string
	start      int // of the key
	value, end int
	comma      int // the one that follows, or -1
	parsed     *hujson.Value
}

// findObject returns the object at a path of keys.
func findObject(text []byte, path ...string) (*object, error) {
	plain := bytes.TrimPrefix(text, bom)
	value, err := hujson.Parse(plain)
	if err != nil {
		return nil, errByHand
	}
	for {
		o := objectAt(&value, len(text)-len(plain))
		switch {
		case o == nil:
			return nil, errByHand
		case len(path) == 0:
			return o, nil
		}
		m := o.member(path[0])
		if m == nil {
			return nil, errByHand
		}
		value, path = *m.parsed, path[1:]
	}
}

// objectAt returns a parsed object, or nil if the value is none. The text that was parsed begins
// skip bytes into the file.
func objectAt(v *hujson.Value, skip int) *object {
	parsed, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	o := &object{open: skip + v.StartOffset, end: skip + v.EndOffset, members: make([]member, len(parsed.Members))}
	for i := range parsed.Members {
		name, value := &parsed.Members[i].Name, &parsed.Members[i].Value
		m := member{
			key: name.Value.(hujson.Literal).String(), start: skip + name.StartOffset,
			value: skip + value.StartOffset, end: skip + value.EndOffset, comma: -1, parsed: value,
		}
		if i+1 < len(parsed.Members) || value.AfterExtra != nil { // the last has that only before a comma
			m.comma = m.end + len(value.AfterExtra)
		}
		o.members[i] = m
	}
	return o
}

// member returns the last member of a key, which is the one that counts.
func (o *object) member(key string) *member {
	for i := len(o.members) - 1; i >= 0; i-- {
		if o.members[i].key == key {
			return &o.members[i]
		}
	}
	return nil
}

// insert adds a member at the end, formatted like the others.
func (o *object) insert(text []byte, key string, value any) []byte {
	indent, unit, line := o.indentIn(text), o.unit(text), newline(text)
	n := len(o.members)
	if n > 0 && !bytes.Contains(text[o.open:o.members[0].start], []byte("\n")) { // all on one line
		last := o.members[n-1]
		if last.comma >= 0 {
			return splice(text, last.comma+1, last.comma+1, encode(key, "", "")+":"+encode(value, "", "")+",")
		}
		return splice(text, last.end, last.end, ","+encode(key, "", "")+":"+encode(value, "", ""))
	}
	own := strings.ReplaceAll("\n"+indent+encode(key, "", "")+": "+encode(value, indent, unit), "\n", line)
	if n == 0 {
		inner := bytes.TrimRight(text[o.open+1:o.end-1], " \t\r\n")
		at := o.open + 1 + len(inner)
		if bytes.Contains(text[at:o.end-1], []byte("\n")) {
			return splice(text, at, at, own)
		}
		return splice(text, at, o.end-1, own+line+strings.TrimSuffix(indent, unit))
	}
	last := o.members[n-1]
	if last.comma >= 0 {
		at := lineEnd(text, last.comma+1, o.end-1)
		return splice(text, at, at, own+",")
	}
	at := lineEnd(text, last.end, o.end-1)
	return splice(splice(text, at, at, own), last.end, last.end, ",")
}

// remove removes a member that insert added.
func (o *object) remove(text []byte, key string) []byte {
	m := o.member(key)
	i := 0
	for i < len(o.members) && o.members[i].start != m.start {
		i++
	}
	from, to := m.start, m.end
	if m.comma >= 0 {
		to = m.comma + 1
	}
	for from > 0 && (text[from-1] == ' ' || text[from-1] == '\t') {
		from--
	}
	if from > 0 && text[from-1] == '\n' {
		from--
		if from > 0 && text[from-1] == '\r' {
			from--
		}
	} else {
		from = m.start
	}
	if len(o.members) == 1 && isBlank(append(bytes.Clone(text[o.open+1:from]), text[to:o.end-1]...)) {
		return splice(text, o.open+1, o.end-1, "")
	}
	edited := splice(text, from, to, "")
	if last := i == len(o.members)-1; last && m.comma < 0 && i > 0 {
		comma := o.members[i-1].comma
		edited = splice(edited, comma, comma+1, "")
	}
	return edited
}

// indentIn returns the indentation of a member's line.
func (o *object) indentIn(text []byte) string {
	if len(o.members) > 0 {
		if indent, ok := indentOf(text, o.members[0].start); ok {
			return indent
		}
	}
	line := bytes.LastIndexByte(text[:o.open], '\n') + 1
	outer := text[line:]
	outer = outer[:len(outer)-len(bytes.TrimLeft(outer, " \t"))]
	return string(outer) + o.unit(text)
}

// unit returns the indentation of one level in the text.
func (o *object) unit(text []byte) string {
	if root, err := findObject(text); err == nil && len(root.members) > 0 {
		if indent, ok := indentOf(text, root.members[0].start); ok && indent != "" {
			return indent
		}
	}
	return "  "
}

// indentOf is what is before a place on its line, if that is only space.
func indentOf(text []byte, at int) (string, bool) {
	line := bytes.LastIndexByte(text[:at], '\n')
	indent := string(text[line+1 : at])
	return indent, line >= 0 && strings.Trim(indent, " \t") == ""
}

func newline(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// lineEnd returns the end of the line, if only comments and space follow there.
func lineEnd(text []byte, at, most int) int {
	if rest := restOfLine().FindSubmatch(text[at:most]); rest != nil {
		return at + len(rest[1])
	}
	return at
}

var restOfLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^((?:[ \t]|/\*(?s:.*?)\*/)*(?://[^\r\n]*)?)[\r\n]`)
})

func splice(text []byte, from, to int, with string) []byte {
	return append(append(bytes.Clone(text[:from]), with...), text[to:]...)
}

// encode writes a value as JSON, on one line if there is no unit.
func encode(value any, prefix, unit string) string {
	if fields, ok := value.([]field); ok {
		return encodeFields(fields, prefix, unit)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if unit != "" {
		e.SetIndent(prefix, unit)
	}
	_ = e.Encode(value) // strings and lists of them always encode
	return strings.TrimSuffix(b.String(), "\n")
}

func encodeFields(fields []field, prefix, unit string) string {
	line, colon := "\n"+prefix+unit, ": "
	end := "\n" + prefix
	if unit == "" {
		line, colon, end = "", ":", ""
	}
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = line + encode(f.key, "", "") + colon + encode(f.value, prefix+unit, unit)
	}
	return "{" + strings.Join(parts, ",") + end + "}"
}
