// Package chaingen makes random stores of sessions that continue each other, for tests:
// with sessions that are lost, unreadable, copied or forked, with several markers, with
// repeated and damaged lines, and with headers that are not where they should be. It
// knows nothing of the code under test, only of the format (docs/format.md).
package chaingen

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Store returns the sessions of a store by their names, and the names of sessions
// that others name and that are not there. The same seed gives the same store.
func Store(seed uint64) (files map[string][]byte, lost []string) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 21)), files: make(map[string][]byte), at: time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)}
	for chain := range 1 + g.IntN(2) {
		g.chain(string(rune('a' + chain)))
	}
	g.disturb()
	for _, name := range g.lost {
		if _, there := g.files[name]; !there {
			lost = append(lost, name)
		}
	}
	slices.Sort(lost)
	return g.files, slices.Compact(lost)
}

type object = map[string]any

type generator struct {
	*rand.Rand
	files map[string][]byte
	lost  []string
	at    time.Time
	n     int
}

// written is an entry that a later session may have a copy of.
type written struct {
	kind, id, at string
	body         string // the payload
}

// writer writes one session.
type writer struct {
	*generator
	name    string
	lines   []string
	ids     []string  // of its entries
	written []written // its entries, but for moves of the leaf
	all     []string  // ids of entries of earlier sessions of the chain
	leaf    string
	called  []string // calls without a result
}

func (g *generator) one(in int) bool { return g.IntN(in) == 0 }

func (g *generator) now() string {
	g.at = g.at.Add(time.Duration(1+g.IntN(5000)) * time.Millisecond)
	return g.at.Format("2006-01-02T15:04:05.000Z")
}

func pick[T any](g *generator, list []T) T { return list[g.IntN(len(list))] }

// chain writes sessions that continue each other.
func (g *generator) chain(prefix string) {
	var before []written
	var all []string
	count := 1 + g.IntN(6)
	for i := range count {
		w := &writer{generator: g, name: fmt.Sprintf("%s%d", prefix, i), all: all}
		w.header(prefix, i)
		if i > 0 {
			w.begin(before, fmt.Sprintf("%s%d", prefix, i-1), prefix)
		}
		for range 1 + g.IntN(8) {
			w.entry()
		}
		if i < count-1 {
			w.record(fmt.Sprintf("%s%d", prefix, i+1))
		}
		if g.one(4) {
			w.entry()
		}
		g.files[w.name] = []byte(strings.Join(w.lines, "\n") + "\n")
		before = append(before, w.written...)
		all = append(all, w.ids...)
	}
}

func (w *writer) line(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.lines = append(w.lines, string(text))
}

// add writes an entry as a writer does: its four members first.
func (w *writer) add(kind, id string, payload object) string {
	return w.addAt(kind, id, w.now(), payload)
}

func (w *writer) addAt(kind, id, at string, payload object) string {
	body, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	parent := w.leaf
	switch {
	case w.one(40):
		parent = "nowhere-" + w.name
	case w.one(30):
		parent = ""
	case w.one(15) && len(w.ids) > 0:
		parent = pick(w.generator, w.ids)
	}
	w.put(written{kind, id, at, string(body)}, parent)
	if kind != "leaf" {
		w.written = append(w.written, written{kind, id, at, string(body)})
	}
	return id
}

// put writes the line of an entry.
func (w *writer) put(e written, parent string) {
	named := "null"
	if parent != "" {
		named = quote(parent)
	}
	w.lines = append(w.lines, fmt.Sprintf(`{"type":%s,"id":%s,"parent_id":%s,"timestamp":%s,%s:%s}`, quote(e.kind), quote(e.id), named, quote(e.at), quote(e.kind), e.body))
	if !slices.Contains(w.ids, e.id) {
		w.ids = append(w.ids, e.id)
		if w.leaf = e.id; e.kind == "leaf" {
			w.leaf = parent
		}
	}
}

func quote(s string) string { text, _ := json.Marshal(s); return string(text) }

// newID returns an id for an entry, now and then one that an earlier session has.
func (w *writer) newID() string {
	if w.one(12) && len(w.all) > 0 {
		return pick(w.generator, w.all)
	}
	return w.id()
}

