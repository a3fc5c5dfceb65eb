// Package cli is the command line: one file for each command, named after it.
//
// What all commands share is here and in a few other files: the app that a
// command gets (this file), what is said to a person and how (talk.go), the
// configuration (config.go), how sessions and entries are named by the user
// (resolve.go), and how errors become exit codes (exit.go).
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/upkeep"
)

// app is what a command works with. Tests make their own.
type app struct {
	talk
	stdin  io.Reader
	getenv func(string) string
	flags  flags
	config config // settled before a command runs

	// guard is what was taken out of the store that is open and must not come back,
	// or unguarded is why that is not known.
	guard     *clean.Guard
	unguarded error
}

// flags are those that every command has.
type flags struct {
	dir    string
	json   bool
	color  string
	redact string // of the commands that append: "true", "false", or "" if not given
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
	return a.run(interruptible(), os.Args[1:])
}

// run runs one command line.
func (a *app) run(ctx context.Context, args []string) int {
	defer func() { _ = errors.Join(a.out.Flush(), a.err.Flush()) }()
	root := a.rootCommand()
	root.Version = version()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		a.styled(ctx, append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
	})
	root.AddCommand(&cobra.Command{
		Use: "man", Hidden: true, Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) { a.styled(ctx, "man") },
	})
	err := root.ExecuteContext(ctx)
	if err != nil {
		err = plainGroup(err)
		a.sayError(err)
	}
	if ctx.Err() != nil && err != nil {
		return exitInterrupted
	}
	return exitCode(err)
}

// rootCommand assembles the commands.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "coppice",
		Short: "Keep, branch, find and shorten conversations with models",
		Long: "Coppice keeps the conversations of humans, models and tools as append-only\n" +
			"trees in a directory of plain files.",
		Example: "  coppice demo            # something to look at\n" +
			"  coppice ls\n" +
			"  coppice tree ID\n" +
			"  coppice search \"that thing\"",
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
	}
	root.PersistentFlags().StringVar(&a.flags.dir, "dir", "", "the directory of the sessions")
	root.PersistentFlags().StringVar(&a.flags.color, "color", "", "colours: auto, always or never")
	root.AddGroup(
		&cobra.Group{ID: "read", Title: "Read"},
		&cobra.Group{ID: "write", Title: "Write"},
		&cobra.Group{ID: "tree", Title: "Branch and shorten"},
		&cobra.Group{ID: "keep", Title: "Organise and keep"},
		&cobra.Group{ID: "about", Title: "About the store and the program"},
	)
	for _, add := range commands {
		root.AddCommand(add(a))
	}
	root.SetCompletionCommandGroupID("about")
	root.SetHelpCommandGroupID("about")
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		refuseUnknown(cmd)
		if cmd.Name() == "completion" {
			cmd.Short = "Print what a shell needs to complete"
		}
	}
	flowHelp(root)
	plainUsage(root)
	root.SetFlagErrorFunc(plainFlag)
	return root
}

// flowHelp joins the lines of each paragraph of a command's help, and of the
// commands below it: the help is wrapped to the terminal, and lines that end
// twice leave single words on lines of their own. Indented lines stay.
func flowHelp(cmd *cobra.Command) {
	lines := strings.Split(cmd.Long, "\n")
	var flowing strings.Builder
	for i, line := range lines {
		if i > 0 {
			own := line == "" || lines[i-1] == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") ||
				strings.HasPrefix(lines[i-1], " ") || strings.HasPrefix(lines[i-1], "\t")
			if own {
				flowing.WriteByte('\n')
			} else {
				flowing.WriteByte(' ')
			}
		}
		flowing.WriteString(line)
	}
	cmd.Long = flowing.String()
	for _, below := range cmd.Commands() {
		flowHelp(below)
	}
}

// refuseUnknown makes a command that only has others below it complain of one
// that it does not have: cobra would print the help and call that a success.
func refuseUnknown(cmd *cobra.Command) {
	if !cmd.HasSubCommands() || cmd.Runnable() {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// commands are the constructors of all commands.
var commands = []func(*app) *cobra.Command{
	newCommand,
	lsCommand,
	searchCommand,
	statsCommand,
	indexCommand,
	showCommand,
	demoCommand,
	treeCommand,
	followCommand,
	contextCommand,
	appendCommand,
	exportCommand,
	importCommand,
	branchCommand,
	forkCommand,
	mergeCommand,
	diffCommand,
	compactCommand,
	revertCommand,
	labelCommand,
	renameCommand,
	tagCommand,
	pinCommand,
	unpinCommand,
	rmCommand,
	trashCommand,
	retainCommand,
	redactCommand,
	archiveCommand,
	unarchiveCommand,
	fsckCommand,
	repairCommand,
	configCommand,
	versionCommand,
}

// withJSON gives a reading command the flag --json.
func (a *app) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.flags.json, "json", false, "one JSON object a line, stable, for programs")
	return cmd
}

// openStore opens the store, which must exist.
func (a *app) openStore() (*file.Store, error) {
	dir := a.config.Dir.value
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, &session.Error{
			Op: "open store", Path: dir, Kind: session.ErrNotExist,
			Hint: "coppice new begins a session there, coppice demo makes something to look at; --dir and COPPICE_HOME choose another place",
		}
	}
	return a.makeStore(dir)
}

// storeOptions are the settings of the store, and what makes room in a full one.
func (a *app) storeOptions() (*file.Options, error) {
	opts, err := a.config.fileOptions()
	if err != nil {
		return nil, err
	}
	if a.config.WhenFull.value == whenFullTrash {
		opts.MakeRoom = upkeep.MakeRoom(func(s upkeep.Session) {
			a.say("session %s, last active %s, is now in the trash: there may be %d sessions; coppice trash restore %s brings it back",
				s.Name, a.when(s.Active, time.Now()), opts.MaxLogs, s.Name)
		})
	}
	return opts, nil
}

// makeStore opens the store in a directory that need not exist.
func (a *app) makeStore(dir string) (*file.Store, error) {
	opts, err := a.storeOptions()
	if err != nil {
		return nil, err
	}
	st, err := file.Open(dir, opts)
	if err == nil {
		a.guard, a.unguarded = clean.LoadGuard(st) // only who writes needs it
	}
	return st, err
}

// options are those of the sessions.
func (a *app) options() *session.Options {
	opts := &session.Options{BlobThreshold: a.config.blobThreshold()}
	yes, _ := a.config.redacts() // it was checked by settle
	if yes || a.guard != nil || a.unguarded != nil {
		opts.Clean = func(e *session.Entry) error { return a.cleanAndSay(e, yes) }
	}
	return opts
}

// version is what the build knows of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

// withStore calls f with the store and closes it.
func (a *app) withStore(f func(st *file.Store) error) error {
	st, err := a.openStore()
	if err != nil {
		return err
	}
	return errors.Join(f(st), st.Close())
}

// readText returns the text that is meant by arguments: the words themselves,
// or all of standard input for "-" or for none.
func (a *app) readText(args []string) (string, error) {
	if len(args) == 1 && args[0] != "-" {
		return args[0], nil
	}
	if len(args) > 1 {
		return "", usageError{fmt.Errorf("%d texts were given; put one in quotes, or use - for standard input", len(args))}
	}
	text, err := io.ReadAll(a.stdin)
	return string(text), err
}
