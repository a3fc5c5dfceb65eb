package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/agent/tools"
	chatui "github.com/coppice-dev/coppice/cmd/coppice/internal/tui/chat"
	display "github.com/coppice-dev/coppice/cmd/coppice/internal/tui/screen"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
)

type chatFlags struct {
	request      home.ChatRequest
	system       string
	images       []string
	fresh, print bool
	last         bool // continue the last conversation
	restores     bool // --restore was given
}

// chatCommand is one command for people and for scripts. Which of them it talks to follows from
// the terminals and --print, not from another name.
func chatCommand(a *app) *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use:   "chat [ID | TEXT…]",
		Short: "Talk to a model, and keep what is said",
		Long: "Continues a conversation, or begins a new one, which is created with the first\n" +
			"message. Until you choose a model (coppice config), a built-in one answers. It needs\n" +
			"no network and repeats what it hears.\n\n" +
			"Name the conversation with --restore, or as ID if that is the only argument and\n" +
			"there is no --print; --continue takes the last one in this directory. All other\n" +
			"arguments are TEXT.\n\n" +
			"With --print, or if there is no terminal, chat sends one message, prints the answer\n" +
			"as it arrives, and ends. The message is TEXT, standard input, or both. If the answer\n" +
			"is cut off at the token limit, the exit code is 3.\n\n" +
			"The model gets tools only with --tools or --mcp: --tools=read,grep gives it these,\n" +
			"and --tools alone gives it all. They work in the conversation's directory. Chat asks\n" +
			"you before each call that could change something, unless an --allow rule covers it;\n" +
			"with --print, it refuses such a call.\n\n" +
			"On a terminal, @FILE in a message sends a file or an image with it, !COMMAND runs a\n" +
			"command, and /help lists everything else.",
		Example: "  coppice chat\n" +
			"  coppice chat --continue\n" +
			"  coppice chat -r ledger \"And the tests?\"\n" +
			"  git diff | coppice chat -p \"Review this diff:\"\n" +
			"  coppice chat --tools --allow 'bash(go test *)'",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.restores = cmd.Flags().Changed("restore")
			return a.runChat(cmd.Context(), args, &f)
		},
	}
	flags := cmd.Flags()
	f.addRestore(cmd)
	flags.BoolVar(&f.fresh, "new", false, "begin a new conversation; all arguments are text")
	flags.StringVar(&f.request.Title, "title", "", "begin a new conversation with this title")
	flags.StringVar(&f.request.Provider, "provider", "", "who answers, such as anthropic")
	flags.StringVarP(&f.request.Model, "model", "m", "", "the model, or provider/model")
	flags.StringVar(&f.request.Thinking, "thinking", "", "how much the model thinks: a `level` from off to xhigh")
	flags.StringVar(&f.request.CWD, "cwd", "", "the directory for tools, if not the conversation's")
	flags.StringVar(&f.system, "system", "", "a `file` with instructions for the model")
	flags.StringArrayVar(&f.request.Context, "context", nil, "a `file` for the model to read; can be repeated")
	flags.StringArrayVar(&f.images, "image", nil, "an image `file` for the first message; can be repeated")
	flags.StringArrayVar(&f.request.Servers, "mcp", nil, "give the model the tools of an MCP server: its `command`")
	flags.StringSliceVar(&f.request.Tools, "tools", nil, "give the model tools: all, or a `list`")
	flags.Lookup("tools").NoOptDefVal = unnamedTools
	flags.StringArrayVar(&f.request.Allow, "allow", nil, "approve calls by a `rule`: read, bash(go test *)")
	flags.StringArrayVar(&f.request.Deny, "deny", nil, "refuse calls by a `rule`, even if they are allowed")
	flags.StringSliceVar(&f.request.Env, "env", nil, "pass `variables` that look like keys to commands")
	flags.BoolVarP(&f.print, "print", "p", false, "send one message, print the answer, and end")
	cmd.MarkFlagsMutuallyExclusive("new", "restore", "continue")
	_ = cmd.RegisterFlagCompletionFunc("restore", a.completeSession(1))
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(home.Providers(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("model", a.completeModel)
	_ = cmd.RegisterFlagCompletionFunc("thinking", cobra.FixedCompletions(provider.ThinkingLevels, cobra.ShellCompDirectiveNoFileComp))
	return a.withJSON(a.withRedact(cmd))
}

// addRestore gives a command the flags that say which conversation to continue.
func (f *chatFlags) addRestore(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.request.Session, "restore", "r", "", "continue the conversation `ID`")
	cmd.Flags().BoolVarP(&f.last, "continue", "c", false, "continue the last conversation here")
}

// impliedChat adds the command chat to a command line that begins with a flag of it: coppice
// -c and coppice -p TEXT are short for coppice chat -c and so on.
func impliedChat(root *cobra.Command, args []string) []string {
	chat, _, err := root.Find([]string{"chat"})
	if err != nil {
		return args
	}
	for i := 0; i < len(args) && len(args[i]) > 1 && args[i][0] == '-' && args[i] != "--"; i++ {
		name, _, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		flag := chat.Flags().Lookup(name)
		if !strings.HasPrefix(args[i], "--") {
			flag = chat.Flags().ShorthandLookup(name[:1])
		}
		if flag != nil && root.PersistentFlags().Lookup(flag.Name) == nil && flag.Name != "help" && flag.Name != "json" {
			return append([]string{"chat"}, args...)
		}
		if every := root.PersistentFlags().Lookup(name); every != nil && !hasValue {
			i++ // its value
		}
	}
	return args
}

