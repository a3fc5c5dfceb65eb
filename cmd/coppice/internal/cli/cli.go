// Package cli is the command line: one file for each command, named after it.
//
// What all commands share is here and in a few other files: the app that a
// command gets (this file), how it talks to people (talk.go), the home
// that commands work on (home.go), and how errors become exit codes (exit.go).
package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
)

// app is what a command works with. Tests make their own.
type app struct {
	talk
	stdin    io.Reader
	getenv   func(string) string
	flags    flags
	args     []string       // the command line
	settings *home.Settings // found before a command runs
	home     *home.Home     // while one is open
	bar      *progress      // of the home
	warned   []string       // the warnings about the index that were given
	keyed    atomic.Bool    // Ctrl-C is a key: see interruptible
	// isOpenAllDay says that a person has the program open while they do other things: see boundGarbage.
	isOpenAllDay atomic.Bool
}

// flags are those that every command has.
type flags struct {
	dir    string
	server string
	json   bool
	color  string
	redact string // of the commands that append: "true", "false", or "" if not given
}

// where returns the flags that chose the home.
func (f *flags) where() []string {
	switch {
	case f.dir != "":
		return []string{"--dir", f.dir}
	case f.server != "":
		return []string{"--server", f.server}
	}
	return nil
}

// Main runs the program and returns its exit code.
func Main() int {
	// A reader that goes away (head, less) is no reason to complain: writing to
	// it then ends the program quietly, which is what the default does for
	// standard output.
	a := &app{
		talk:   newTalk(os.Stdout, os.Stderr, os.Getenv),
		stdin:  os.Stdin,
		getenv: os.Getenv,
	}
	if os.Getenv("GOGC") == "" {
		boundGarbage(&a.isOpenAllDay)
	}
	return a.run(interruptible(&a.keyed), os.Args[1:])
}

// run runs one command line.
func (a *app) run(ctx context.Context, args []string) int {
	defer func() { _ = errors.Join(a.out.Flush(), a.err.Flush()) }()
	root := a.rootCommand()
	args = impliedChat(root, args)
	a.args = args
	if isCompletion(args) {
		a.completeFlags(root)
	}
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.out)
	root.SetErr(a.err)
	var unknown error // what help was asked for and is not there
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if name := commandTyped(cmd); name != "" {
			unknown = unknownCommand(cmd, name)
			return
		}
		_ = a.paged(func() error { return a.printHelp(cmd) })
	})
	err := cmp.Or(root.ExecuteContext(ctx), unknown)
	if err != nil {
		a.reportError(err)
	}
	if err != nil && (ctx.Err() != nil || errors.Is(err, context.Canceled)) {
		return exitInterrupted
	}
	return exitCode(err)
}

// reportError says why a command failed: to a person in words, to a program that
// asked for JSON as an object, also on standard error.
func (a *app) reportError(err error) {
	switch {
	case errors.Is(err, errNothingFound), errors.Is(err, context.Canceled):
		return // the one was the answer, and the other the user's wish
	case !a.flags.json:
		a.sayError(err)
		return
	}
	line, encodeErr := json.Marshal(a.failureJSON(err))
	if encodeErr == nil {
		a.sayAsIs(string(line))
	}
}

