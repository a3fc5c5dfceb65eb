package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/soak"
)

// A backup is killed at some moment. Afterwards there is a whole backup, the older one or
// the new one, and the next one works. The moments are random.
func TestKilledBackup(t *testing.T) {
	t.Parallel()
	kills, rng := soak.N(2), soak.Rand(t)
	h := &house{T: t, token: aToken(5), password: "kX9#mQ2$vL", cache: t.TempDir()}
	h.dir = filepath.Join(t.TempDir(), "sessions")
	h.several(40)
	for _, to := range []string{filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "backup.tar.zst")} {
		h.do([]int{0}, "backup", to)
		killed := 0
		for kill := range kills {
			h.do([]int{0}, "new", "--title", fmt.Sprint("session ", kill))
			for i := range 40 { // so that everything has to be copied again
				h.grow(i, kill)
			}
			cmd := exec.Command("coppice", "--dir", h.dir, "backup", to)
			h.must(cmd.Start())
			time.Sleep(time.Duration(rng.Int64N(int64(80 * time.Millisecond))))
			_ = cmd.Process.Kill()
			if cmd.Wait() != nil {
				killed++
			}
			h.do([]int{0}, "backup", "--verify", to)
		}
		t.Logf("%d of %d were killed before their end", killed, kills)
		h.do([]int{0}, "backup", to)
		back := filepath.Join(t.TempDir(), "back")
		h.do([]int{0}, "restore", to, "--dir", back)
		for _, f := range []string{"s0.jsonl", "s39.jsonl"} {
			was, err := os.ReadFile(filepath.Join(h.dir, f))
			h.must(err)
			is, err := os.ReadFile(filepath.Join(back, f))
			if err != nil || string(is) != string(was) {
				t.Errorf("%s: %s has not come back: %v", to, f, err)
			}
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(to), ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// grow adds a line to a session, as an append does.
func (h *house) grow(i, n int) {
	h.Helper()
	f, err := os.OpenFile(filepath.Join(h.dir, fmt.Sprintf("s%d.jsonl", i)), os.O_APPEND|os.O_WRONLY, 0)
	h.must(err)
	_, err = fmt.Fprintf(f, `{"type":"custom","id":"x%d","parent_id":null,"timestamp":"2026-01-01T00:00:00.000Z","custom":{"custom_type":"x","data":%q}}`+"\n", n, strings.Repeat("x", 200))
	h.must(err)
	h.must(f.Close())
}
