package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
)

// configCommand shows the settings if it is called alone: that is what people look for first.
func configCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and change the settings",
		Long: "Shows and changes the settings. This is also where you choose the model that writes\n" +
			"titles and summaries, and that coppice chat talks to:\n\n" +
			"  coppice config set model anthropic/claude-sonnet-4-5\n\n" +
			"Its key comes from the environment (ANTHROPIC_API_KEY, OPENAI_API_KEY,\n" +
			"GEMINI_API_KEY) or from a command (key_command); the key itself is not a setting.\n" +
			"Until you choose a model, a built-in one answers, which repeats what it hears.",
	}
	cmd.AddCommand(configGetCommand(a), configPathCommand(a), configSetCommand(a), configUnsetCommand(a), configTrustCommand(a), configUntrustCommand(a))
	return withDefault(cmd, configShowCommand(a))
}

// configShowCommand can say where a value comes from. Four places can set one, so the file
// alone does not explain what a program does.
func configShowCommand(a *app) *cobra.Command {
	var origin bool
	cmd := &cobra.Command{
		Use:     "show",
		Aliases: []string{"ls", "list"},
		Short:   "Print the effective settings",
		Long: "Prints every setting. A flag wins over the environment, the environment over the\n" +
			"file, the file over the default; --origin tells which it was.",
		RunE: func(*cobra.Command, []string) error { return a.showConfig(origin) },
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "where each value comes from")
	return a.withJSON(cmd)
}

// showConfig leaves out the origins unless they are asked for: most people look for a value.
func (a *app) showConfig(origin bool) error {
	t := a.newTable("VALUE", "SETTING", "VALUE", "ORIGIN")
	if !origin {
		t = a.newTable("VALUE", "SETTING", "VALUE")
	}
	return printList(a, a.settings.All(), t, func(s *home.Setting) []string {
		return []string{s.Key, onLine(s.Value), s.Origin}[:len(t.header)]
	})
}

// onLine writes the elements of a list on one line.
func onLine(value string) string { return strings.ReplaceAll(value, "\n", ", ") }

// configPathCommand prints a path that other programs can open, whether there is a file yet or
// not.
func configPathCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "path",
		Short: "Print where the configuration file is, or would be",
		// It must work whatever is in the file.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(*cobra.Command, []string) error {
			settings, _ := home.LoadSettings(a.getenv)
			if a.flags.json {
				return a.printJSON(map[string]string{"path": settings.Path()})
			}
			return a.print("%s", settings.Path())
		},
	})
}

// configGetCommand prints the bare value, for scripts. A list has a line for each element, as
// config set takes them back.
func configGetCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "get KEY",
		Short: "Print one setting",
		Long:  "Prints the value of a setting that is in effect.",
		RunE: func(_ *cobra.Command, args []string) error {
			all := a.settings.All()
			at := slices.IndexFunc(all, func(s home.Setting) bool { return s.Key == args[0] })
			switch {
			case at < 0:
				hint := a.command("config show", nil) + " lists them"
				if near := index.Nearest(args[0], home.SettingKeys()); len(near) > 0 {
					hint = "did you mean: " + strings.Join(near, ", ")
				}
				return hinted(misuse("there is no setting %q", args[0]), hint)
			case a.flags.json:
				return a.printJSON(all[at])
			}
			return a.printText(all[at].Value)
		},
		ValidArgsFunction: completeSettingName,
	})
}

// configSetCommand is the way out of a wrong setting, so it reads as much of the file as it can
// and ignores what is wrong with the rest.
func configSetCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "set KEY VALUE…",
		Short: "Write a setting into the configuration file",
		Long: "Writes a setting into the configuration file. Its comments stay. A model of another\n" +
			"provider also removes settings that belong to the old one, such as base_url and\n" +
			"key_command; the command says which. tools, allow, deny and mcp are lists, and take\n" +
			"several values.",
		// It must work when the file has a wrong value, to set it right.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(_ *cobra.Command, args []string) error {
			settings, _ := home.LoadSettings(a.getenv) // whatever is wrong with them
			changed, err := settings.Set(args[0], args[1:]...)
			return a.sayChanged(changed, err, "%s is now %q in %s")
		},
		ValidArgsFunction: completeSetting,
	})
}

