package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
)

// resumeCommand brings a person back to where they were: the directory, the agent and the
// conversation. Without a name it takes the last one, which is the one that people mean most
// often.
func resumeCommand(a *app) *cobra.Command {
	r := home.ResumeRequest{Session: home.LastSession}
	var printOnly bool
	cmd := &cobra.Command{
		Use:   "resume [ID]",
		Short: "Continue a conversation in its agent",
		Long: "Changes to the directory of a conversation and starts the agent you held it with,\n" +
			"where you left off: claude --resume, codex resume, gemini --resume, pi --session\n" +
			"and so on. A conversation of Coppice's own continues in coppice chat. Without an ID,\n" +
			"it takes the most recently active conversation.\n\n" +
			"With --in, it continues in another agent: it first writes the conversation into\n" +
			"that agent's files, and lists what they cannot hold. It does the same if the agent\n" +
			"has deleted the conversation. Files of the agent's own are never overwritten. A file\n" +
			"that Coppice wrote earlier is replaced, and kept as .bak, once everything in it has\n" +
			"been imported. --print prints the command instead of running it.",
		Example: "  coppice resume\n  coppice resume 7f3a91c2 --in codex\n  coppice resume 7f3a91c2 --print",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				r.Session = args[0]
			}
			return a.runResume(cmd, r, printOnly)
		},
	}
	cmd.Flags().StringVar(&r.In, "in", "", "another `agent`, such as codex")
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the command instead of running it")
	return a.withJSON(cmd)
}

// runResume closes the home before the agent starts, because that takes the place of this
// program and may write to the same files.
func (a *app) runResume(cmd *cobra.Command, r home.ResumeRequest, printOnly bool) error {
	var found *home.ResumeResult
	err := a.withHome(cmd.Context(), false, func(h *home.Home) (err error) {
		found, err = h.Transfer.Resume(cmd.Context(), r)
		return err
	})
	if err != nil {
		return a.hintResume(err, &r)
	}
	for _, path := range found.Written {
		a.say("wrote %s", path)
	}
	a.sayLosses(found.Losses)
	own := found.Command == nil // see ResumeResult
	if own {
		found.Command = []string{"coppice", "chat", found.Session}
	}
	switch {
	case a.flags.json:
		return a.printJSON(found)
	case printOnly:
		return a.print("%s", found.Line())
	}
	if own {
		return a.resumeChat(cmd.Context(), found)
	}
	return a.start(found)
}

// resumeChat continues a conversation that no other program has held, in its directory.
func (a *app) resumeChat(ctx context.Context, found *home.ResumeResult) error {
	// A relative name means something else in the other directory.
	whole, err := a.settings.Absolute("")
	if err != nil {
		return err
	}
	a.flags.dir = whole
	if err := a.settle(); err != nil {
		return err
	}
	if err := enter(found.Dir); err != nil {
		return err
	}
	return a.runChat(ctx, nil, &chatFlags{request: home.ChatRequest{Session: found.Session}})
}

// enter changes to the directory of a conversation, if it has one.
func enter(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.Chdir(dir); err != nil {
		return hinted(fmt.Errorf("resume: %w", err), "the conversation belongs to that directory; --print prints the command")
	}
	return nil
}

// hintResume names the commands that help if another file is in the way.
func (a *app) hintResume(err error, r *home.ResumeRequest) error {
	there, ok := errors.AsType[*session.Error](err)
	if !ok || home.KindOf(err) != home.KindExists || there.Path == "" {
		return err
	}
	return hinted(err, a.command("import", []string{there.Path})+" imports what the agent added; "+
		a.command("export", []string{r.Session}, "--to", cmp.Or(r.In, "AGENT"), "--force")+" replaces the file and keeps it as .bak")
}

// start runs the agent in place of this program, if the system can do that.
func (a *app) start(found *home.ResumeResult) error {
	program, err := exec.LookPath(found.Command[0])
	if err != nil {
		return hinted(fmt.Errorf("resume: %s is not installed, or not on the PATH", found.Command[0]),
			"--in continues in another agent, --print prints the command")
	}
	if err := enter(found.Dir); err != nil {
		return err
	}
	if err := errors.Join(a.out.Flush(), a.err.Flush()); err != nil {
		return err
	}
	if len(found.Load) > 0 {
		load := exec.Command(program, found.Load[1:]...) // the same program
		load.Stdout, load.Stderr = os.Stderr, os.Stderr
		if err := load.Run(); err != nil {
			return hinted(fmt.Errorf("resume: %s: %w", plain.Command(found.Load...), err), "--print prints the commands")
		}
	}
	return become(program, found.Command)
}
