package app

import (
	"context"
	"reflect"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// node is an entry that something can be done with.
type node struct {
	id, label string
	isLeaf    bool // the conversation continues from it now
}

func (n *node) name() string { return render.OneLine(render.ShortID(n.id), 0) }

// nodeKeys are what can be done with an entry of a session, and with the session; nil is none.
func (b *base) nodeKeys(session string, n *node) []key {
	keys := branching.in(b.entryKeys(session, n)...)
	for _, k := range b.actions([]string{session}) {
		isTaken := func(had key) bool { return had.keys[0] == k.keys[0] }
		if !slices.ContainsFunc(keys, isTaken) {
			k.rare = true
			keys = append(keys, k)
		}
	}
	return keys
}

func (b *base) entryKeys(session string, n *node) []key {
	why, whyBranch := "", ""
	if n == nil {
		why, whyBranch = "no entry is selected", "no entry is selected"
	} else if n.isLeaf {
		whyBranch = "the conversation ends here already"
	}
	keys := []key{
		{keys: []string{"b"}, help: "branch here", why: whyBranch, do: func() tea.Cmd { return b.act(b.branch(session, n)) }},
		{keys: []string{"l"}, help: "label", why: why, do: func() tea.Cmd { return b.askLabel(session, n) }},
		{keys: []string{"K"}, help: "compact up to here", why: why, rare: true, do: func() tea.Cmd { return b.askCompact(session, n) }},
	}
	if n == nil {
		return keys
	}
	if n.isLeaf {
		return append(keys, key{keys: []string{"A"}, help: "resume in any agent", rare: true, do: func() tea.Cmd { return b.askResume(session, n) }})
	}
	return append(keys,
		key{keys: []string{"c"}, help: "chat from here", do: func() tea.Cmd { return b.chatFrom(session, n) }},
		key{keys: []string{"f"}, help: "fork from here", do: func() tea.Cmd { return b.forkFrom(session, n) }},
		key{keys: []string{"r"}, help: "resume from here", do: func() tea.Cmd { return b.askResume(session, n) }})
}

// branch moves the end of the conversation to an entry.
func (b *base) branch(session string, n *node) func(ctx context.Context) (done, error) {
	return func(ctx context.Context) (done, error) {
		moved, err := b.Home.Entries.Branch(ctx, home.BranchRequest{Session: session, Entry: n.id})
		if err != nil {
			return done{}, err
		}
		left := (&node{id: moved.Left}).name()
		return done{what: "moved: the conversation continues from " + n.name(), changed: []part{{session, "end"}}, undo: &undo{
			named: "the move to " + n.name(), now: "the conversation continues from " + left + " again",
			do: func(ctx context.Context) error {
				_, err := b.Home.Entries.Branch(ctx, home.BranchRequest{Session: session, Entry: moved.Left})
				return err
			},
		}}, nil
	}
}

func (b *base) askLabel(session string, n *node) tea.Cmd {
	label := func(text string) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			_, err := b.Home.Entries.Label(ctx, home.LabelRequest{Session: session, Entry: n.id, Label: text})
			return err
		}
	}
	b.ask("label:", n.label, func(text string) tea.Cmd {
		if text == n.label {
			return nil
		}
		what := "labelled " + text
		if text == "" {
			what = "removed the label " + n.label
		}
		back := &undo{do: label(n.label)}
		if n.label != "" {
			back.now = "the label is " + n.label + " again"
		}
		return b.act(func(ctx context.Context) (done, error) {
			return done{what: what, changed: []part{{session, "label of " + n.id}}, undo: back}, label(text)(ctx)
		})
	})
	return nil
}

// chatFrom chats from an entry on.
func (b *base) chatFrom(session string, n *node) tea.Cmd {
	branch := b.branch(session, n)
	return func() tea.Msg {
		d, err := branch(b.App.ctx)
		if err != nil {
			return err
		}
		return onward(func() tea.Cmd {
			b.record(d)
			return b.talk(b.Program("chat", session))
		})
	}
}

// forkThen copies a conversation up to an entry, and goes on with the copy.
func (b *base) forkThen(session string, n *node, next func(forked string) tea.Cmd) tea.Cmd {
	return func() tea.Msg {
		forked, err := b.Home.Sessions.Fork(b.App.ctx, home.ForkRequest{Session: session, At: n.id})
		if err != nil {
			return err
		}
		return onward(func() tea.Cmd {
			b.record(done{what: "forked from " + n.name(), changed: []part{{forked.Session, ""}}, undo: b.removeFork(forked.Session)})
			return next(forked.Session)
		})
	}
}

func (b *base) forkFrom(session string, n *node) tea.Cmd {
	return b.forkThen(session, n, func(forked string) tea.Cmd {
		b.say("forked from " + n.name() + "; this is the copy")
		return b.App.open(newTranscript(b.App, forked, ""))
	})
}

// askResume continues from an entry in any agent. The agent gets the path to the entry: if that is
// not where the conversation ends, then as a fork.
func (b *base) askResume(session string, n *node) tea.Cmd {
	agents := home.Choices(reflect.TypeFor[home.ResumeRequest](), "in")
	p := b.ask("continue in which agent (Tab completes):", "", func(in string) tea.Cmd {
		if in == "" {
			return nil
		}
		resume := func(session string) tea.Cmd { return b.talk(b.Program("resume", session, "--in", in)) }
		if n.isLeaf {
			return resume(session)
		}
		return b.forkThen(session, n, resume)
	})
	p.input.suggest(agents)
	return nil
}

// askCompact replaces what is before an entry with a summary.
func (b *base) askCompact(session string, n *node) tea.Cmd {
	b.ask("what was said before this entry (empty: a model writes it):", "", func(text string) tea.Cmd {
		q := home.CompactRequest{Session: session, FirstKept: n.id, Summary: text}
		if text == "" {
			q.Auto = &home.AutoRequest{}
		}
		b.say("compacting …")
		return b.act(func(ctx context.Context) (done, error) {
			made, err := b.Home.Entries.Compact(ctx, q)
			if err != nil {
				return done{}, err
			}
			return done{what: "compacted up to " + n.name(), changed: []part{{session, "end"}}, undo: &undo{
				now: "all of it is sent again",
				do: func(ctx context.Context) error {
					_, err := b.Home.Entries.Revert(ctx, home.RevertRequest{Session: session, Entry: made.Entry})
					return err
				},
			}}, nil
		})
	})
	return nil
}
