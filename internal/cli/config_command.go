package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/store/vfs"
)

func configCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Show and change the settings",
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
		Short: "Print the settings that hold",
		Long: "Prints every setting. A flag wins over the environment, the environment over the\n" +
			"file, the file over the default; --origin tells which it was.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.showConfig(origin) },
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "where each value comes from")
	return a.withJSON(cmd)
}

// settingJSON is what config show --json prints for each setting.
type settingJSON struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func (a *app) showConfig(origin bool) error {
	t := a.newTable(1, "SETTING", "VALUE", "ORIGIN")
	if !origin {
		t = a.newTable(1, "SETTING", "VALUE")
	}
	for _, s := range a.sources(&a.config) {
		switch {
		case a.flags.json:
			if err := a.printJSON(settingJSON{s.key, s.into.value, s.into.origin}); err != nil {
				return err
			}
		case origin:
			t.add(s.key, s.into.value, s.into.origin)
		default:
			t.add(s.key, s.into.value)
		}
	}
	if a.flags.json {
		return nil
	}
	return t.print()
}

func configPathCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "path",
		Short: "Print where the configuration file is, or would be",
		Args:  cobra.NoArgs,
		// It must work whatever is in the file.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE:              func(*cobra.Command, []string) error { return a.print("%s", configPath(a.getenv)) },
	}
}

func configSetCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Write a setting into the configuration file",
		Long:  "Writes a setting into the configuration file. Its comments stay.",
		Args:  cobra.ExactArgs(2),
		// It must work when the file has a wrong value, to set it right.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE:              func(_ *cobra.Command, args []string) error { return a.setConfig(args[0], args[1]) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return a.settingKeys(), cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func (a *app) settingKeys() []string {
	var keys []string
	for _, s := range a.sources(&config{}) {
		keys = append(keys, s.key)
	}
	return keys
}

func (a *app) setConfig(key, value string) error {
	path := configPath(a.getenv)
	if err := a.checkSetting(key, value); err != nil {
		return err
	}
	// Where the file is a link (to one that is kept elsewhere), the file it leads
	// to is the one to replace.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if _, err := readConfig(path); err != nil {
		return err
	}
	text, err := vfs.ReadFile(path, vfs.SmallFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text, err = setInTOML(text, key, value)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := replaceFile(path, text); err != nil {
		return err
	}
	a.say("%s is now %q in %s", key, value, path)
	for _, s := range a.sources(&config{}) {
		if s.key == key && s.env != "" && a.getenv(s.env) != "" {
			a.say("note: %s in the environment wins over it", s.env)
		}
	}
	return nil
}

// checkSetting makes sure that a setting exists and may have a value.
func (a *app) checkSetting(key, value string) error {
	var c config
	found := false
	for _, s := range a.sources(&c) {
		*s.into = setting{s.fallback, "default"}
		if s.key == key {
			*s.into = setting{value, "argument"}
			found = true
		}
	}
	if !found {
		return usageError{fmt.Errorf("%q is not a setting; there are %s", key, strings.Join(a.settingKeys(), ", "))}
	}
	if c.Dir.value == "" {
		return usageError{errors.New("dir is empty")}
	}
	if _, err := c.fileOptions(); err != nil {
		return err
	}
	if _, err := c.redacts(); err != nil {
		return err
	}
	trial := *a
	trial.config = c
	_, err := trial.wantColor()
	return err
}

// setInTOML sets a key in the text of a configuration file: in the line that
// sets it already, or in a new one.
func setInTOML(text []byte, key, value string) ([]byte, error) {
	encoded := encodeTOML(value)
	lines := strings.SplitAfter(string(text), "\n")
	set := regexp.MustCompile(`^(\s*"?` + regexp.QuoteMeta(key) + `"?\s*=\s*)("(?:[^"\\]|\\.)*"|'[^']*'|[^#\s"']+)(\s*(?:#.*)?\s*)$`)
	at := slices.IndexFunc(lines, set.MatchString)
	if at >= 0 {
		parts := set.FindStringSubmatch(lines[at])
		lines[at] = parts[1] + encoded + parts[3]
	} else {
		if last := len(lines) - 1; lines[last] != "" {
			lines[last] += "\n"
		}
		lines = append(lines, key+" = "+encoded+"\n")
	}
	edited := strings.Join(lines, "")
	var settings map[string]any
	if err := toml.Unmarshal([]byte(edited), &settings); err != nil || fmt.Sprint(settings[key]) != value {
		return nil, fmt.Errorf("%s is set there in a way that cannot be changed here; edit the file", key)
	}
	return []byte(edited), nil
}

// encodeTOML writes a number as a number and everything else as a string.
func encodeTOML(value string) string {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && strconv.FormatInt(n, 10) == value {
		return value
	}
	line, _ := toml.Marshal(map[string]string{"v": value}) // a map of strings always encodes
	return strings.TrimSpace(strings.TrimPrefix(string(line), "v = "))
}

// replaceFile puts a file in the place of another, whole or not at all.
func replaceFile(path string, text []byte) error {
	if err := vfs.Mkdir(vfs.OS{}, filepath.Dir(path), 0o700); err != nil {
		return err
	}
	var how vfs.Replacement
	if info, err := os.Stat(path); err == nil {
		how.Perm = info.Mode().Perm()
	}
	return vfs.Replace(vfs.OS{}, path, how, vfs.Data(text))
}
