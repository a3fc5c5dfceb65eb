package home_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/home"
	_ "github.com/coppice-dev/coppice/home/all"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
)

// env is an environment for LoadSettings.
type env map[string]string

func (e env) get(name string) string { return e[name] }

// house is a home for a test, with helpers that must succeed.
type house struct {
	*testing.T
	*home.Home
	dir string
	env env // of its user
}

// newHouse opens a new home, with a user who has a home directory of their own. What is
// tested with it holds for every kind of home: make cover runs it in a database
// (COPPICE_TEST_HOME=postgres:), make race in files, and COPPICE_TEST_HOME=mem: in memory.
func newHouse(t *testing.T) *house {
	t.Helper()
	return newHouseAt(t, postgrestest.Home(t))
}

// newHouseInFiles is newHouse for what only a directory can do, or what a second program
// does to it.
func newHouseInFiles(t *testing.T) *house {
	t.Helper()
	return newHouseAt(t, filepath.Join(t.TempDir(), "sessions"))
}

func newHouseAt(t *testing.T, where string) *house {
	t.Helper()
	h := &house{T: t, dir: where, env: env{"HOME": t.TempDir()}}
	h.Home = h.open(&home.Options{Settings: settings(t, h.env), Create: true})
	return h
}

func (h *house) open(o *home.Options) *home.Home {
	h.Helper()
	if o.Settings == nil {
		o.Settings = settings(h.T, env{"HOME": h.TempDir()})
	}
	opened, err := home.Open(h.Context(), h.dir, o)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = opened.Close() })
	return opened
}

func settings(t *testing.T, e env, given ...home.Setting) *home.Settings {
	t.Helper()
	s, err := home.LoadSettings(e.get, given...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// say begins a session in which the user says something.
func (h *house) say(header session.Header, texts ...string) *session.Session {
	h.Helper()
	s, err := session.Create(h.Context(), h.Store(), header, nil)
	if err != nil {
		h.Fatal(err)
	}
	for _, text := range texts {
		if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)}); err != nil {
			h.Fatal(err)
		}
	}
	h.Cleanup(func() { _ = s.Close() })
	return s
}

func TestOpenFindsOnlyWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none")
	_, err := home.Open(t.Context(), dir, &home.Options{Settings: settings(t, env{})})
	if home.KindOf(err) != home.KindNotFound {
		t.Errorf("a home that does not exist: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening it made it: %v", err)
	}
}

