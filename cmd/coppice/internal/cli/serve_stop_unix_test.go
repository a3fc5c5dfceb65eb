//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/bulk"
)

// heard is a stream of server-sent events, as far as it was read.
type heard struct {
	lines *bufio.Scanner
	id    string   // of the last that had one
	ids   []string // of all messages
}

// listen asks for a stream of server-sent events.
func (k *killable) listen(t *testing.T, method, path, body, after string) *heard {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, k.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", after)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return &heard{lines: lines}
}

// next returns the next event; its name is "" when the stream has ended as it should.
func (h *heard) next(t *testing.T) (name, data string) {
	t.Helper()
	for h.lines.Scan() {
		key, value, _ := strings.Cut(h.lines.Text(), ": ")
		switch {
		case key == "id":
			h.id = value
		case key == "event":
			name = value
		case key == "data":
			data = value
		case key == "" && name != "":
			if name == "message" {
				h.ids = append(h.ids, h.id)
			}
			return name, data
		}
	}
	if err := h.lines.Err(); err != nil {
		t.Errorf("a stream was cut off: %v", err)
	}
	return "", ""
}

// stop asks the server to end, and waits for that.
func (k *killable) stop(t *testing.T, meanwhile func()) {
	t.Helper()
	if err := k.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	late := time.AfterFunc(time.Minute, func() {
		t.Error("the server does not end")
		_ = k.cmd.Process.Kill()
	})
	defer late.Stop()
	if err := k.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

const snoring = `{"type":"user","uuid":"7f6c1a52-6f0e-4c63-9a25-1d6f3a1c0b%02d","sessionId":"0b0d6a1e-0a55-4a38-8e05-9d6a0f3b1c22","timestamp":"2026-01-01T10:00:%02d.000Z","cwd":"/x","version":"2.1.0","message":{"role":"user","content":"Does otter %d snore?"}}` + "\n"

// TestServeStopsUnderLoad: a server gets the signal to stop while clients append, follow, import
// and talk to a model. It answers the requests that it has begun, listeners can later continue
// where they were, and another process can use the home at once.
func TestServeStopsUnderLoad(t *testing.T) {
	t.Parallel()
	k := &killable{
		dir: filepath.Join(t.TempDir(), "sessions"), env: []string{"HOME=" + t.TempDir()}, flags: []string{"--no-token", "--tools"},
	}
	k.start(t)
	t.Cleanup(k.kill)
	var made home.CreateResult
	if _, text := k.ask(t, "POST", "/v1/sessions", `{"title": "Otters"}`); json.Unmarshal([]byte(text), &made) != nil {
		t.Fatal(text)
	}
	one := k.listen(t, "GET", "/v1/follow?session="+made.Session, "", "")
	all := k.listen(t, "GET", "/v1/follow", "", "")
	turn := k.beginTurn(t)
	importing := k.beginImport(t)
	said, busy, writing := k.appendOnAndOn(t, made.Session)
	<-busy
	for one.id == "" { // it would not know where to continue
		one.next(t)
	}
	k.stop(t, func() {
		for _, stream := range []*heard{one, all, turn.heard} {
			for name, _ := stream.next(t); name != ""; name, _ = stream.next(t) {
			}
		}
		importing.finish(t) // the server has begun to stop, and still takes the rest
		writing.Wait()
	})

	// Another process, at once.
	h, err := home.Open(t.Context(), k.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.Entries.Append(t.Context(), home.AppendRequest{
		Session: made.Session, Message: &session.MessageEntry{Role: string(session.RoleUser), Content: []session.Content{session.Text("and now?")}},
	}); err != nil {
		t.Error(err)
	}
	log, kept := logOf(t, h, made.Session)
	for _, once := range *said {
		if kept[once] != 1 {
			t.Errorf("%s was acknowledged, and is there %d times", once, kept[once])
		}
	}
	list, err := h.Sessions.List(t.Context(), home.ListRequest{})
	if err != nil || !slices.ContainsFunc(list.Sessions, func(s home.SessionInfo) bool { return s.Messages == 20 && strings.Contains(s.Title, "snore") }) {
		t.Errorf("the import is not in %+v, %v", list, err)
	}

	// And another server, where they go on.
	k.start(t)
	again := k.listen(t, "GET", "/v1/follow?session="+made.Session, "", one.id)
	for len(one.ids)+len(again.ids) < len(log) {
		if name, data := again.next(t); name == "" {
			t.Fatalf("it ended with %s", data)
		}
	}
	if got := slices.Concat(one.ids, again.ids); !slices.Equal(got, log) {
		t.Errorf("one who followed has heard\n%q, and there is\n%q", got, log)
	}
	if name, _ := k.listen(t, "GET", "/v1/follow", "", all.id).next(t); name != "reset" {
		t.Errorf("one who followed all sessions hears %s", name)
	}
	turn.goOn(t, k)
}

// logOf returns the ids of all messages of a session, and how often each text is there.
func logOf(t *testing.T, h *home.Home, id string) (ids []string, kept map[string]int) {
	t.Helper()
	kept = make(map[string]int)
	if _, err := h.Entries.Path(t.Context(), home.PathRequest{Session: id, All: true}, func(e session.Entry) error {
		if e.Message != nil {
			ids = append(ids, e.ID)
			kept[session.TextOf(e.Message.Content)]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return ids, kept
}

// appendOnAndOn lets several append until the server no longer answers. busy tells when each has
// been answered, and said is what was acknowledged when writing is done.
func (k *killable) appendOnAndOn(t *testing.T, id string) (said *[]string, busy <-chan struct{}, writing *sync.WaitGroup) {
	t.Helper()
	const writers = 4
	var mu sync.Mutex
	said, writing = new([]string), new(sync.WaitGroup)
	ready := make(chan struct{}, 1)
	begun := 0
	for w := range writers {
		writing.Go(func() {
			for i := 0; ; i++ {
				once := fmt.Sprintf("%d-%d", w, i)
				body := fmt.Sprintf(`{"message": {"role": "user", "content": [{"type": "text", "text": %q}]}}`, once)
				resp, err := http.Post(k.address+"/v1/sessions/"+id+"/entries", "application/json", strings.NewReader(body))
				if err != nil {
					return // it has stopped
				}
				text, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Errorf("%s is answered %s %s, %v", once, resp.Status, text, err)
					return
				}
				mu.Lock()
				*said = append(*said, once)
				if i == 3 {
					if begun++; begun == writers {
						ready <- struct{}{}
					}
				}
				mu.Unlock()
			}
		})
	}
	return said, ready, writing
}

// beganImport is an import whose end has not been sent.
type beganImport struct {
	body *io.PipeWriter
	done chan error
}

func (k *killable) beginImport(t *testing.T) *beganImport {
	t.Helper()
	body, w := io.Pipe()
	b := &beganImport{body: w, done: make(chan error, 1)}
	r, err := http.NewRequestWithContext(t.Context(), "POST", k.address+"/v1/import?format=claude-code", body)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			b.done <- err
			return
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		var last struct{ Result bulk.Result }
		if json.Unmarshal([]byte(lines[len(lines)-1]), &last) != nil || last.Result.Sessions != 1 {
			err = fmt.Errorf("%s %s, %w", resp.Status, text, err)
		}
		b.done <- err
	}()
	for i := range 10 {
		if _, err := fmt.Fprintf(w, snoring, i, i, i); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *beganImport) finish(t *testing.T) {
	t.Helper()
	for i := 10; i < 20; i++ {
		if _, err := fmt.Fprintf(b.body, snoring, i, i, i); err != nil {
			t.Errorf("the import was cut off: %v", err)
		}
	}
	_ = b.body.Close()
	if err := <-b.done; err != nil {
		t.Errorf("the import was answered %v", err)
	}
}

// beganTurn is a turn in which a command runs that does not end by itself.
type beganTurn struct {
	*heard
	session, dir string
}

func (k *killable) beginTurn(t *testing.T) *beganTurn {
	t.Helper()
	b := &beganTurn{dir: t.TempDir()}
	body, err := json.Marshal(map[string]any{
		"text": `call bash {"command":"echo once >> ran; echo begun; sleep 600"}`, "tools": []string{"bash"}, "cwd": b.dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.heard = k.listen(t, "POST", "/v1/turns", string(body), "")
	for {
		name, data := b.next(t)
		var m struct{ Event home.TurnEvent }
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("%s %s: %v", name, data, err)
		}
		switch m.Event.Type {
		case "tool_waiting":
			b.session = m.Event.Session
			decision := fmt.Sprintf(`{"call": %q, "decision": "allow"}`, m.Event.Call.ID)
			if status, text := k.ask(t, "POST", "/v1/sessions/"+b.session+"/turn/approve", decision); status != http.StatusOK {
				t.Fatal(text)
			}
		case "tool_update":
			return b
		}
	}
}

// goOn lets another server finish the turn. The command does not run a second time.
func (b *beganTurn) goOn(t *testing.T, k *killable) {
	t.Helper()
	var status home.TurnStatus
	if _, text := k.ask(t, "GET", "/v1/sessions/"+b.session+"/turn", ""); json.Unmarshal([]byte(text), &status) != nil || status.Running || status.Working != nil || !status.Unfinished {
		t.Errorf("the turn is %s", text)
	}
	if code, text := k.ask(t, "POST", "/v1/sessions/"+b.session+"/turn/resume", `{}`); code != http.StatusOK || !strings.Contains(text, "end_turn") {
		t.Errorf("the turn goes on with %d %s", code, text)
	}
	if ran, err := os.ReadFile(filepath.Join(b.dir, "ran")); err != nil || string(ran) != "once\n" {
		t.Errorf("the command ran %q, %v", ran, err)
	}
}
