package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/server/mcp/install"
)

// mcpName is what agents call the server, unless a person chooses another name.
const mcpName = "coppice"

type mcpInstallFlags struct {
	mcpFlags
	name string
	yes  bool
}

// registerBoth adds what installing and uninstalling have in common.
func (f *mcpInstallFlags) registerBoth(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.name, "name", mcpName, "the server's name in the agent")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	for _, p := range install.Programs() {
		cmd.ValidArgs = append(cmd.ValidArgs, cobra.CompletionWithDesc(p.Name, p.Title))
	}
}

// mcpInstallCommand changes a file of another program, so it shows the change, asks, and keeps
// the old file.
func mcpInstallCommand(a *app) *cobra.Command {
	var f mcpInstallFlags
	cmd := &cobra.Command{
		Use:   "install [AGENT…]",
		Short: "Set up an agent to start the server",
		Long: "Adds the server to the configuration of an agent, which then starts it by itself. It\n" +
			"shows the change and asks before it writes, leaves the rest of the file alone, and\n" +
			"keeps the old file as FILE.before-coppice. Without AGENT it lists the agents that it\n" +
			"knows.",
		Example: "  coppice mcp install claude-code\n" +
			"  coppice mcp install codex gemini-cli --read-only --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listAgents(f.name)
			}
			entry, err := a.mcpEntry(&f)
			if err != nil {
				return err
			}
			return a.eachAgent(cmd.Context(), args, &f, func(p *install.Program, m install.Machine) (*install.Change, error) { return p.Add(m, entry) },
				"%s is set up in %s already", "%s starts it from now on: %s")
		},
	}
	f.register(cmd)
	f.registerBoth(cmd)
	return a.withJSON(cmd)
}

// mcpUninstallCommand undoes exactly what install did: a file that a person has changed since
// keeps the changes.
func mcpUninstallCommand(a *app) *cobra.Command {
	var f mcpInstallFlags
	cmd := &cobra.Command{
		Use:   "uninstall AGENT…",
		Short: "Remove the server from an agent's configuration",
		Long: "Removes what coppice mcp install wrote, and nothing else; a file that it made is\n" +
			"deleted if there is nothing else in it. It shows the change and asks before it\n" +
			"writes.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachAgent(cmd.Context(), args, &f, func(p *install.Program, m install.Machine) (*install.Change, error) { return p.Remove(m, f.name) },
				"%s does not have it: %s", "%s no longer has it: %s")
		},
	}
	f.registerBoth(cmd)
	return a.withJSON(cmd)
}

// agentJSON is an agent in the output of --json.
type agentJSON struct {
	Program   string `json:"program"`
	Title     string `json:"title"`
	Path      string `json:"path"`
	Installed bool   `json:"installed"`
}

// listAgents lists all agents that are known, not only those on this machine: a person may want
// to know before installing one.
func (a *app) listAgents(name string) error {
	var agents []agentJSON
	m := a.machine()
	for _, p := range install.Programs() {
		agents = append(agents, agentJSON{p.Name, p.Title, p.Path(m), p.Has(m, name)})
	}
	return printList(a, agents, a.newTable("FILE", "AGENT", "SET UP", "FILE"), func(one *agentJSON) []string {
		return []string{one.Program, yesNo(one.Installed), one.Path}
	})
}

// machine is this one, for the files of agents.
func (a *app) machine() install.Machine {
	return install.Machine{Home: cmp.Or(a.getenv("HOME"), a.getenv("USERPROFILE")), Getenv: a.getenv, OS: runtime.GOOS}
}

// mcpEntry is how an agent starts this program. An agent may have another environment, so
// what was chosen here is in the arguments.
func (a *app) mcpEntry(f *mcpInstallFlags) (e install.Entry, err error) {
	if e.Name = f.name; strings.TrimSpace(f.name) == "" {
		return e, misuse("--name is empty")
	}
	if e.Command, err = thisProgram(); err != nil {
		return e, err
	}
	if dir := a.settings.Get(home.SettingDir); strings.HasPrefix(dir.Origin, "flag ") || strings.HasPrefix(dir.Origin, "environment ") {
		path, err := a.settings.Absolute("")
		if err != nil {
			return e, err
		}
		e.Args = append(e.Args, "--dir", path)
	}
	e.Args = append(e.Args, "mcp")
	if f.readOnly {
		e.Args = append(e.Args, "--read-only")
	}
	if f.imports {
		e.Args = append(e.Args, "--import")
	}
	return e, nil
}

// thisProgram returns the path of this program: the one that a shell finds, if it is the same,
// because that stays when a package manager replaces the program.
func thisProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	found, err := exec.LookPath("coppice")
	if err != nil {
		return self, nil
	}
	one, err := os.Stat(self)
	other, otherErr := os.Stat(found)
	if err != nil || otherErr != nil || !os.SameFile(one, other) {
		return self, nil
	}
	return filepath.Abs(found)
}

// eachAgent shows the change to the file of each agent, asks, and makes it.
func (a *app) eachAgent(ctx context.Context, names []string, f *mcpInstallFlags, plan func(*install.Program, install.Machine) (*install.Change, error), nothing, done string) error {
	var programs []*install.Program
	for _, name := range names {
		p := install.Named(name)
		if p == nil {
			return hinted(misuse("%q is not an agent that coppice knows", name), "coppice mcp install lists them")
		}
		programs = append(programs, p)
	}
	for _, p := range programs {
		c, err := plan(p, a.machine())
		switch {
		case errors.Is(err, install.ErrForeign):
			return hinted(err, "--name gives ours another name")
		case home.KindOf(err) == home.KindNotFound:
			a.say(nothing, p.Title, p.Path(a.machine()))
			continue
		case err != nil:
			return err
		}
		if err := a.makeChange(ctx, p, c, f.yes, nothing, done); err != nil {
			return err
		}
	}
	return nil
}

// makeChange asks and writes, unless there is nothing to change. A program gets the change as
// JSON in either case, so that it need not tell the two apart by words.
func (a *app) makeChange(ctx context.Context, p *install.Program, c *install.Change, yes bool, nothing, done string) error {
	if !c.IsNothing() {
		a.showChange(c)
		if !yes {
			what := "write"
			if c.Delete {
				what = "delete"
			}
			if err := a.ask(ctx, fmt.Sprintf("%s %s?", what, c.Path), "nothing was written"); err != nil {
				return err
			}
		}
		if err := c.Write(); err != nil {
			return err
		}
		nothing = done
	}
	if a.flags.json {
		return a.printJSON(c)
	}
	a.say(nothing, p.Title, c.Path)
	if !c.IsNothing() && c.Backup != "" {
		a.say("%s", a.paint(dim, "as it was: "+c.Backup))
	}
	return nil
}

// showChange prints a change on standard error, as a diff.
func (a *app) showChange(c *install.Change) {
	a.say("%s", a.paint(bold, c.Path))
	for _, hunk := range render.Diff(string(c.Before), string(c.After)) {
		for _, line := range hunk.Lines {
			text := string(line.Op) + " " + line.Text
			switch line.Op {
			case '+':
				text = a.paint(green, text)
			case '-':
				text = a.paint(red, text)
			}
			a.sayAsIs(text)
		}
	}
}
