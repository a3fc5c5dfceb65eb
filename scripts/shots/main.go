// Shots writes the pictures of the documentation: screens of the terminal UI, drawn by the program
// in a real terminal on the sessions of coppice demo.
//
//	go run ./scripts/shots DIR
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// size is that of a terminal.
type size struct{ columns, rows int }

var usual, wide = size{110, 32}, size{160, 36}

// shots are the pictures: the keys that lead to a screen, and a text that it has.
var shots = []struct {
	name  string
	size  size
	keys  []string
	shows string
}{
	{"sessions", usual, nil, "Off-by-one"},
	{"panes", wide, []string{"Down", "Down", "Down", "Down"}, "apt-get install"},
	{"transcript", usual, []string{"/", "nightly", "Tab", "Enter"}, "apt-get install"},
	{"tree", usual, []string{"/", "nightly", "Tab", "t"}, "← leaf"},
	{"compare", usual, []string{"/", "nightly", "Tab", "t", "Space", "Up", "Up", "Up", "Up", "="}, "they share"},
	{"context", usual, []string{"/", "unterminated", "Tab", "x"}, "What is sent"},
	{"stats", usual, []string{"$"}, "By model"},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./scripts/shots DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1)
	}
}

func run(to string) error {
	dir, err := os.MkdirTemp("", "shots")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, garden := filepath.Join(dir, "coppice"), filepath.Join(dir, "garden")
	for _, command := range [][]string{{"go", "build", "-o", program, "./cmd/coppice"}, {program, "demo", garden}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
		}
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, s := range shots {
		screen, err := shoot(filepath.Join(dir, s.name), s.size, s.keys, s.shows, program, "--dir", garden)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if err := os.WriteFile(filepath.Join(to, s.name+".svg"), []byte(draw(screen, s.size)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// shoot runs a program in a terminal, presses keys, and returns the screen with its colours.
func shoot(socket string, of size, keys []string, shows string, command ...string) (string, error) {
	tmux := func(args ...string) (string, error) {
		out, err := exec.Command("tmux", append([]string{"-S", socket}, args...)...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("tmux %s: %w: %s", args[0], err, out)
		}
		return string(out), err
	}
	begin := []string{"-f", "/dev/null", "-u", "new-session", "-d", "-x", fmt.Sprint(of.columns), "-y", fmt.Sprint(of.rows), "env", "TERM=tmux-256color"}
	if _, err := tmux(append(begin, command...)...); err != nil {
		return "", err
	}
	defer func() { _, _ = tmux("kill-server") }()
	settle := func(text string) (screen string, err error) {
		for range 200 {
			time.Sleep(50 * time.Millisecond)
			if screen, err = tmux("capture-pane", "-p", "-e"); err != nil || strings.Contains(ansi.Strip(screen), text) {
				return screen, err
			}
		}
		return "", fmt.Errorf("%q never shows:\n%s", text, screen)
	}
	if _, err := settle("Off-by-one"); err != nil {
		return "", err
	}
	for _, key := range keys {
		if _, err := tmux("send-keys", key); err != nil {
			return "", err
		}
		time.Sleep(300 * time.Millisecond) // a person looks before the next key
	}
	if _, err := settle(shows); err != nil {
		return "", err
	}
	time.Sleep(300 * time.Millisecond)
	return tmux("capture-pane", "-p", "-e")
}