func TestOpenTakesURLs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for where, kind := range map[string]home.Kind{
		dir:                          "",
		"file://" + dir:              "",
		"file://localhost" + dir:     "",
		"file://elsewhere" + dir:     home.KindInvalid,
		"redis://localhost/sessions": home.KindInvalid,
		"https://example.com/":       home.KindInvalid,
	} {
		h, err := home.Open(t.Context(), where, &home.Options{Settings: settings(t, env{})})
		if home.KindOf(err) != kind {
			t.Errorf("Open %s: %v, want %q", where, err, kind)
		}
		if err != nil {
			continue
		}
		if h.Dir() != dir {
			t.Errorf("Open %s: the home is %s", where, h.Dir())
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Somebody who looks into a directory of something else must not find a home
// there afterwards.
func TestLookingIntoADirectoryLeavesItAlone(t *testing.T) {
	t.Parallel()
	h := newHouseInFiles(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "passwd"), []byte("root\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.dir = dir
	opened := h.open(&home.Options{})
	list, err := opened.Sessions.List(t.Context(), home.ListRequest{})
	if err != nil || len(list.Sessions) != 0 {
		t.Errorf("the list has %d sessions: %v", len(list.Sessions), err)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 {
		t.Errorf("the directory has %v now: %v", names, err)
	}
}

func TestWithoutAHomeDirectoryThereIsNoDefault(t *testing.T) {
	t.Chdir(t.TempDir())
	s := settings(t, env{})
	if _, err := home.Open(t.Context(), "", &home.Options{Settings: s, Create: true}); home.KindOf(err) != home.KindNotFound || home.HintOf(err) == "" {
		t.Errorf("Open: %v; want an error with a hint", err)
	}
	if _, err := s.Set("sync", "never"); err == nil {
		t.Error("a setting was written, wherever that may be")
	}
	if names, _ := os.ReadDir("."); len(names) > 0 {
		t.Errorf("the working directory has %v now", names)
	}
}

func TestSettingsComeFromTheNearestSource(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	e := env{"HOME": user}
	if _, err := settings(t, e).Set("sync", "2s"); err != nil {
		t.Fatal(err)
	}
	if _, err := settings(t, e).Set("redact", "true"); err != nil {
		t.Fatal(err)
	}
	e["COPPICE_REDACT"] = "false"
	s := settings(t, e, home.Setting{Key: "dir", Value: "/somewhere", Origin: "flag"})
	file := filepath.Join(user, ".config", "coppice", "config.toml")
	for key, want := range map[string]home.Setting{
		"dir":       {Value: "/somewhere", Origin: "flag"},
		"redact":    {Value: "false", Origin: "environment COPPICE_REDACT"},
		"sync":      {Value: "2s", Origin: file},
		"when_full": {Value: "refuse", Origin: "default"},
	} {
		want.Key = key
		if got := s.Get(key); got != want {
			t.Errorf("%s is %+v, want %+v", key, got, want)
		}
	}
	changed, err := s.Set("redact", "true")
	if err != nil || changed.HiddenBy != "COPPICE_REDACT" {
		t.Errorf("the environment wins over it, which Set does not say: %+v, %v", changed, err)
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"COPPICE_SYNC": "often", "COPPICE_MAX_ENTRY": "0", "COPPICE_WHEN_FULL": "explode", "COPPICE_REDACT": "maybe",
		"COPPICE_MAX_SESSIONS": "-1", "COPPICE_BLOB_THRESHOLD": "x",
		"COPPICE_PROVIDER": "acme", "COPPICE_BASE_URL": "localhost", "COPPICE_THINKING": "much", "COPPICE_MAX_TOKENS": "-1", "COPPICE_WINDOW": "big",
	} {
		if _, err := home.LoadSettings(env{name: value}.get); home.KindOf(err) != home.KindInvalid {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	for window, ok := range map[string]bool{"0": true, "10": false, "-5": false, "999": false, "1000": true} {
		if _, err := home.LoadSettings(env{"COPPICE_WINDOW": window}.get); (err == nil) != ok {
			t.Errorf("a window of %s: %v", window, err)
		}
	}
	if _, err := settings(t, env{"HOME": t.TempDir()}).Set("nope", "1"); home.KindOf(err) != home.KindInvalid {
		t.Errorf("an unknown setting: %v", err)
	}
}

// resolve returns the session that a person means.
func resolve(t *testing.T, s *home.Sessions, given string) (string, error) {
	t.Helper()
	return resolveIn(t.Context(), s, given)
}

func resolveIn(ctx context.Context, s *home.Sessions, given string) (string, error) {
	found, err := s.Resolve(ctx, home.SessionRequest{Session: given})
	if err != nil {
		return "", err
	}
	return found.Session, nil
}

// into returns a function that writes what an export sends.
func into(w io.Writer) func(home.ExportPiece) error {
	return func(p home.ExportPiece) error {
		_, err := w.Write(p.Data)
		return err
	}
}

// indexPath returns where the index of a home is beside its sessions.
func indexPath(h *home.Home) string { return h.Store().(store.Directory).IndexPath() }

// A program can bring a store of its own.
func TestHomeOnAStore(t *testing.T) {
	t.Parallel()
	h := must[*home.Home](t)(home.On(t.Context(), memory.New(nil), nil))
	id, _ := begin(t, h, "falcon")
	if found := must[*home.FindResult](t)(h.Search.Find(t.Context(), home.FindRequest{Query: "falcon"})); len(found.Hits) != 1 || found.Hits[0].Session != id {
		t.Errorf("found %+v", found.Hits)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Store().Open(t.Context(), id); !errors.Is(err, store.ErrClosed) {
		t.Errorf("the store after Close: %v", err)
	}
	if _, err := home.On(t.Context(), nil, nil); home.KindOf(err) != home.KindInvalid {
		t.Errorf("without a store: %v", err)
	}
}
