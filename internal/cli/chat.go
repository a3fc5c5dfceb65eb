package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/home"
	chatui "github.com/coppice-dev/coppice/internal/tui/chat"
	display "github.com/coppice-dev/coppice/internal/tui/screen"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
)

type chatFlags struct {
	request      home.ChatRequest
	hands        home.ChatHands
	toolbox      home.ToolboxRequest
	system       string
	images       []string
	fresh, print bool
	tools        []string
	typed        []string // the arguments, if the first one names the conversation
}

func chatCommand(a *app) *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use:   "chat [ID] [TEXT…]",
		Short: "Talk to a model, and keep what is said",
		Long: "Chat continues a conversation, or begins a new one, which is created with the\n" +
			"first message. Without any settings the built-in model answers, which needs no\n" +
			"network and repeats what it hears.\n\n" +
			"With --print, or if there is no terminal, chat sends one message, prints the\n" +
			"answer and ends. The message is TEXT, standard input, or both. With --new,\n" +
			"--title or --restore, all arguments are TEXT. So they are if the first one has\n" +
			"several words and names no session.\n\n" +
			"The model gets tools only with --tools or --mcp. Each call that could change\n" +
			"something is asked about, unless an --allow rule covers it; with --print, such a\n" +
			"call is refused.",
		Example: "  coppice chat\n" +
			"  coppice chat last\n" +
			"  git diff | coppice chat --print --new \"Review this:\"\n" +
			"  coppice chat --tools --allow 'bash(go test *)'",
		GroupID:           "write",
		ValidArgsFunction: a.completeSession(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("restore") && f.request.Session == "" {
				return errNoRestore
			}
			return a.runChat(cmd.Context(), args, &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.request.Session, "restore", "", "continue the conversation `ID`")
	flags.BoolVar(&f.fresh, "new", false, "begin a new conversation; all arguments are text")
	flags.StringVar(&f.request.Title, "title", "", "begin a new conversation with this title")
	flags.StringVar(&f.request.Provider, "provider", "", "who answers, such as anthropic")
	flags.StringVar(&f.request.Model, "model", "", "the model, or provider/model")
	flags.StringVar(&f.request.Thinking, "thinking", "", "how much it thinks: a `level` from off to xhigh")
	flags.StringVar(&f.system, "system", "", "a `file` with instructions for the model")
	flags.StringSliceVar(&f.request.Context, "context", nil, "`files` for the model to read")
	flags.StringSliceVar(&f.images, "image", nil, "image `files` to send with the first message")
	flags.StringArrayVar(&f.toolbox.Servers, "mcp", nil, "the `command` of a server whose tools the model gets")
	flags.StringSliceVar(&f.tools, "tools", nil, "give the model tools: all, or a `list`")
	flags.Lookup("tools").NoOptDefVal = home.AllTools
	flags.StringArrayVar(&f.toolbox.Allow, "allow", nil, "approve calls by a `rule`: read, bash(go test *)")
	flags.StringArrayVar(&f.toolbox.Deny, "deny", nil, "refuse calls by a `rule`, whatever is allowed")
	flags.BoolVar(&f.print, "print", false, "send one message, print the answer, and end")
	cmd.MarkFlagsMutuallyExclusive("new", "restore")
	_ = cmd.RegisterFlagCompletionFunc("restore", a.completeSession(1))
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(home.Providers(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("thinking", cobra.FixedCompletions(provider.ThinkingLevels, cobra.ShellCompDirectiveNoFileComp))
	return a.withJSON(a.withRedact(cmd))
}

var errNoRestore = usageError{errors.New("--restore needs the name of a session, and got an empty one")}

// restoreChat continues a conversation.
func (a *app) restoreChat(ctx context.Context, id string) error {
	if id == "" {
		return errNoRestore
	}
	return a.runChat(ctx, nil, &chatFlags{request: home.ChatRequest{Session: id}})
}

func (a *app) runChat(ctx context.Context, args []string, f *chatFlags) error {
	if f.request.Title != "" && f.request.Session != "" {
		return usageError{errors.New("--title is for a new conversation; coppice rename names an existing one")}
	}
	if f.request.Session == "" && !f.fresh && f.request.Title == "" && len(args) > 0 {
		f.typed = args
		f.request.Session, args = args[0], args[1:]
		if f.request.Session == "" {
			return usageError{errors.New("the session's name is empty")}
		}
	}
	f.request.CWD, _ = os.Getwd() // without one, the session is about no directory
	if f.system != "" {
		var err error
		if f.request.System, err = home.ReadInstructions(f.system); err != nil {
			return err
		}
	}
	keys, _ := a.stdin.(*os.File)
	isTyped := keys != nil && term.IsTerminal(int(keys.Fd()))
	if f.print || a.flags.json || !isTyped || !a.isTerminal() {
		text, err := a.chatText(args, isTyped)
		if err != nil {
			return err
		}
		return a.withHome(ctx, true, func(h *home.Home) error { return a.chatOnce(ctx, h, text, f) })
	}
	return a.chatOnTerminal(ctx, keys, strings.Join(args, " "), f)
}

// begin returns the first message. If the first argument has several words and names no
// session, it belongs to the message, and the conversation is new: nobody types an id like
// that.
func (f *chatFlags) begin(ctx context.Context, h *home.Home, text string) string {
	if f.typed == nil || !strings.ContainsFunc(f.typed[0], unicode.IsSpace) {
		return text
	}
	if _, err := h.Sessions.Resolve(ctx, home.SessionRequest{Session: f.typed[0]}); home.KindOf(err) != home.KindNotFound {
		return text // whatever else is wrong will be reported
	}
	f.request.Session = ""
	between := " "
	if len(f.typed) == 1 && text != "" { // the rest is from standard input
		between = "\n\n"
	}
	return strings.TrimSpace(f.typed[0] + between + text)
}

// chatText returns the message of a chat without a terminal.
func (a *app) chatText(args []string, isTyped bool) (string, error) {
	text := strings.Join(args, " ")
	if isTyped {
		return text, nil
	}
	piped, err := io.ReadAll(a.stdin)
	if err != nil {
		return "", err
	}
	if more := strings.TrimSpace(string(piped)); more != "" && text != "" {
		text += "\n\n" + more
	} else if more != "" {
		text = more
	}
	return text, nil
}

// chatOnce sends one message and prints the answer.
func (a *app) chatOnce(ctx context.Context, h *home.Home, text string, f *chatFlags) error {
	box, err := f.equip(ctx, h)
	if err != nil {
		return err
	}
	defer box.Close() // nothing is lost if a server does not end well
	f.hands.Approve = func(_ context.Context, call agent.Call) (agent.Decision, error) {
		a.sayRefused(call, box)
		return agent.Deny, nil
	}
	text = f.begin(ctx, h, text)
	c, err := h.Chat(ctx, f.request, f.hands)
	if err != nil {
		return f.orNew(err)
	}
	return errors.Join(a.converse(ctx, c, text, f.images), c.Close())
}

// orNew adds to the error about a conversation that was not found how to begin one: the
// arguments may have been meant as text.
func (f *chatFlags) orNew(err error) error {
	_, isAmbiguous := errors.AsType[*home.AmbiguousError](err)
	if err == nil || f.typed == nil || !isAmbiguous && kindOfError(err) != home.KindNotFound {
		return err
	}
	verb := "chat --new"
	if f.print {
		verb += " --print"
	}
	hint := "to begin a new conversation with this text: " + command(verb, f.typed)
	if near := home.HintOf(err); near != "" {
		hint = near + "; " + hint
	}
	return hinted(err, hint)
}

// sayRefused says that a call was refused because nobody is there, and which rule would
// have let it run.
func (a *app) sayRefused(call agent.Call, box *home.Toolbox) {
	why := ""
	if call.Reason != "" {
		why = " (" + render.OneLine(call.Reason, 0) + ")"
	}
	way := "--allow " + plain.ShellWord(box.RuleFor(call)) + " lets it run"
	if err := box.WhyNoRule(call); err != nil {
		way = "no --allow rule is for this call alone: " + err.Error()
	}
	a.say("refused a call of %s, which nobody can approve here%s; %s", call.Name, why, way)
}

// equip gives the model the tools that were asked for.
func (f *chatFlags) equip(ctx context.Context, h *home.Home) (*home.Toolbox, error) {
	box, err := h.Toolbox(ctx, f.toolbox)
	if err != nil {
		return nil, err
	}
	if f.hands.Tools, err = box.Tools(f.tools...); err != nil {
		return nil, errors.Join(err, box.Close())
	}
	return box, nil
}

func (a *app) converse(ctx context.Context, c *home.Chat, text string, images []string) error {
	content, err := c.Prompt(text, images...)
	if err != nil {
		if strings.TrimSpace(text) == "" && len(images) == 0 {
			err = hinted(err, "give the message as an argument, or on standard input")
		}
		return err
	}
	isNew, chosen := c.Conversation() == nil, c.Model()
	if chosen.Unreached != "" {
		info := chosen.Model.Info()
		a.say("%s %s answered before, but the settings do not say how to reach it; %s answers now",
			a.paint(yellow, "warning:"), chosen.Unreached, render.ModelName(info.Provider, info.Model))
	}
	worker, err := c.Start(ctx)
	if err != nil {
		return err
	}
	if isNew && !a.flags.json {
		a.say("session %s", render.ShortID(c.Conversation().ID()))
	}
	out, err := a.hearTurn(ctx, worker, content)
	said := ""
	if out != nil && out.Message != nil {
		said = session.TextOf(out.Message.Content)
	}
	if said != "" && !a.flags.json {
		err = errors.Join(err, a.printText(said))
	}
	switch {
	case err != nil:
		return err
	case out.Stop == agent.StopMaxSteps:
		a.say("the model was asked %s and is not done", render.Counted(out.Steps, "time", "times"))
		return errPartial
	case strings.TrimSpace(said) == "":
		return errNoText
	}
	return nil
}

// errNoText tells a script why there is nothing to read.
var errNoText = errors.New("the model's answer has no text")

// hearTurn runs a turn, and prints its events if a program asked for them.
func (a *app) hearTurn(ctx context.Context, worker *agent.Agent, content []session.Content) (out *agent.Outcome, err error) {
	news := worker.Subscribe(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, err = worker.Send(ctx, content...)
		news.Close()
	}()
	var printErr error
	for e := range news.Events(context.Background()) {
		switch {
		case !a.flags.json:
			a.sayEvent(e)
		case printErr == nil:
			printErr = a.printJSON(e)
		}
	}
	<-done
	return out, errors.Join(err, printErr)
}

// sayEvent reports what a person who waits for an answer should know. The agent reports
// another writer once in a turn.
func (a *app) sayEvent(e agent.Event) {
	warning := a.paint(yellow, "warning:")
	switch {
	case e.Type == agent.Retry && e.Retry != nil:
		a.say("%s %s; %s", warning, render.OneLine(e.Retry.Reason, 0), chatui.TryingAgain(e.Retry))
	case e.Type == agent.Error && errors.Is(e.Err, session.ErrConflict):
		a.say("%s somebody else writes to this session too; this answer is on a branch of its own, and coppice tree shows it", warning)
	case e.Type == agent.Error:
		text, _ := a.explain(e.Err)
		a.say("%s %s", warning, text)
	}
}

// chatOnTerminal talks until the person leaves.
func (a *app) chatOnTerminal(ctx context.Context, keys *os.File, prompt string, f *chatFlags) (err error) {
	t, err := display.OpenTerminal(keys, a.screen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	s := display.New(a.screen, func() (int, int) {
		_, rows := t.Size()
		return a.width(), rows
	})
	h, err := home.Open(ctx, "", &home.Options{
		Settings: a.settings, Create: true,
		Notify: func(n home.Notice) { s.Print(a.noticeRows(n)...) },
	})
	if err != nil {
		return err
	}
	box, err := f.equip(ctx, h)
	if err != nil {
		return errors.Join(err, h.Close())
	}
	defer box.Close() // nothing is lost if a server does not end well
	prompt = f.begin(ctx, h, prompt)
	err = chatui.Run(ctx, chatui.Options{
		Home: h, Request: f.request, Tools: f.hands.Tools, Prompt: prompt, Images: f.images, Toolbox: box,
		Keys: keys, Screen: s, Color: a.color, Resized: t.Resized(), Suspend: t.Suspend, Explain: a.explain,
	})
	return errors.Join(f.orNew(err), h.Close())
}

// noticeRows words a notice for a screen that other code draws.
func (a *app) noticeRows(n home.Notice) []string {
	var b strings.Builder
	words := &app{talk: newTalk(io.Discard, &b, a.getenv)}
	words.sayNotice(n)
	_ = words.err.Flush() // to memory
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}