func (w *writer) id() string {
	w.n++
	if w.one(40) && len(w.ids) > 0 {
		return pick(w.generator, w.ids) // a second time: it does not count
	}
	return fmt.Sprintf("%s-%d", w.name, w.n)
}

func (w *writer) header(prefix string, i int) {
	h := object{"type": "session", "id": w.name, "version": 1, "timestamp": w.now(), "cwd": "/" + prefix}
	if i > 0 {
		h["relation"], h["parent_session"], h["continuation_index"] = "continuation", fmt.Sprintf("%s%d", prefix, i-1), i
	}
	switch w.IntN(30) {
	case 0:
		h["id"] = "renamed"
	case 1:
		h["version"] = pick(w.generator, []any{2, 1.5, json.RawMessage("1e0"), json.RawMessage("10000000000000000000000"), "x"})
	case 2:
		return // without one
	case 3:
		w.entry() // not the first line
	case 4:
		if w.line(h); w.one(2) {
			h["relation"] = "fork"
		}
	case 5:
		delete(h, "continuation_index")
	}
	w.line(h)
}

// begin writes what a continuation begins with.
func (w *writer) begin(before []written, previous, prefix string) {
	if w.one(12) {
		return
	}
	for _, e := range before {
		keep := strings.Contains(e.body, `"role":"system"`) || e.kind == "message" && w.one(3) || w.one(8)
		if keep && !w.one(6) {
			w.put(e, w.leaf)
		}
	}
	if w.one(10) {
		w.entry() // none of a copy
	}
	if w.one(15) && len(before) > 0 {
		w.put(pick(w.generator, before), pick(w.generator, []string{"", "nowhere", w.leaf}))
	}
	if w.one(15) {
		w.damage()
	}
	for w.one(10) {
		w.marker(previous, prefix) // several
	}
	if w.one(10) {
		return
	}
	w.marker(previous, prefix)
	if w.one(20) { // its rest is lost
		last := len(w.lines) - 1
		w.lines[last] = strings.Replace(w.lines[last], `":{"`, `":{#`, 1)
	}
	if w.one(8) && len(before) > 0 { // too late to be a copy
		w.put(pick(w.generator, before), w.leaf)
	}
}

func (w *writer) marker(previous, prefix string) {
	m := object{"session": previous}
	if !w.one(5) {
		m["original"] = prefix + "0"
	}
	w.add("continues", w.newID(), m)
}

func text(s string) []any {
	return []any{object{"type": "text", "text": object{"content": s}}}
}

func (w *writer) message(role, category string, content []any) {
	if content == nil {
		content = text(fmt.Sprintf("text %d", w.IntN(12)))
	}
	m, at := object{"role": role, "content": content}, w.now()
	if category != "" {
		m["category"] = category
	}
	if role == "assistant" && w.one(2) {
		m["model"] = pick(w.generator, []string{"big", "small"})
	}
	w.addAt("message", w.newID(), at, m)
}

// record writes where the session goes on.
func (w *writer) record(next string) {
	if w.one(15) {
		return // it does not know
	}
	data := object{"session": next, "of": w.name}
	if w.one(15) {
		w.custom("coppice.continued_to", object{"session": "elsewhere", "of": "another"})
	}
	if w.one(8) { // another was there before, and was lost
		gone := w.name + "x"
		w.lost = append(w.lost, gone)
		w.custom("coppice.continued_to", object{"session": gone, "of": w.name})
		data["instead_of"] = gone
		if w.one(2) { // and came back
			w.returned(gone)
		}
	}
	w.custom("coppice.continued_to", data)
	if w.one(15) {
		w.custom("coppice.continued_to", object{"session": "second", "of": w.name})
	}
}

func (w *writer) returned(name string) {
	r := &writer{generator: w.generator, name: name, all: w.all}
	r.line(object{"type": "session", "id": name, "version": 1, "timestamp": w.now(), "relation": "continuation", "parent_session": w.name, "continuation_index": 1})
	r.begin(w.written, w.name, w.name[:1])
	for range 1 + w.IntN(4) {
		r.entry()
	}
	w.files[name] = []byte(strings.Join(r.lines, "\n") + "\n")
}

func (w *writer) custom(kind string, data object) string {
	return w.add("custom", w.id(), object{"custom_type": kind, "data": data})
}

