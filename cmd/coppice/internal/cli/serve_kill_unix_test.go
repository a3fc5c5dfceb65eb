//go:build unix

package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
)

// killable is a server process that can be killed and started again, at another port.
type killable struct {
	dir   string
	flags []string // beside --addr; default: --no-token
	env   []string // beside that of the test
	cmd   *exec.Cmd

	mu      sync.Mutex // guards address
	address string
}

func (k *killable) start(t *testing.T) {
	t.Helper()
	flags := k.flags
	if flags == nil {
		flags = []string{"--no-token"}
	}
	k.cmd = exec.Command("coppice", append([]string{"--dir", k.dir, "serve", "--addr", "127.0.0.1:0"}, flags...)...)
	k.cmd.Env = append(os.Environ(), k.env...)
	out, err := k.cmd.StderrPipe()
	if err == nil {
		err = k.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), " at http"); ok {
			k.mu.Lock()
			k.address = "http" + address
			k.mu.Unlock()
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return
		}
	}
	t.Fatal("the server did not say where it is")
}

func (k *killable) kill() {
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
}

// append insists until the server answers. Whether an earlier try was done, it cannot know.
func (k *killable) append(ctx context.Context, session, once string) error {
	for ctx.Err() == nil {
		k.mu.Lock()
		address := k.address
		k.mu.Unlock()
		body := fmt.Sprintf(`{"once": %q, "message": {"role": "user", "content": [{"type": "text", "text": %q}]}}`, once, once)
		r, err := http.NewRequestWithContext(ctx, "POST", address+"/v1/sessions/"+session+"/entries", strings.NewReader(body))
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			select { // it is being started again
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK {
			return nil
		}
		if err == nil && resp.StatusCode != http.StatusLocked && resp.StatusCode != http.StatusServiceUnavailable {
			return fmt.Errorf("%s: %s", resp.Status, text)
		}
	}
	return ctx.Err()
}

// TestServeKilledUnderLoad: a server is killed again and again while many append. Those who ask
// again get their answer, and what was answered is there, once.
func TestServeKilledUnderLoad(t *testing.T) {
	t.Parallel()
	k := &killable{dir: filepath.Join(t.TempDir(), "sessions")}
	h, err := home.Open(t.Context(), k.dir, &home.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	const writers = 8
	var ids [2]string
	for i := range ids {
		made, err := h.Sessions.Create(t.Context(), home.CreateRequest{})
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = made.Session
	}
	k.start(t)
	stop := make(chan struct{})
	said := make([][]string, writers)
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				once := fmt.Sprintf("%d-%d", w, i)
				if err := k.append(t.Context(), ids[w%len(ids)], once); err != nil {
					t.Error(err)
					return
				}
				said[w] = append(said[w], once)
			}
		})
	}
	for i := range soak.N(3) {
		time.Sleep(time.Duration(50+37*i%150) * time.Millisecond) // so that it is killed at different moments
		k.kill()
		k.start(t)
	}
	close(stop)
	writing.Wait()
	k.kill()
	total := 0
	for n, id := range ids {
		kept := make(map[string]int)
		if _, err := h.Entries.Path(t.Context(), home.PathRequest{Session: id, All: true}, func(e session.Entry) error {
			if e.Message != nil {
				kept[session.TextOf(e.Message.Content)]++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for w := n; w < writers; w += len(ids) {
			for _, once := range said[w] {
				if kept[once] != 1 {
					t.Errorf("%s was acknowledged, and is there %d times", once, kept[once])
				}
			}
			total += len(said[w])
		}
		for once, times := range kept {
			if times > 1 {
				t.Errorf("%s is there %d times", once, times)
			}
		}
	}
	if total == 0 {
		t.Error("nothing was appended")
	}
	t.Logf("%d appends were acknowledged", total)
}
