//go:build unix

package cli

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// A reader that has seen enough goes away, as head does. The program ends, and
// has nothing to say about it.
func TestReaderGoesAway(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sessions")
	s, err := session.New(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a line that nobody reads\n", 100_000) // more than a pipe holds
	if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(long)}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	for _, args := range [][]string{{"show"}, {"show", "--json"}, {"context", "--format", "text"}, {"export"}, {"export", "--format", "html"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			cmd := exec.Command("coppice", append([]string{"--dir", dir, args[0], s.ID()}, args[1:]...)...)
			var talk bytes.Buffer
			cmd.Stderr = &talk
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(out, make([]byte, 10)); err != nil {
				t.Error(err)
			}
			out.Close()
			if err := cmd.Wait(); err == nil {
				t.Error("the program wrote all of it: the test shows nothing")
			}
			if talk.Len() > 0 {
				t.Errorf("it said %q", talk.String())
			}
		})
	}
}
