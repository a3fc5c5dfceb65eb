package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

type appendFlags struct {
	role, entry               string
	model, provider, category string
	stopReason, responseID    string
	tokens                    int
	call                      string
	failed, force             bool
}

func appendCommand(a *app) *cobra.Command {
	var f appendFlags
	cmd := &cobra.Command{
		Use:   "append ID [TEXT|-]",
		Short: "Append an entry and print its id",
		Long: "Append adds a message after the leaf. Its text is the argument, or standard input\n" +
			"for - or for none. With --entry it adds a whole entry in the form of the log\n" +
			"(see docs/format.md); id and timestamp are filled in if they are missing.",
		Example: "  coppice append 0199 --role user \"Why does it fail?\"\n" +
			"  make test 2>&1 | coppice append 0199 --role tool --call call_7 -\n" +
			"  coppice append 0199 --entry '{\"type\":\"thinking_level\",\"thinking_level\":{\"thinking_level\":\"high\"}}'",
		GroupID:           "write",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeSession(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runAppend(cmd, args, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.role, "role", "", "who says it: user, assistant, system or tool")
	flags.StringVar(&f.entry, "entry", "", "a whole entry as JSON; - reads it from standard input")
	flags.StringVar(&f.model, "model", "", "the model that answered")
	flags.StringVar(&f.provider, "provider", "", "the model's provider")
	flags.StringVar(&f.category, "category", "", "one of SYSTEM, CONTEXT, DIALOG and SYSTEM_OUTPUT")
	flags.StringVar(&f.stopReason, "stop-reason", "", "why the model stopped")
	flags.StringVar(&f.responseID, "response-id", "", "the provider's id of the response")
	flags.IntVar(&f.tokens, "tokens", 0, "what the message costs in a context")
	flags.StringVar(&f.call, "call", "", "the text is the result of the tool call with this id")
	flags.BoolVar(&f.failed, "error", false, "with --call: the tool failed")
	flags.BoolVar(&f.force, "force", false, "append a result even if no call waits for it")
	cmd.MarkFlagsOneRequired("role", "entry")
	cmd.MarkFlagsMutuallyExclusive("role", "entry")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{"user", "assistant", "system", "tool"}, cobra.ShellCompDirectiveNoFileComp))
	return a.withRedact(cmd)
}

func (a *app) runAppend(cmd *cobra.Command, args []string, f *appendFlags) error {
	var e session.Entry
	var err error
	if cmd.Flags().Changed("entry") {
		e, err = a.givenEntry(args, f)
	} else {
		e, err = a.givenMessage(cmd, args, f)
	}
	if err != nil {
		return err
	}
	add := func(o opened) error {
		if leaf := o.LeafID(); e.ParentID != nil && e.Type != session.TypeLeaf && *e.ParentID != leaf {
			return usageError{fmt.Errorf("parent_id is %q, but the leaf is %q; leave it out, or go there first with coppice branch", *e.ParentID, leaf)}
		}
		if err := a.checkResults(cmd.Context(), o, &e, f); err != nil {
			return err
		}
		id, err := o.WithContext(cmd.Context()).AppendEntry(e)
		if cut, ok := errors.AsType[*session.CutError](err); ok {
			return usageError{cut}
		}
		if err != nil {
			return err
		}
		return a.print("%s", id)
	}
	if e.Message == nil { // what it is about is in a session that is there
		return a.withLink(cmd.Context(), args[0], "", add)
	}
	return a.withEnd(cmd.Context(), args[0], add)
}

// checkResults refuses a result that no call waits for, in the whole conversation. A
// person who types one has mistaken an id; who means it can insist.
func (a *app) checkResults(ctx context.Context, o opened, e *session.Entry, f *appendFlags) error {
	if f.force || e.Message == nil {
		return nil
	}
	whole := o.Session
	if !isAlone(o.chain) {
		chain, err := session.OpenChain(ctx, o.store, o.chain, a.options())
		if err != nil {
			return err
		}
		defer chain.Close()
		whole = chain
	}
	err := whole.CheckResults(e)
	refused, ok := errors.AsType[*session.Error](err)
	if !ok || !errors.Is(err, session.ErrInvalid) {
		return err
	}
	return usageError{&session.Error{Op: "append", Name: o.name, Err: refused.Err, Hint: "--force appends it all the same; no model will be sent it"}}
}

// givenMessage makes a message of the flags and the text.
func (a *app) givenMessage(cmd *cobra.Command, args []string, f *appendFlags) (session.Entry, error) {
	if f.failed && f.call == "" {
		return session.Entry{}, usageError{errors.New("--error needs --call: it is said of a tool's result")}
	}
	if f.tokens < 0 {
		return session.Entry{}, usageError{fmt.Errorf("--tokens is %d; it must not be negative", f.tokens)}
	}
	if err := session.CheckRole(f.role); err != nil {
		return session.Entry{}, usageError{fmt.Errorf("--role: %w", err)}
	}
	if err := checkCategory(f.category); err != nil {
		return session.Entry{}, usageError{fmt.Errorf("--category: %w", err)}
	}
	text, err := a.readText(args[1:])
	if err != nil {
		return session.Entry{}, err
	}
	if text == "" && f.call == "" {
		return session.Entry{}, usageError{errors.New("the message is empty: give its text as an argument or on standard input")}
	}
	m := &session.MessageEntry{
		Role: f.role, Model: f.model, Provider: f.provider, Category: f.category,
		StopReason: f.stopReason, ResponseID: f.responseID, Content: []session.Content{session.Text(text)},
	}
	if cmd.Flags().Changed("tokens") {
		m.Tokens = &f.tokens
	}
	if f.call != "" {
		m.Content[0] = session.ToolResult(f.call, text, f.failed)
	}
	return session.Entry{Type: session.TypeMessage, Message: m}, nil
}

// givenEntry reads and checks the entry of --entry.
func (a *app) givenEntry(args []string, f *appendFlags) (session.Entry, error) {
	if len(args) > 1 {
		return session.Entry{}, usageError{errors.New("--entry is the whole entry; a text cannot be given as well")}
	}
	from, text := "--entry", []byte(f.entry)
	if f.entry == "-" {
		var err error
		from = "the entry on standard input"
		if text, err = io.ReadAll(a.stdin); err != nil {
			return session.Entry{}, err
		}
	}
	e, err := session.ParseEntry(text)
	if err != nil {
		return e, usageError{fmt.Errorf("%s: %w", from, err)}
	}
	if e.Message != nil {
		if err := checkCategory(e.Message.Category); err != nil {
			return e, usageError{fmt.Errorf("%s: message.category: %w", from, err)}
		}
	}
	return e, nil
}

// checkCategory refuses a category that the window would not know.
func checkCategory(name string) error {
	if name == "" {
		return nil
	}
	_, err := window.ParseCategory(name)
	return err
}
