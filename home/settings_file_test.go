package home_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// TestSettingsAreEdited: writing a setting leaves comments and other settings alone, and what would
// not work, or cannot be edited safely, leaves the file as it is.
func TestSettingsAreEdited(t *testing.T) {
	t.Parallel()
	config := t.TempDir()
	e := env{"HOME": t.TempDir(), "XDG_CONFIG_HOME": config}
	path := filepath.Join(config, "coppice", "config.toml")
	read := func() string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if _, err := settings(t, e).Set(home.SettingSync, "never"); err != nil {
		t.Fatal(err)
	}
	if got := settings(t, e).Get(home.SettingSync); got.Value != "never" || got.Origin != path {
		t.Fatalf("%+v", got)
	}
	const mine = "# mine\nsync = 'never' # be careful\narchive_after = \"90d\"\nallow = [\"read\"]\n"
	if err := os.WriteFile(path, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	for key, values := range map[string][]string{
		home.SettingSync:         {"sometimes"},
		home.SettingArchiveAfter: {"0d"},
		home.SettingMaxTokens:    {"1", "2"},
		home.SettingKeyCommand:   {"echo sk-ant-api03-" + "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrSt-1234567AA"},
		home.SettingSystem:       {"no-such-file.md"},
		"colour":                 {"auto"},
	} {
		if _, err := settings(t, e).Set(key, values...); !errors.Is(err, session.ErrInvalid) || read() != mine {
			t.Errorf("%s = %q: %v, and the file is\n%s", key, values, err, read())
		}
	}
	if _, err := settings(t, e).Set(home.SettingSync, "1s"); err != nil {
		t.Fatal(err)
	}
	if _, err := settings(t, e).Set(home.SettingDeny, "bash(rm *)", "fetch"); err != nil {
		t.Fatal(err)
	}
	if _, err := settings(t, e).Unset(home.SettingArchiveAfter); err != nil {
		t.Fatal(err)
	}
	const want = "# mine\nsync = '1s' # be careful\nallow = [\"read\"]\ndeny = [\"bash(rm *)\",\"fetch\"]\n"
	if got := read(); got != want {
		t.Errorf("the file is\n%s\nwant\n%s", got, want)
	}
	if _, err := settings(t, e).Unset("colour"); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a setting that there is not is taken out: %v", err)
	}
	// The environment overrides the file, and the answer says so.
	e["COPPICE_SYNC"] = "always"
	if changed, err := settings(t, e).Set(home.SettingSync, "never"); err != nil || changed.HiddenBy != "COPPICE_SYNC" {
		t.Errorf("%+v, %v", changed, err)
	}
}
