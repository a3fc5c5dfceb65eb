package cli

import (
	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
)

func configCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and change the settings",
		Long: "Shows and changes the settings. The model that writes titles and summaries, and\n" +
			"that coppice chat talks to, is chosen here too:\n\n" +
			"  coppice config set model anthropic/claude-sonnet-4-5\n\n" +
			"Its key comes from the environment (ANTHROPIC_API_KEY, OPENAI_API_KEY,\n" +
			"GEMINI_API_KEY) or from a command (key_command); it is not a setting itself.\n" +
			"Without a model, one that is built in repeats what it hears.",
		GroupID: "about",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(configShowCommand(a), configPathCommand(a), configSetCommand(a))
	return cmd
}

func configShowCommand(a *app) *cobra.Command {
	var origin bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the effective settings",
		Long: "Prints every setting. A flag wins over the environment, the environment over the\n" +
			"file, the file over the default; --origin tells which it was.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.showConfig(origin) },
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "where each value comes from")
	return a.withJSON(cmd)
}

func (a *app) showConfig(origin bool) error {
	t := a.newTable(1, "SETTING", "VALUE", "ORIGIN")
	if !origin {
		t = a.newTable(1, "SETTING", "VALUE")
	}
	for _, s := range a.settings.All() {
		switch {
		case a.flags.json:
			if err := a.printJSON(s); err != nil {
				return err
			}
		case origin:
			t.add(s.Key, s.Value, s.Origin)
		default:
			t.add(s.Key, s.Value)
		}
	}
	if a.flags.json {
		return nil
	}
	return t.print()
}

func configPathCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "path",
		Short: "Print where the configuration file is, or would be",
		Args:  cobra.NoArgs,
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

func configSetCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Write a setting into the configuration file",
		Long:  "Writes a setting into the configuration file. Its comments stay.",
		Args:  cobra.ExactArgs(2),
		// It must work when the file has a wrong value, to set it right.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE:              func(_ *cobra.Command, args []string) error { return a.setConfig(args[0], args[1]) },
		ValidArgsFunction: completeSetting,
	})
}

func (a *app) setConfig(key, value string) error {
	settings, _ := home.LoadSettings(a.getenv) // whatever is wrong with them
	changed, err := settings.Set(key, value)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(changed)
	}
	a.say("%s is now %q in %s", key, value, changed.Path)
	if changed.HiddenBy != "" {
		a.say("note: %s in the environment wins over it", changed.HiddenBy)
	}
	return nil
}
