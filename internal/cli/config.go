package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

// setting is a value and where it came from.
type setting struct {
	value  string
	origin string // "flag --dir", "environment COPPICE_HOME", the file's path, or "default"
}

// config is what can be set. A flag wins over the environment, the environment
// over the file, the file over the default.
type config struct {
	Dir           setting // the directory of the sessions
	Sync          setting // "always", "never", or a duration such as "1s"
	MaxEntry      setting // the greatest size of an entry with its blobs, in bytes
	MaxSession    setting // the greatest size of a session with its blobs, in bytes; 0 is no limit
	MaxSessions   setting // how many sessions there may be; 0 is no limit
	WhenFull      setting // "refuse" or "trash": what happens when there are as many
	BlobThreshold setting // the size above which content is kept in blobs, in bytes
	Color         setting // "auto", "always", "never"
	Redact        setting // "true" or "false": whether secrets are taken out of what is appended
}

// source says where a setting may come from, besides the file.
type source struct {
	key      string // in the file
	into     *setting
	flag     string // the value of its flag, "" if not given
	flagName string
	env      string
	fallback string
}

func (a *app) sources(c *config) []source {
	return []source{
		{"dir", &c.Dir, a.flags.dir, "--dir", "COPPICE_HOME", defaultDir(a.getenv)},
		{"sync", &c.Sync, "", "", "COPPICE_SYNC", "always"},
		{"max_entry", &c.MaxEntry, "", "", "COPPICE_MAX_ENTRY", strconv.Itoa(file.DefaultMaxLine)},
		{"max_session", &c.MaxSession, "", "", "COPPICE_MAX_SESSION", "0"},
		{"max_sessions", &c.MaxSessions, "", "", "COPPICE_MAX_SESSIONS", "0"},
		{"when_full", &c.WhenFull, "", "", "COPPICE_WHEN_FULL", "refuse"},
		{"blob_threshold", &c.BlobThreshold, "", "", "COPPICE_BLOB_THRESHOLD", strconv.Itoa(session.DefaultBlobThreshold)},
		{"color", &c.Color, a.flags.color, "--color", "", "auto"},
		{"redact", &c.Redact, a.flags.redact, "--redact", "COPPICE_REDACT", "false"},
	}
}

// settle finds the value of every setting.
func (a *app) settle() error {
	path := configPath(a.getenv)
	fromFile, err := readConfig(path)
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	for _, s := range a.sources(&a.config) {
		known[s.key] = true
		*s.into = s.settle(a.getenv, fromFile, path)
	}
	for key := range fromFile {
		if !known[key] {
			return usageError{fmt.Errorf("%s: %q is not a setting; coppice config show lists them", path, key)}
		}
	}
	if _, err := a.config.fileOptions(); err != nil {
		return err
	}
	if _, err := a.config.redacts(); err != nil {
		return err
	}
	a.color, err = a.wantColor()
	return err
}

func (s source) settle(getenv func(string) string, fromFile map[string]any, path string) setting {
	if s.flag != "" {
		return setting{s.flag, "flag " + s.flagName}
	}
	if s.env != "" && getenv(s.env) != "" {
		return setting{getenv(s.env), "environment " + s.env}
	}
	if v, ok := fromFile[s.key]; ok {
		return setting{fmt.Sprint(v), path}
	}
	return setting{s.fallback, "default"}
}

func (a *app) wantColor() (bool, error) {
	switch a.config.Color.value {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return a.getenv("NO_COLOR") == "" && a.isTerminal(), nil
	}
	return false, usageError{fmt.Errorf("color is %q (%s); it must be auto, always or never", a.config.Color.value, a.config.Color.origin)}
}

// defaultDir is $XDG_DATA_HOME/coppice/sessions.
func defaultDir(getenv func(string) string) string {
	return filepath.Join(xdg(getenv, "XDG_DATA_HOME", ".local/share"), "coppice", "sessions")
}

func configPath(getenv func(string) string) string {
	if path := getenv("COPPICE_CONFIG"); path != "" {
		return path
	}
	return filepath.Join(xdg(getenv, "XDG_CONFIG_HOME", ".config"), "coppice", "config.toml")
}

func xdg(getenv func(string) string, name, fallback string) string {
	if dir := getenv(name); filepath.IsAbs(dir) {
		return dir
	}
	home := getenv("HOME")
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	return filepath.Join(home, filepath.FromSlash(fallback))
}

// readConfig reads the file. A missing one is empty.
func readConfig(path string) (map[string]any, error) {
	text, err := vfs.ReadFile(path, vfs.SmallFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var settings map[string]any
	if err := toml.Unmarshal(text, &settings); err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", path, err)}
	}
	return settings, nil
}

func (c *config) fileOptions() (*file.Options, error) {
	opts := &file.Options{}
	switch c.Sync.value {
	case "always":
		opts.Sync = file.Always
	case "never":
		opts.Sync = file.Never
	default:
		d, err := time.ParseDuration(c.Sync.value)
		if err != nil || d <= 0 {
			return nil, usageError{fmt.Errorf("sync is %q (%s); it must be always, never or a duration such as 1s", c.Sync.value, c.Sync.origin)}
		}
		opts.Sync = file.Every(d)
	}
	if err := c.limits(opts); err != nil {
		return nil, err
	}
	if _, err := strconv.Atoi(c.BlobThreshold.value); err != nil {
		return nil, usageError{fmt.Errorf("blob_threshold is %q (%s); it must be a number of bytes", c.BlobThreshold.value, c.BlobThreshold.origin)}
	}
	return opts, nil
}

// limits sets the limits of a store.
func (c *config) limits(opts *file.Options) (err error) {
	if opts.MaxLine, err = c.MaxEntry.number("max_entry", 1, "a number of bytes"); err != nil {
		return err
	}
	if opts.MaxLog, err = c.MaxSession.number("max_session", 0, "a number of bytes, or 0 for no limit"); err != nil {
		return err
	}
	n, err := c.MaxSessions.number("max_sessions", 0, "a number, or 0 for no limit")
	if err != nil {
		return err
	}
	opts.MaxLogs = int(n)
	if v := c.WhenFull.value; v != whenFullRefuse && v != whenFullTrash {
		return usageError{fmt.Errorf("when_full is %q (%s); it must be %s or %s", v, c.WhenFull.origin, whenFullRefuse, whenFullTrash)}
	}
	return nil
}

// The values of when_full.
const (
	whenFullRefuse = "refuse"
	whenFullTrash  = "trash"
)

// number is the value of a setting that must be a number, and at least so large.
func (s setting) number(key string, least int64, what string) (int64, error) {
	n, err := strconv.ParseInt(s.value, 10, 64)
	if err != nil || n < least {
		return 0, usageError{fmt.Errorf("%s is %q (%s); it must be %s", key, s.value, s.origin, what)}
	}
	return n, nil
}

// blobThreshold was checked by fileOptions.
func (c *config) blobThreshold() int {
	n, _ := strconv.Atoi(c.BlobThreshold.value)
	return n
}