// rootCommand assembles the commands.
func (a *app) rootCommand() *cobra.Command {
	var live liveFlags
	root := &cobra.Command{
		Use:     "coppice",
		Version: thisBuild().Version,
		Short:   "Keep, branch, find and shorten conversations with models",
		Long: "Coppice keeps the conversations of humans, models and tools as append-only\n" +
			"trees in a directory of plain files.",
		Example: "  coppice demo            # something to look at\n" +
			"  coppice ls\n" +
			"  coppice tree ID\n" +
			"  coppice search \"that thing\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if shown, err := a.showUI(cmd.Context(), &live); shown {
				return err
			}
			return a.welcome(cmd.Context())
		},
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
	}
	root.PersistentFlags().StringVar(&a.flags.dir, "dir", "", "the directory of the sessions")
	root.PersistentFlags().StringVar(&a.flags.server, "server", "", "use the sessions of this Coppice server")
	root.PersistentFlags().StringVar(&a.flags.color, "color", "", "colours: auto, always or never")
	(&chatFlags{}).addRestore(root) // for the help: see impliedChat
	_ = root.RegisterFlagCompletionFunc("restore", a.completeSession(1))
	live.register(root)
	a.withJSON(root)
	for _, group := range groups {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, add := range group.commands {
			cmd := add(a)
			cmd.GroupID = group.title
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(manCommand(a))
	a.finish(root)
	return root
}

// prepare checks the flags that every command has, once they are parsed, and finds the settings.
func (a *app) prepare(cmd *cobra.Command) error {
	a.call = fieldsOf(cmd)
	if a.flags.dir == "" && cmd.Flags().Changed("dir") {
		return misuse("--dir is empty: name the directory of the sessions, or leave the flag out")
	}
	if cmd.Flags().Changed("server") && (a.flags.dir != "" || !home.IsAway(a.flags.server)) {
		return misuse("--server is the address of a server, such as https://host:8443, and takes the place of --dir")
	}
	if err := checkGroups(cmd); err != nil {
		return err
	}
	a.where = a.flags.where()
	return a.settle()
}

// finish adds the commands that cobra has, and what all commands have in common.
func (a *app) finish(root *cobra.Command) {
	root.SetCompletionCommandGroupID(settingsAndHelp)
	root.SetHelpCommand(helpCommand())
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		if cmd.Name() == "completion" {
			cmd.Short = "Print the completion script for a shell"
			cmd.Long = "Prints a script that completes commands, flags, sessions and entries in a shell. The\n" +
				"help of each shell's command says how to load it."
		}
	}
	a.pageLong(root)
	a.plainUsage(root)
	root.InitDefaultVersionFlag()
	root.Flags().Lookup("version").Usage = "print the version"
	root.SetFlagErrorFunc(a.plainFlag)
}

// groups are the commands as help lists them.
var groups = []struct {
	title    string
	commands []func(*app) *cobra.Command
}{
	{"Read", []func(*app) *cobra.Command{
		lsCommand, searchCommand, showCommand, treeCommand, compareCommand, contextCommand, imagesCommand,
		statsCommand, followCommand, exportCommand,
	}},
	{"Write", []func(*app) *cobra.Command{newCommand, appendCommand, noteCommand, chatCommand, importCommand, resumeCommand}},
	{"Branch and shorten", []func(*app) *cobra.Command{branchCommand, forkCommand, mergeCommand, compactCommand, revertCommand}},
	{"Organise and remove", []func(*app) *cobra.Command{
		labelCommand, renameCommand, tagCommand, rateCommand, pinCommand, unpinCommand, rmCommand, trashCommand, retainCommand,
	}},
	{"Keep safe", []func(*app) *cobra.Command{
		backupCommand, restoreCommand, archiveCommand, unarchiveCommand, fsckCommand, repairCommand, redactCommand,
		copyCommand, migrateCommand, indexCommand,
	}},
	{"For the browser and other programs", []func(*app) *cobra.Command{serveCommand, webCommand, tokenCommand, ipcCommand, mcpCommand}},
	{settingsAndHelp, []func(*app) *cobra.Command{configCommand, modelsCommand, demoCommand, versionCommand}},
}

// settingsAndHelp is the group that cobra's own commands belong to, too.
const settingsAndHelp = "Settings and help"

// withDefault gives a command one below it, and does that one's work if none is named.
func withDefault(cmd, below *cobra.Command) *cobra.Command {
	cmd.AddCommand(below)
	cmd.RunE = below.RunE
	cmd.Flags().AddFlagSet(below.Flags())
	return cmd
}

// withJSON gives a reading command the flag --json.
func (a *app) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.flags.json, "json", false, "print JSON, one object a line")
	return cmd
}

// readText returns the text that is meant by arguments: the words themselves,
// or all of standard input for "-" or for none.
func (a *app) readText(args []string) (string, error) {
	if given := strings.Join(args, " "); len(args) > 0 && given != "-" {
		return given, nil
	}
	if terminalOf(a.stdin) != nil {
		a.say("type the text; Ctrl-D on a line of its own ends it")
	}
	text, err := io.ReadAll(a.stdin)
	return string(text), err
}
