package cli

import (
	"io"
	"strings"
	"testing"
)

// Whoever gives no ID at a terminal chooses from a list: by words, and then by a number.
func TestPickASession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, text := range []string{"About beans", "About peas"} {
		say(t, newSession(t, dir), text)
	}
	for typed, want := range map[string]string{"beans\n1\n": "About beans", "nope\npeas\n1\n": "About peas", "\n": ""} {
		slave, master := openTerminal(t)
		got := make(chan string)
		go func() {
			all, _ := io.ReadAll(master) // ends with an error, because the other end is closed
			got <- string(all)
		}()
		a := hostileApp(t, dir, slave, io.Discard)
		a.stdin = slave
		if _, err := io.WriteString(master, typed); err != nil {
			t.Fatal(err)
		}
		code := a.run(t.Context(), []string{"show"})
		slave.Close()
		shown := <-got
		master.Close()
		shown = strings.ReplaceAll(shown, typed, "")
		if (code == 0) != (want != "") || !strings.Contains(shown, want) {
			t.Errorf("%q: exit code %d\n%s", typed, code, shown)
		}
	}
}