// some names an entry: of this session, or now and then of another or of none.
func (w *writer) some() string {
	switch {
	case w.one(20) || len(w.ids) == 0:
		return "nothing"
	case w.one(10) && len(w.all) > 0:
		return pick(w.generator, w.all)
	}
	return pick(w.generator, w.ids)
}

// entry writes an entry of some kind.
func (w *writer) entry() {
	switch w.IntN(26) {
	case 0:
		w.add("label", w.id(), object{"target_id": w.some(), "label": pick(w.generator, []string{"here", "there", ""})})
	case 1:
		w.add("session_info", w.id(), object{"name": pick(w.generator, []string{"Garden", "Kitchen", "", ""})})
	case 2:
		w.custom("coppice.tags", object{pick(w.generator, []string{"add", "remove", "tags"}): []any{pick(w.generator, []string{"red", "green"})}})
	case 3:
		w.custom("coppice.pinned", object{"pinned": w.one(2)})
	case 4, 5:
		w.add("compaction", w.id(), object{"summary": fmt.Sprintf("summary %d", w.n), "first_kept_entry_id": w.some()})
	case 6:
		w.add("context_edit", w.id(), object{"target_id": w.some(), "replacement": pick(w.generator, []any{nil, text("edited")})})
	case 7:
		w.add("revert", w.id(), object{"target_id": w.some()})
	case 8:
		w.add("merge", w.id(), object{"from_id": w.some(), "summary": "merged", "entry_ids": []any{w.some(), w.some()}})
	case 9:
		if len(w.ids) > 0 {
			from := w.leaf
			w.leaf = pick(w.generator, w.ids)
			w.add("leaf", w.id(), object{"from_id": from})
		}
	case 10:
		w.damage()
	case 11:
		w.add("model_change", w.id(), object{"provider": "p", "model_id": pick(w.generator, []string{"big", "small"})})
	case 12:
		w.message("system", pick(w.generator, []string{"SYSTEM", "CONTEXT", ""}), nil)
	case 13:
		w.n++
		call := fmt.Sprintf("call-%d", w.n)
		w.called = append(w.called, call)
		w.message("assistant", "", []any{object{"type": "tool_use", "tool_use": object{"id": call, "name": "dig", "input": object{}}}})
	case 14:
		if len(w.called) > 0 {
			w.message("tool", "", []any{object{"type": "tool_result", "tool_result": object{"tool_use_id": pick(w.generator, w.called), "is_error": false, "content": "dug"}}})
		}
	case 15, 16, 17, 18:
		w.message("assistant", "", nil)
	default:
		w.message("user", "", nil)
	}
}

// damage spoils a line, or writes one again.
func (w *writer) damage() {
	if len(w.lines) < 2 {
		return
	}
	i := 1 + w.IntN(len(w.lines)-1)
	switch line := w.lines[i]; w.IntN(4) {
	case 0:
		w.lines[i] = line[:w.IntN(max(1, len(line)))] // torn, perhaps once more
	case 1:
		if at := strings.LastIndex(line, ":{"); at > 0 {
			w.lines[i] = line[:at] + "\x00\x00" + line[at+2:] // its rest is lost
		}
	case 2:
		w.lines = append(w.lines, line)
	case 3:
		w.lines[i] = "\x00\x00\x00\x00"
	}
}

// disturb does to the files what happens to files.
func (g *generator) disturb() {
	names := make([]string, 0, len(g.files))
	for name := range g.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		switch g.IntN(16) {
		case 0, 1:
			g.lose(name)
		case 2:
			g.lose(name)
			if i+1 < len(names) {
				g.lose(names[i+1]) // neighbours
			}
		case 3:
			g.files[name] = []byte("\x00\x00nothing that can be read\n")
		case 4:
			if text, there := g.files[name]; there {
				g.files[name+"-copy"] = text // under another name, with the same header
			}
		case 5:
			if text, there := g.files[name]; there { // a fork has the history of another session
				fork := strings.Replace(string(text), `"relation":"continuation"`, `"relation":"fork"`, 1)
				g.files[name+"-fork"] = []byte(strings.Replace(fork, `"id":"`+name+`"`, `"id":"`+name+`-fork"`, 1))
			}
		}
	}
}

func (g *generator) lose(name string) {
	delete(g.files, name)
	g.lost = append(g.lost, name)
}
