package app

import (
	"context"
	"reflect"

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

// nodeKeys are what can be done with an entry of a session; nil is none.
func (b *base) nodeKeys(session string, n *node) []key {
	why, whyBranch := "", ""
	if n == nil {
		why, whyBranch = "no entry is selected", "no entry is selected"
	} else if n.isLeaf {
		whyBranch = "the conversation ends here already"
	}
	return []key{
		{keys: []string{"b"}, help: "branch here", why: whyBranch, do: func() tea.Cmd { return b.act(b.branch(session, n)) }},
		{keys: []string{"l"}, help: "label", why: why, do: func() tea.Cmd { return b.askLabel(session, n) }},
		{keys: []string{"c"}, help: "chat from here", why: why, do: func() tea.Cmd { return b.chatFrom(session, n) }},
		{keys: []string{"f"}, help: "fork from here", why: why, do: func() tea.Cmd { return b.forkFrom(session, n) }},
		{keys: []string{"r"}, help: "resume from here", why: why, do: func() tea.Cmd { return b.askResume(session, n) }},
		{keys: []string{"K"}, help: "compact up to here", why: why, do: func() tea.Cmd { return b.askCompact(session, n) }},
	}
}

// branch moves the end of the conversation to an entry.
func (b *base) branch(session string, n *node) func(ctx context.Context) (done, error) {
	return func(ctx context.Context) (done, error) {
		moved, err := b.Home.Entries.Branch(ctx, home.BranchRequest{Session: session, Entry: n.id})
		if err != nil {
			return done{}, err
		}
		return done{what: "the conversation continues from " + n.name(), undo: func(ctx context.Context) error {
			_, err := b.Home.Entries.Branch(ctx, home.BranchRequest{Session: session, Entry: moved.Left})
			return err
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
		return b.act(func(ctx context.Context) (done, error) { return done{what, label(n.label)}, label(text)(ctx) })
	})
	return nil
}

// then is the message that something can be done next.
type then func() tea.Cmd

// chatFrom chats from an entry on.
func (b *base) chatFrom(session string, n *node) tea.Cmd {
	if n.isLeaf {
		return b.talk(b.Program("chat", session))
	}
	branch := b.branch(session, n)
	return func() tea.Msg {
		d, err := branch(b.App.ctx)
		if err != nil {
			return err
		}
		return then(func() tea.Cmd {
			b.undos = append(b.undos, undo{d.what, d.undo})
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
		return then(func() tea.Cmd {
			b.undos = append(b.undos, undo{"forked from " + n.name(), func(ctx context.Context) error {
				_, err := b.Home.Sessions.Remove(ctx, home.RemoveRequest{Session: forked.Session})
				return err
			}})
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
	p.input.ShowSuggestions = true
	p.input.SetSuggestions(agents)
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
			return done{what: "compacted up to " + n.name(), undo: func(ctx context.Context) error {
				_, err := b.Home.Entries.Revert(ctx, home.RevertRequest{Session: session, Entry: made.Entry})
				return err
			}}, nil
		})
	})
	return nil
}
