package keyed_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// oddKeys are all good, and all different.
var oddKeys = []string{
	"telegram:123456", "telegram:-1001234567890", "agent:main:telegram:123456",
	"telegram:a_b", "telegram_a:b", "telegram_a_b", "telegram:a:b",
	"forum/-100/thread/7", `forum\-100\thread\7`, "forum_-100_thread_7", "/", `\`, "//", "/etc/passwd",
	".", "..", "../..", "../../etc/passwd", `..\..`, ".coppice", "a/../b",
	"CON", "con", "NUL.jsonl", "a.jsonl", "A.JSONL", "a ", "a", " a", "A",
	"ключ:чат", "チャット:七", "é", "e\u0301", "🌲", "\u202Egnp", "tab\tline\nnul\x00",
	"*?\"<>|", "%2F", "%", strings.Repeat("k", 4096), strings.Repeat("k", 4097), strings.Repeat("ж/", 2048),
}

func TestKeysOfAllKinds(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		for _, key := range oddKeys {
			m.AddMessage(key, "user", "to "+key)
			m.save(key)
		}
		for _, key := range oddKeys {
			sameText(t, fmt.Sprintf("history of %.40q", key), brief(m.GetHistory(key)), []string{"to " + key})
		}
		keys, err := m.Keys()
		want := slices.Sorted(slices.Values(oddKeys))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "keys", keys, want)
	})
}

func TestInvalidKeys(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, m manager) {
		for _, key := range []string{"", "\xff", "a\x80", strings.Repeat("k", session.MaxKey+1)} {
			m.AddMessage(key, "user", "nobody will hear this")
			m.SetHistory(key, messages("u"))
			m.SetSummary(key, "sum")
			m.TruncateHistory(key, 1)
			if s := m.GetOrCreate(key); s == nil || s.Messages == nil || len(s.Messages) > 0 {
				t.Errorf("GetOrCreate(%.20q) = %+v", key, s)
			}
			if h := m.GetHistory(key); h == nil || len(h) > 0 {
				t.Errorf("GetHistory(%.20q) = %v", key, h)
			}
			_, idErr := session.KeyID(key)
			_, allErr := m.History(key, keyed.All)
			for _, err := range []error{m.Save(key), idErr, allErr} {
				if !errors.Is(err, os.ErrInvalid) || !errors.Is(err, session.ErrInvalid) {
					t.Errorf("%.20q: %v, want os.ErrInvalid", key, err)
				}
				if err != nil && len(err.Error()) > 300 {
					t.Errorf("an error of %d bytes", len(err.Error()))
				}
			}
		}
		if keys, err := m.Keys(); err != nil || len(keys) > 0 {
			t.Errorf("keys %q, %v", keys, err)
		}
	})
}

// Other errors of Save are not mistaken for that of a bad key.
func TestSaveErrorsOfTheFileSystem(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := keyed.NewSessionManager(file + "/below")
	m.AddMessage(key, "user", "hi")
	if err := m.Save(key); err == nil || errors.Is(err, os.ErrInvalid) {
		t.Errorf("save: %v", err)
	}
	if h := m.GetHistory(key); len(h) != 1 {
		t.Errorf("history %v, want the message that could not be saved", h)
	}
	if err := m.Close(); err == nil {
		t.Error("Close says nothing of the message that could not be saved")
	}
	m = keyed.NewSessionManager(file)
	m.AddMessage(key, "user", "hi")
	if err := m.Save(key); err == nil {
		t.Error("a file is no directory, and Save says nothing")
	}
	if _, err := m.Keys(); err == nil {
		t.Error("a file is no directory, and Keys says nothing")
	}
}

func TestSessionIDsDiffer(t *testing.T) {
	t.Parallel()
	soak.Check(t, func(t *rapid.T) {
		// Of few letters, so that keys are alike.
		keys := rapid.StringOf(rapid.SampledFrom([]rune(`a:_/\.`)))
		a, b := keys.Filter(notEmpty).Draw(t, "a"), keys.Filter(notEmpty).Draw(t, "b")
		idA, errA := session.KeyID(a)
		idB, errB := session.KeyID(b)
		if errA != nil || errB != nil || (a == b) != (idA == idB) {
			t.Fatalf("%q has %s, %q has %s; %v, %v", a, idA, b, idB, errA, errB)
		}
		if err := store.CheckName(idA); err != nil {
			t.Fatal(err)
		}
	})
}

func notEmpty(s string) bool { return s != "" }

// The id of a key is a promise: files are found by it for years.
func TestSessionIDStaysTheSame(t *testing.T) {
	t.Parallel()
	id, err := session.KeyID("telegram:123456")
	if err != nil || id != "bd7b91cad97f8aae9ecfa63e30d882d172c63eb7" {
		t.Errorf("%s, %v", id, err)
	}
}

// A log at the place of a key that is another key's is not touched.
func TestAForeignSessionAtTheKeysPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	id, err := session.KeyID(key)
	if err != nil {
		t.Fatal(err)
	}
	line := `{"type":"session","id":"` + id + `","version":1,"timestamp":"2026-03-10T09:00:00Z","key":"another"}` + "\n"
	path := dir + "/" + id + ".jsonl"
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	m := keyed.NewSessionManager(dir)
	m.AddMessage(key, "user", "hi")
	if err := m.Save(key); !errors.Is(err, session.ErrCorrupt) || !strings.Contains(err.Error(), `"another"`) {
		t.Errorf("save: %v", err)
	}
	if keys, err := m.Keys(); err != nil || len(keys) > 0 {
		t.Errorf("keys %q, %v", keys, err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != line {
		t.Errorf("the other's session was changed: %s, %v", text, err)
	}
}