// runChat refuses what cannot work before anything is opened, and then chooses between the chat
// on a terminal and the answer in a pipe. With --json there is no screen to draw on.
func (a *app) runChat(ctx context.Context, args []string, f *chatFlags) error {
	switch {
	case f.restores && f.request.Session == "":
		return misuse("--restore needs the name of a session, and got an empty one")
	case slices.Contains(f.request.Tools, unnamedTools):
		if err := f.allTools(args); err != nil {
			return err
		}
	}
	if f.request.Title != "" && (f.last || f.request.Session != "") {
		return misuse("--title is for a new conversation; %s names an existing one", a.command("rename", nil))
	}
	if f.system != "" {
		var err error
		if f.request.System, err = home.ReadInstructions(f.system); err != nil {
			return err
		}
	}
	keys := terminalOf(a.stdin)
	if f.print || a.flags.json || keys == nil || !a.isTerminal() {
		return a.printChat(ctx, args, keys != nil, f)
	}
	return a.chatOnTerminal(ctx, keys, args, f)
}

// unnamedTools is the value of --tools without one.
const unnamedTools = "all of them"

// allTools gives the model all tools, because no value follows --tools. In "--tools read", read
// is not a value but an argument, which is easily overlooked.
func (f *chatFlags) allTools(args []string) error {
	for _, arg := range args {
		if slices.ContainsFunc(strings.Split(arg, ","), func(name string) bool {
			return name == home.AllTools || name == home.NoTools || slices.Contains(tools.Names(), strings.TrimSpace(name))
		}) {
			return hinted(misuse("%q is not taken as a list of tools, because there is no = before it", arg),
				fmt.Sprintf("--tools=%s gives it those; to say %s to a model with all tools, write --tools=%s", plain.ShellWord(arg), plain.ShellWord(arg), home.AllTools))
		}
	}
	f.request.Tools = []string{home.AllTools}
	return nil
}

// newestIn returns the most recently active conversation about a directory, and not about one
// below it, in which something was said.
func (a *app) newestIn(ctx context.Context, h *home.Home, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	r := home.ListRequest{CWD: dir}
	for {
		list, err := h.Sessions.List(ctx, r)
		if err != nil {
			return "", err
		}
		at := slices.IndexFunc(list.Sessions, func(s home.SessionInfo) bool { return s.CWD == dir && s.Messages > 0 })
		if at >= 0 {
			return list.Sessions[at].ID, nil
		}
		if r.After = list.Next; r.After == "" {
			return "", hinted(&session.Error{Op: "continue", Kind: session.ErrNotExist, Err: fmt.Errorf("no conversation is about %s", dir)},
				a.command("ls", nil)+" lists those about other directories, and --restore continues one")
		}
	}
}

// begin finds out which conversation is meant, and returns what is said first. other is a
// message from standard input. The only argument names a conversation, unless a flag does,
// the message is to be printed, or nothing else could be the message.
func (a *app) begin(ctx context.Context, h *home.Home, f *chatFlags, args []string, other string, once bool) (string, error) {
	if f.last {
		var err error
		if f.request.Session, err = a.newestIn(ctx, h, f.request.CWD); err != nil {
			return "", err
		}
	}
	isName := len(args) == 1 && f.request.Session == "" && f.request.Title == "" && !f.fresh && !f.print && !(once && other == "")
	if isName {
		_, err := h.Sessions.Resolve(ctx, home.SessionRequest{Session: args[0]})
		switch {
		case err == nil:
			f.request.Session = args[0]
			return other, nil
		case home.KindOf(err) != home.KindNotFound, !strings.ContainsFunc(args[0], unicode.IsSpace): // nobody types an id like that
			return "", a.orNew(err, args)
		}
	}
	texts := []string{strings.Join(args, " "), other}
	return strings.TrimSpace(strings.Join(texts, "\n\n")), nil
}

// orNew adds to the error about a conversation that was not found how to begin one: the
// argument may have been meant as text.
func (a *app) orNew(err error, args []string) error {
	_, isAmbiguous := errors.AsType[*home.AmbiguousError](err)
	if !isAmbiguous && kindOfError(err) != home.KindNotFound {
		return err
	}
	hint := "to begin a new conversation with this text: " + a.command("chat --new", args)
	if near := home.HintOf(err); near != "" {
		hint = near + "; " + hint
	}
	return hinted(err, hint)
}

// chatOnTerminal talks until the person leaves.
func (a *app) chatOnTerminal(ctx context.Context, keys *os.File, args []string, f *chatFlags) (err error) {
	t, err := display.OpenTerminal(keys, a.screen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	s := display.New(a.screen, func() (int, int) {
		_, rows := t.Size()
		return a.width(), rows
	})
	h, err := a.openHome(ctx, "", home.Options{
		Create: true,
		Notify: func(n home.Notice) { s.Print(a.noticeRows(n)...) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	prompt, err := a.begin(ctx, h, f, args, "", false)
	if err != nil {
		return err
	}
	return chatui.Run(ctx, chatui.Options{
		Home: h, Request: f.request, Prompt: prompt, Images: f.images,
		Keys: t, Edit: a.editOn(t, keys), Screen: s, Color: a.color, Resized: t.Resized(), Suspend: t.Suspend, Explain: a.explain,
	})
}

// noticeRows words a notice for a screen that other code draws.
func (a *app) noticeRows(n home.Notice) []string {
	var b strings.Builder
	words := &app{talk: newTalk(io.Discard, &b, a.getenv)}
	words.sayNotice(n)
	_ = words.err.Flush() // to memory
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}
