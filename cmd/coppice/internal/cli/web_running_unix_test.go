//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/home"
)

// TestTheNoteOfAKilledWebIsNotBelieved: the next run holds the lock, but has not left its own note yet.
func TestTheNoteOfAKilledWebIsNotBelieved(t *testing.T) {
	t.Parallel()
	h := emptyHome(t)
	at := &begun{address: "http://127.0.0.1:1", secret: "s"}
	killed, _ := beginWeb(h)
	killed.note(at, false)
	if _, running := beginWeb(h); running == nil || running.Address != at.address {
		t.Fatalf("the run is at %+v", running)
	}
	if err := killed.lock.Close(); err != nil { // as the system does
		t.Fatal(err)
	}
	next, running := beginWeb(h)
	if running != nil {
		t.Errorf("a run that was killed is at %+v", running)
	}
	if _, running := beginWeb(h); running != nil {
		t.Errorf("a run that begins has the note of one that was killed: %+v", running)
	}
	if err := next.end(); err != nil {
		t.Error(err)
	}
}

// TestWebsInMemoryAreNotTheSame: each has sessions of its own.
func TestWebsInMemoryAreNotTheSame(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	settings, err := home.LoadSettings(func(name string) string { return map[string]string{"HOME": user}[name] })
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		h, err := home.Open(t.Context(), "mem:", &home.Options{Create: true, Settings: settings})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		run, running := beginWeb(h)
		run.note(&begun{address: "http://127.0.0.1:1"}, false)
		t.Cleanup(func() { _ = run.end() })
		if running != nil {
			t.Errorf("a home in memory is that of %+v", running)
		}
	}
	if left, err := os.ReadDir(filepath.Join(user, ".cache")); err == nil {
		t.Errorf("a home in memory left %v", left)
	}
}

// TestAPageHasItsAddressByAnyName: localhost is one.
func TestAPageHasItsAddressByAnyName(t *testing.T) {
	t.Parallel()
	n := &webNote{Address: "http://127.0.0.1:7000"}
	for addr, want := range map[string]bool{"127.0.0.1:7000": true, "localhost:7000": true, "127.0.0.1:7001": false, "[::1]:7000": false} {
		if got := n.serves(&webFlags{addr: addr}, true); got != want {
			t.Errorf("at %s: %t", addr, got)
		}
	}
}
