package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/app"
	"github.com/coppice-dev/coppice/home"
)

// TestWhatOtherProgramsKeepIsSaid looks for conversations of other agents on this machine.
func TestWhatOtherProgramsKeepIsSaid(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	const id = "00000001-4d57-4a54-9be1-3f6b1b2f6f10"
	path := filepath.Join(user, ".claude", "projects", "-src", id+".jsonl")
	line := `{"type":"user","uuid":"a","parentUuid":null,"sessionId":"` + id + `","cwd":"/src","version":"2.0.0",` +
		`"timestamp":"2026-01-02T03:04:05.000Z","message":{"role":"user","content":"hello"}}` + "\n"
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := home.LoadSettings(func(name string) string {
		if name == "HOME" {
			return user
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	h := openHome(t, t.TempDir(), &home.Options{Create: true, Settings: settings})
	talk(t, h, "Garden", "Which trees?", "Hazel.")
	d := drive(t, h, func(o *app.Options) { o.Discover = true })
	d.sees("other agents have 1 conversation on this machine", ":import --all brings them in")
	d.press("down")
	d.loses("other agents")
	d.sees("Garden")
}
