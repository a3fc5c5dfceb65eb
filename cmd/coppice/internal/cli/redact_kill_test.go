package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/file"
)

// A redaction is killed at some moment. The next command that writes finishes it:
// afterwards nothing was begun, or nothing is left. The moments are random.
func TestKilledRedactionIsFinished(t *testing.T) {
	t.Parallel()
	kills, rng := soak.N(2), soak.Rand(t)
	h := &house{T: t, token: aToken(3), password: "kX9#mQ2$vL", cache: t.TempDir()}
	begun := 0
	start := time.Now()
	for kill := 0; kill < kills || begun == 0 && time.Since(start) < 2*time.Minute; kill++ {
		h.dir = filepath.Join(t.TempDir(), fmt.Sprint(kill))
		h.several(30)
		cmd := exec.Command("coppice", "--dir", h.dir, "redact", "--all", "--apply")
		cmd.Env = append(os.Environ(), "COPPICE_SYNC=never", "XDG_CACHE_HOME="+h.cache)
		h.must(cmd.Start())
		if begun == 0 {
			h.waitUntilBegun() // once it is in the middle for sure, unless we stall
		} else {
			time.Sleep(time.Duration(rng.Int64N(int64(150 * time.Millisecond))))
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		st := openStore(t, h.dir)
		unfinished, err := clean.Unfinished(t.Context(), st)
		h.must(err)
		if unfinished {
			begun++
		}
		out := h.do([]int{0}, "new", "--title", "the next command")
		if unfinished && !strings.Contains(out, "interrupted") {
			t.Errorf("the next command says %q", out)
		}
		if left, err := clean.Unfinished(t.Context(), st); left || err != nil {
			t.Errorf("it is not finished: %v", err)
		}
		// A temporary file of the process that was killed is young, and left for now.
		found := h.has()
		places := 0
		for _, f := range found {
			if !strings.Contains(f, string(filepath.Separator)+"tmp"+string(filepath.Separator)) {
				places++
			}
		}
		if unfinished && places > 0 {
			t.Errorf("left in %v", found)
		}
		h.do([]int{0}, "fsck")
	}
	t.Logf("%d of %d were killed in the middle", begun, kills)
	if begun == 0 {
		t.Error("none was killed in the middle")
	}
}

// several makes sessions with secrets.
func (h *house) several(n int) {
	h.Helper()
	st, err := file.Open(h.dir, &file.Options{Sync: file.Never})
	h.must(err)
	defer st.Close()
	for i := range n {
		s, err := session.Create(h.Context(), st, session.Header{ID: fmt.Sprint("s", i)}, &session.Options{BlobThreshold: 300})
		h.must(err)
		for _, text := range []string{"DB_PASSWORD=" + h.password, "bare " + h.password + " and " + h.token} {
			_, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)})
			h.must(err)
		}
		_, err = s.AppendMessage(session.RoleAssistant, []session.Content{session.ToolUse("c", "read", nil)})
		h.must(err)
		_, err = s.AppendMessage(session.RoleTool, []session.Content{session.ToolResult("c", strings.Repeat(fmt.Sprintf("line of %d\n", i), 100)+h.token, false)})
		h.must(err)
		h.must(s.Close())
	}
}

// waitUntilBegun waits until the first log was written again.
func (h *house) waitUntilBegun() {
	h.Helper()
	for start := time.Now(); time.Since(start) < 2*time.Minute; {
		data, err := os.ReadFile(filepath.Join(h.dir, "s0.jsonl"))
		if err == nil && strings.Contains(string(data), "REDACTED") {
			return
		}
		time.Sleep(time.Millisecond)
	}
	h.Error("the redaction does not begin")
}

// A redaction is interrupted: every file is whole, what remains is said, and the
// next command that writes does it.
func TestInterruptedRedactionIsFinished(t *testing.T) {
	t.Parallel()
	h := &house{T: t, token: aToken(4), password: "kX9#mQ2$vL", cache: t.TempDir(), dir: filepath.Join(t.TempDir(), "sessions")}
	h.several(30)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() {
		h.waitUntilBegun()
		cancel()
	})
	a, out := h.app()
	code := a.run(ctx, []string{"redact", "--all", "--apply"})
	waiting.Wait()
	unfinished, err := clean.Unfinished(t.Context(), openStore(t, h.dir))
	h.must(err)
	switch {
	case unfinished && (code != exitInterrupted || !strings.Contains(out.String(), "redact --all --apply")):
		t.Errorf("exit code %d\n%s", code, out)
	case !unfinished && code != exitOK: // it was faster
		t.Errorf("exit code %d", code)
	}
	h.do([]int{0}, "fsck")
	h.do([]int{0}, "new")
	if found := h.has(); len(found) > 0 {
		t.Errorf("left in %v", found)
	}
}
