package app

import (
	"context"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/home"
)

func (r *tree) keys() []key {
	row := r.row()
	mark := key{keys: []string{"space"}, help: "mark", do: r.mark}
	compare := key{keys: []string{"="}, help: "compare", do: r.compare}
	whyNot := ""
	switch {
	case row == nil:
		whyNot = "nothing is selected"
	case row.Folded > 0:
		whyNot = "these are several entries; → shows them"
	}
	mark.why, compare.why = whyNot, whyNot
	if row != nil && slices.Contains(r.marks, row.Entry) {
		mark.help = "unmark"
	}
	if whyNot == "" && r.compared() == nil {
		compare.why = "Space marks the entry to compare with"
	}
	keys := append(listKeys(r.list),
		key{keys: []string{"enter"}, help: "open", do: r.openEntry},
		mark, compare,
		key{keys: []string{"left"}, help: "fork before", group: moving, do: func() tea.Cmd { return r.seekFork(true) }},
		key{keys: []string{"right"}, help: "next fork", group: moving, do: r.right},
		key{keys: []string{"z"}, help: "fold", group: reading, do: r.foldAll},
	)
	if row != nil && row.Folded > 0 {
		keys[len(keys)-2].help = "unfold"
	}
	if r.fold == treeWhole {
		keys[len(keys)-1].help = "fold"
	} else {
		keys[len(keys)-1].help = "show all"
	}
	var n *node
	if whyNot == "" {
		n = &node{row.Entry, row.Label, row.Leaf}
	}
	keys = append(keys, r.nodeKeys(r.id, n)...)
	for i := range keys {
		do := keys[i].do
		keys[i].do = func() tea.Cmd { return tea.Batch(do(), r.load()) }
	}
	return keys
}

// openEntry shows the conversation at the selected entry, or unfolds it.
func (r *tree) openEntry() tea.Cmd {
	row := r.row()
	switch {
	case row == nil:
		return nil
	case row.Folded > 0:
		return r.foldAll()
	}
	if r.conversation == nil || r.want != r.wanted() || r.pane.asked.busy() {
		r.begin(&r.pane, r.wanted())
	}
	return r.App.open(r.conversation)
}

// foldAll folds the long runs of the tree, or shows all of them.
func (r *tree) foldAll() tea.Cmd {
	if r.fold == treeWhole {
		r.fold = treeFolded
	} else {
		r.fold = treeWhole
	}
	return r.goTo(r.entry())
}

func (r *tree) right() tea.Cmd {
	if row := r.row(); row != nil && row.Folded > 0 {
		return r.foldAll()
	}
	return r.seekFork(false)
}

// forkFound is an entry at which the conversation branches; "" if there is none, and words say so.
type forkFound struct{ entry, words string }

// seekFork goes to the next entry of the selected branch at which others begin.
func (r *tree) seekFork(back bool) tea.Cmd {
	at := r.entry()
	if at == "" {
		return nil
	}
	return r.call(func(ctx context.Context) tea.Msg {
		here, err := r.Home.Entries.Rows(ctx, home.RowsRequest{Session: r.id, At: at, Count: 1, Limit: 1})
		if err != nil {
			return err
		}
		q := home.SeekRequest{Session: r.id, Leaf: here.Leaf, From: here.From + 1, Kind: "branch"}
		end, words := here.Leaf, "the branch ends here"
		if back {
			q.Back, q.From = true, here.From-1
			end, words = "", "the conversation begins here"
		}
		if q.From < 0 || q.From >= here.Total {
			return forkFound{"", words}
		}
		found, err := r.Home.Entries.Seek(ctx, q)
		switch {
		case err != nil:
			return err
		case found.Found:
			return forkFound{found.Entry, ""}
		case end == at:
			return forkFound{"", words}
		case back:
			first, err := r.Home.Entries.Rows(ctx, home.RowsRequest{Session: r.id, Leaf: at, Count: 1, Limit: 1})
			if err != nil {
				return err
			}
			end = first.Rows[0].Entry.ID
		}
		return forkFound{end, ""}
	})
}

// mark marks the selected entry, so that it can be compared with another. The last two count.
func (r *tree) mark() tea.Cmd {
	id := r.entry()
	clear(r.drawn)
	if i := slices.Index(r.marks, id); i >= 0 {
		r.marks = slices.Delete(r.marks, i, i+1)
		return nil
	}
	r.marks = append(r.marks, id)
	r.marks = r.marks[max(len(r.marks)-2, 0):]
	return nil
}

// compared returns the two entries to compare: those that are marked, or the marked and the selected
// one.
func (r *tree) compared() []string {
	switch two := r.marks; {
	case len(two) == 2:
		return two
	case len(two) == 1 && two[0] != r.entry():
		return []string{two[0], r.entry()}
	}
	return nil
}

func (r *tree) compare() tea.Cmd {
	two := r.compared()
	return r.App.open(newCompare(r.App, r.id, two[0], two[1]))
}
