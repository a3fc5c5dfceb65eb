package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pagedOn runs something on a terminal of 24 rows with a pager that writes a file, and
// returns what the pager got and what the screen showed.
func pagedOn(t *testing.T, run func(a *app) error) (paged, screen string) {
	t.Helper()
	slave, master := openTerminal(t)
	defer master.Close()
	shown := make(chan string)
	go func() {
		all, _ := io.ReadAll(master) // it ends with an error when the other end is closed
		shown <- strings.ReplaceAll(string(all), "\r\n", "\n")
	}()
	file := filepath.Join(t.TempDir(), "paged")
	getenv := func(name string) string { return map[string]string{"PAGER": "cat >" + file}[name] }
	a := &app{talk: newTalk(slave, slave, getenv), stdin: slave, getenv: getenv}
	if err := a.paged(func() error { return run(a) }); err != nil {
		t.Error(err)
	}
	slave.Close()
	got, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	return string(got), <-shown
}

// Talk is cleaned once: a second time would take our own colours for a stranger's.
func TestTalkKeepsItsColoursBesideAPager(t *testing.T) {
	t.Parallel()
	_, screen := pagedOn(t, func(a *app) error {
		a.color = true
		a.say("%s", a.paint(red, "before"))
		if err := a.print("row"); err != nil {
			return err
		}
		a.say("%s \x1b[31mevil", a.paint(dim, "after"))
		a.say("%s", "\x1b[31mevil")
		return nil
	})
	if want := "\x1b[31mbefore\x1b[0m\nrow\n\x1b[2mafter\x1b[0m \ufffd[31mevil\n\ufffd[31mevil\n"; screen != want {
		t.Errorf("the screen showed %q, want %q", screen, want)
	}
}

func TestWhatIsLongerThanTheScreenIsPaged(t *testing.T) {
	t.Parallel()
	for rows, wantPaged := range map[int]bool{1: false, 23: false, 24: true, 500: true} {
		want := ""
		paged, screen := pagedOn(t, func(a *app) error {
			a.say("before")
			for i := range rows {
				want += fmt.Sprintf("row %d\n", i)
				if err := a.print("row %d", i); err != nil {
					return err
				}
			}
			a.say("after")
			return nil
		})
		if wantPaged && (paged != want || screen != "before\nafter\n") {
			t.Errorf("%d rows: the pager got %q, the screen %q", rows, paged, screen)
		}
		if !wantPaged && (paged != "" || screen != "before\n"+want+"after\n") {
			t.Errorf("%d rows: the pager got %q, the screen %q", rows, paged, screen)
		}
	}
}

// A reader who leaves the pager early has seen enough. That is no error.
func TestAReaderMayLeaveThePager(t *testing.T) {
	t.Parallel()
	slave, master := openTerminal(t)
	defer master.Close()
	go func() { _, _ = io.Copy(io.Discard, master) }()
	getenv := func(name string) string { return map[string]string{"PAGER": "head -n 1 >/dev/null"}[name] }
	a := &app{talk: newTalk(slave, slave, getenv), stdin: slave, getenv: getenv}
	err := a.paged(func() error {
		for range 10_000 {
			if err := a.print("%s", strings.Repeat("x", 60)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	slave.Close()
}
