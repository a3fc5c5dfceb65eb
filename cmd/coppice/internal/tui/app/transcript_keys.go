package app

import (
	"slices"

	tea "charm.land/bubbletea/v2"
)

func (r *transcript) keys() []key {
	keys := append(listKeys(r.list), reading.in(r.readingKeys()...)...)
	for _, k := range r.nodeKeys(r.id, r.selected()) {
		if k.keys[0] != "y" && k.keys[0] != "O" { // there are wider ones here
			keys = append(keys, k)
		}
	}
	return r.loading(keys)
}

// loading reads what comes into sight after each key.
func (r *transcript) loading(keys []key) []key {
	for i := range keys {
		do := keys[i].do
		keys[i].do = func() tea.Cmd {
			r.going = nil
			return tea.Batch(do(), r.load())
		}
	}
	return keys
}

func (r *transcript) readingKeys() []key {
	row, nothing := r.pages.at(r.list.Cursor()), ""
	if row == nil {
		nothing = "nothing is selected"
	}
	fold := key{keys: []string{"space"}, help: "open", do: r.fold}
	switch {
	case !hasCalls(row) && !hasThinking(row) && (row == nil || !row.Cut):
		fold.why = "nothing in it is folded"
	case row != nil && r.isOpen(row):
		fold.help = "fold"
	}
	enter := fold
	enter.keys = []string{"enter"}
	if row != nil && len(row.Subagents) > 0 {
		enter = key{keys: []string{"enter"}, help: "subagent", group: here, do: r.openSubagent}
	} else {
		enter.rare = true
	}
	keys := []key{
		enter, fold,
		{keys: []string{"t"}, help: "tree", group: windows, do: func() tea.Cmd { return r.App.open(newTree(r.App, r.id, r.entry())) }},
	}
	keys = append(keys, branching.in(r.branchKeys()...)...)
	for _, jump := range []struct{ key, back, kind, help string }{
		{"p", "P", "prompt", "prompt"}, {"e", "E", "error", "error"}, {"d", "D", "edit", "edit"}, {"m", "M", "compaction", "compaction"},
	} {
		keys = append(keys,
			key{keys: []string{jump.key}, help: jump.help, group: moving, do: func() tea.Cmd { return r.seek(jump.kind, false) }},
			key{keys: []string{jump.back}, help: "previous " + jump.help, group: moving, rare: true, do: func() tea.Cmd { return r.seek(jump.kind, true) }})
	}
	return append(keys,
		key{keys: []string{"z"}, help: "fold tools", do: r.foldAll},
		key{keys: []string{"Z"}, help: "fold thinking", do: r.foldThinking},
		key{keys: []string{"O"}, help: "to your editor or pager", why: nothing, rare: true, do: r.askWhatOutside},
		key{keys: []string{"y"}, help: "copy", group: acting, rare: true, do: r.copyEntry},
		key{keys: []string{"x"}, help: "context", group: windows, rare: true, do: func() tea.Cmd { return r.App.open(newContext(r.App, r.id, r.entry())) }})
}

func (r *transcript) branchKeys() []key {
	if r.fork() == nil {
		return []key{
			{keys: []string{"]"}, help: "next fork", do: func() tea.Cmd { return r.seek("branch", false) }},
			{keys: []string{"["}, help: "previous fork", rare: true, do: func() tea.Cmd { return r.seek("branch", true) }},
		}
	}
	return []key{
		{keys: []string{"]"}, help: "other branch", do: func() tea.Cmd { return r.turn(1) }},
		{keys: []string{"["}, help: "branch before", rare: true, do: func() tea.Cmd { return r.turn(-1) }},
	}
}

// openSubagent goes to the session that a call started.
func (r *transcript) openSubagent() tea.Cmd {
	names := r.pages.at(r.list.Cursor()).Subagents
	if len(names) == 1 {
		return r.App.open(newTranscript(r.App, names[0], ""))
	}
	var answers []answer
	for i, name := range names[:min(len(names), 9)] {
		answers = append(answers, answer{string(rune('1' + i)), name, func() tea.Cmd { return r.App.open(newTranscript(r.App, name, "")) }})
	}
	r.choose("Which subagent?", answers...)
	return nil
}

// branches are the ways on from a place, in an order that does not change when another one is shown.
type branches struct {
	ids []string
	now int // which of them is shown; -1 if none is
}

// forkAt returns the ways on from an entry, or nil if there is only one. Before the first entry, at
// -1, those are the beginnings of the conversation.
func (r *transcript) forkAt(i int) *branches {
	others := r.roots
	if i >= 0 {
		row := r.pages.at(i)
		if row == nil {
			return nil
		}
		others = row.Others
	}
	if len(others) == 0 {
		return nil
	}
	b := &branches{now: -1}
	for _, other := range others {
		b.ids = append(b.ids, other.Entry)
	}
	if next := r.pages.at(i + 1); next != nil {
		b.ids = append(b.ids, next.Entry.ID)
		slices.Sort(b.ids)
		b.now = slices.Index(b.ids, next.Entry.ID)
	}
	return b
}

// forkOf returns the ways on from an entry or from the answers that are drawn with it.
func (r *transcript) forkOf(i int) *branches {
	for j := i; j <= r.lastOf(i); j++ {
		if b := r.forkAt(j); b != nil {
			return b
		}
	}
	return nil
}

// fork returns the branches between which one can turn at the selected entry.
func (r *transcript) fork() *branches {
	i := r.list.Cursor()
	if b := r.forkOf(i); b != nil {
		return b
	}
	if i == 0 {
		return r.forkAt(-1)
	}
	return nil
}

// turn shows another branch.
func (r *transcript) turn(step int) tea.Cmd {
	b := r.fork()
	n := len(b.ids)
	return r.reopen(b.ids[(b.now+step+n)%n], true)
}

// selected returns what can be done something with.
func (r *transcript) selected() *node {
	row := r.pages.at(r.list.Cursor())
	if row == nil {
		return nil
	}
	return &node{id: row.Entry.ID, label: row.Label, isLeaf: row.Entry.ID == r.leaf}
}
