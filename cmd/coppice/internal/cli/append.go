package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
)

type appendFlags struct {
	entry, call string
	message     session.MessageEntry
	tokens      int
	failed      bool
	request     home.AppendRequest
}

// appendCommand is for programs: those that keep their conversations here call it for every
// message. So in a pipe it prints nothing but an id, and what has no flag can be given in a
// whole --entry.
func appendCommand(a *app) *cobra.Command {
	var f appendFlags
	cmd := &cobra.Command{
		Use:   "append ID [TEXT…|-]",
		Short: "Append a message and print its id",
		Long: "Appends a message to the conversation: the user's, unless --role or --call says\n" +
			"otherwise. Nothing answers it; coppice chat does. Its text is the arguments, or standard\n" +
			"input if there are none or it is -. With --entry, appends a whole entry in the form of\n" +
			"the log (see docs/format.md); id and timestamp are filled in if missing.\n\n" +
			"If another program appends at the same moment, both messages are kept, one after the\n" +
			"other. With --at, the message is appended only if the conversation still ends with\n" +
			"that entry; otherwise nothing is written and the exit code is 13.",
		Example: "  coppice append 7f3a91c2 \"Why does it fail?\"\n" +
			"  make test 2>&1 | coppice append 7f3a91c2 --call call_7 -\n" +
			"  coppice append 7f3a91c2 --entry - < entry.json",
		RunE: func(cmd *cobra.Command, args []string) error { return a.runAppend(cmd, args, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.message.Role, "role", session.RoleUser, "who says it: user (default), assistant, system, tool")
	flags.StringVar(&f.entry, "entry", "", "a whole entry as JSON; - reads it from standard input")
	flags.StringVar(&f.request.At, "at", "", "append only if this is still the last entry, or none")
	flags.StringVar(&f.message.Model, "model", "", "the model that answered")
	flags.StringVar(&f.message.Provider, "provider", "", "the model's provider")
	flags.StringVar(&f.message.Category, "category", "", "one of SYSTEM, CONTEXT, DIALOG and SYSTEM_OUTPUT")
	flags.StringVar(&f.message.StopReason, "stop-reason", "", "why the model stopped")
	flags.StringVar(&f.message.ResponseID, "response-id", "", "the provider's id of the response")
	flags.IntVar(&f.tokens, "tokens", 0, "how many tokens the message takes in a context")
	flags.StringVar(&f.call, "call", "", "the text is the result of the tool call with this id")
	flags.BoolVar(&f.failed, "error", false, "with --call: the tool failed")
	flags.BoolVar(&f.request.Force, "force", false, "append a result even if no call waits for it")
	cmd.MarkFlagsMutuallyExclusive("role", "entry")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(session.Roles(), cobra.ShellCompDirectiveNoFileComp))
	return a.withJSON(a.withRedact(cmd))
}

// runAppend settles which of the two forms was given, a message in parts or a whole entry,
// before the home is opened: a mistake in the command line must not wait for a store.
func (a *app) runAppend(cmd *cobra.Command, args []string, f *appendFlags) (err error) {
	f.request.Session = args[0]
	if cmd.Flags().Changed("entry") {
		f.request.Entry, err = a.givenEntry(args, f)
	} else {
		f.request.Message, err = a.givenMessage(cmd, args, f)
	}
	if err != nil {
		return err
	}
	return a.withHome(cmd.Context(), false, func(h *home.Home) error {
		appended, err := h.Entries.Append(cmd.Context(), f.request)
		if _, ok := errors.AsType[*home.ResultError](err); ok {
			return hinted(err, "--force appends it anyway, but no model will see it")
		}
		if err != nil {
			return err
		}
		return a.made(appended, appended.Entry, "appended "+render.ShortID(appended.Entry)+" to session "+render.ShortID(appended.Session))
	})
}

// givenMessage makes a message of the flags and the text.
func (a *app) givenMessage(cmd *cobra.Command, args []string, f *appendFlags) (*session.MessageEntry, error) {
	if f.failed && f.call == "" {
		return nil, misuse("--error needs --call: only the result of a tool call can be an error")
	}
	text, err := a.readText(args[1:])
	if err != nil {
		return nil, err
	}
	m := &f.message
	m.Content, m.Tokens = []session.Content{session.Text(text)}, ifGiven(cmd, "tokens", &f.tokens)
	if f.call != "" {
		if !cmd.Flags().Changed("role") {
			m.Role = session.RoleTool
		}
		m.Content[0] = session.ToolResult(f.call, text, f.failed)
	}
	return m, nil
}

// givenEntry reads the entry of --entry.
func (a *app) givenEntry(args []string, f *appendFlags) ([]byte, error) {
	if len(args) > 1 {
		return nil, misuse("--entry is the whole entry; leave the text out")
	}
	if f.entry == "-" {
		return io.ReadAll(a.stdin)
	}
	return []byte(f.entry), nil
}