// configUnsetCommand says what the value was: nothing else remembers it.
func configUnsetCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "unset KEY",
		Short: "Remove a setting from the configuration file",
		Long:  "Removes a setting from the configuration file, so that its default applies again.",
		// It must work when the file has a wrong value, to be rid of it.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(_ *cobra.Command, args []string) error {
			settings, _ := home.LoadSettings(a.getenv) // whatever is wrong with them
			changed, err := settings.Unset(args[0])
			if err == nil && changed.Value == "" {
				return a.sayChanged(changed, nil, "%[1]s is not set in %[3]s")
			}
			return a.sayChanged(changed, err, "%s, which was %q, is no longer in %s")
		},
		ValidArgsFunction: completeSettingName,
	})
}

// sayChanged reports what was done to the file.
func (a *app) sayChanged(changed *home.ChangedSetting, err error, words string) error {
	if err != nil || a.flags.json {
		return a.asJSON(changed, err)
	}
	a.say(words, changed.Key, onLine(changed.Value), changed.Path)
	if len(changed.Removed) > 0 {
		a.say("removed, because they were for another provider: %s", strings.Join(changed.Removed, ", "))
	}
	if changed.HiddenBy != "" {
		a.say("note: %s in the environment wins over it", changed.HiddenBy)
	}
	return nil
}

// configTrustCommand is asked for by hand for each directory. A cloned repository must not
// choose the tools, the servers or the instructions of a chat only because the chat was started
// in it.
func configTrustCommand(a *app) *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Let a project's own settings take effect",
		Long: "Lets chats in a directory use its .coppice.toml and .mcp.json, which can name tools,\n" +
			"rules, MCP servers, instructions and a model. The trust lasts until one of these\n" +
			"files, or the file with the instructions, changes. Directories below use them too,\n" +
			"down to the next one with its own files or its own Git repository. Outside of\n" +
			"repositories, a directory uses only the files in it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if list && len(args) > 0 {
				return misuse("--list lists all directories, and takes none")
			}
			return a.withProject(cmd.Context(), args, func(h *home.Home, dir string) error {
				if list {
					return a.listTrusted(cmd.Context(), h)
				}
				return a.trust(cmd.Context(), h, dir)
			})
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "print the directories that you have trusted")
	return a.withJSON(cmd)
}

// withProject calls do with the home, which keeps what is trusted, and the directory that is
// meant: the one given, or the one a person is in.
func (a *app) withProject(ctx context.Context, args []string, do func(h *home.Home, dir string) error) error {
	dir, err := filepath.Abs(strings.Join(args, ""))
	if err != nil {
		return err
	}
	return a.withHome(ctx, true, func(h *home.Home) error { return do(h, dir) })
}

// trust prints what the files ask for, so that a person who trusts them has at least seen it
// once.
func (a *app) trust(ctx context.Context, h *home.Home, dir string) error {
	p, err := h.Project(ctx, dir)
	if err != nil {
		return err
	}
	if p == nil {
		return misuse("%s has neither a .coppice.toml nor a .mcp.json", dir)
	}
	if err := h.Trust(ctx, p); err != nil || a.flags.json {
		return a.asJSON(p, err)
	}
	for _, line := range p.Says {
		a.say("%s", line)
	}
	a.say("chats in %s use it from now on", p.Path)
	return nil
}

// listTrusted marks directories whose files were changed after they were trusted: these are not
// used any more, although they are still listed.
func (a *app) listTrusted(ctx context.Context, h *home.Home) error {
	all, err := h.Trusted(ctx)
	if err != nil {
		return err
	}
	if a.flags.json {
		return printObjects(a, all)
	}
	for _, p := range all {
		line := "%s"
		if !p.Trusted {
			line += "\tchanged since"
		}
		if err := a.print(line, p.Path); err != nil {
			return err
		}
	}
	return nil
}

// configUntrustCommand takes the nearest trusted directory above, as the search for settings
// does, so that it can be called where a person is.
func configUntrustCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "untrust [DIR]",
		Short: "Stop trusting a project's own settings",
		Long:  "Stops trusting a directory, or the nearest one above it that you trusted.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withProject(cmd.Context(), args, func(h *home.Home, dir string) error {
				path, err := h.Untrust(cmd.Context(), dir)
				switch {
				case err != nil:
					return hinted(err, a.command("config trust --list", nil)+" lists what you trusted")
				case a.flags.json:
					return a.printJSON(map[string]string{"path": path})
				}
				a.say("chats in %s no longer use its settings", path)
				return nil
			})
		},
	})
}
