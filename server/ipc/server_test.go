package ipc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coppice-dev/coppice/home"
	_ "github.com/coppice-dev/coppice/home/all"
	"github.com/coppice-dev/coppice/server/ipc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLongLine: a line that is too long is skipped with an error, and the next one is answered.
func TestLongLine(t *testing.T) {
	t.Parallel()
	_, path := serve(t, newHome(t), &ipc.Options{MaxLine: 1000})
	c := dial(t, path)
	exact := `{"type":"session_create","title":"` + strings.Repeat("x", 1000-len(`{"type":"session_create","title":""}`)) + `"}`
	if answer := c.ask(exact); answer["type"] != "session_created" {
		t.Errorf("1000 bytes: %v", answer)
	}
	for _, length := range []int{1001, 5000, 1 << 20} {
		if answer := c.ask(strings.Repeat("x", length)); answer["kind"] != "too_large" || !strings.Contains(fmt.Sprint(answer["message"]), "1000 bytes") {
			t.Errorf("%d bytes: %v", length, answer)
		}
		if answer := c.call(1, "sessions.list", nil); answer["result"] == nil {
			t.Errorf("after %d bytes: %v", length, answer)
		}
		if answer := c.ask(strings.Repeat("x", length)); answer["error"].(object)["code"] != -32600.0 {
			t.Errorf("%d bytes: %v", length, answer)
		}
		c.create()
	}
}

// TestBlankLines: they mean nothing, and neither does how lines end.
func TestBlankLines(t *testing.T) {
	t.Parallel()
	c := begin(t)
	if answer := c.ask("\n\r\n  \n{\"type\":\"session_list\"}\r"); answer["type"] != "session_list_result" {
		t.Errorf("%v", answer)
	}
}

// fill makes a session with so many messages of 10 KB.
func fill(t *testing.T, h *home.Home, n int) (id string) {
	t.Helper()
	made, err := h.Sessions.Create(t.Context(), home.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		var r home.AppendRequest
		line, err := json.Marshal(message(made.Session, fmt.Sprint(i, strings.Repeat(" leaf", 2000))))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Entries.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return made.Session
}

// TestClientThatNeverReads: it costs a bounded amount of memory, is disconnected after a while,
// and the others do not notice.
func TestClientThatNeverReads(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := fill(t, h, 300)
	_, path := serve(t, h, &ipc.Options{ReadTimeout: 5 * time.Second})
	deaf := dial(t, path)
	go func() { // it asks for 3 MB again and again
		for {
			if _, err := deaf.Write([]byte(call(1, "entries.path", object{"session": id}) + "\n" + call(2, "sessions.list", nil) + "\n")); err != nil {
				return
			}
		}
	}()
	c := dial(t, path)
	for i := range 20 {
		if answer := c.call(i, "entries.append", message(id, "still here")); answer["result"] == nil {
			t.Fatalf("%v", answer)
		}
	}
	var used runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&used)
	if used.HeapInuse > 200<<20 {
		t.Errorf("%d MB are in use", used.HeapInuse>>20)
	}
	// What the server has written until then can still be read; then it ends.
	if _, err := io.Copy(io.Discard, deafAfter(t, deaf)); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("it was not disconnected: %v", err)
	}
}

// deafAfter waits until the server has given a client up, which its writes notice, and returns
// what is left to read.
func deafAfter(t *testing.T, c *client) io.Reader {
	t.Helper()
	for {
		if _, err := c.Write([]byte("\n")); err != nil {
			return c.Conn
		}
		runtime.Gosched()
	}
}

// TestHalfALine: a client that stops in the middle of a line keeps neither others from theirs nor
// the server from ending.
func TestHalfALine(t *testing.T) {
	t.Parallel()
	s, path := serve(t, newHome(t), nil)
	for _, half := range []string{"", `{"type":"session_cr`, `{"jsonrpc":"2.0","id":1,"method":"sessions.li`, "[", strings.Repeat(" ", 100_000)} {
		stuck := dial(t, path)
		if _, err := io.WriteString(stuck, half); err != nil {
			t.Fatal(err)
		}
	}
	c := dial(t, path)
	if answer := c.call(1, "sessions.list", nil); answer["result"] == nil {
		t.Errorf("%v", answer)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestIdleConnections cost little, and one too many is told why.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	_, path := serve(t, newHome(t), nil)
	for range 1024 {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	refused := dial(t, path)
	if e, _ := refused.next()["error"].(object); e["code"] != -32010.0 {
		t.Errorf("one too many: %v", e)
	}
}

// TestShutdownLosesNothing: whoever appends while the server ends gets an answer for each
// message that is in the log, and there is no other message there.
func TestShutdownLosesNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s, path := serve(t, h, nil)
	const writers = 8
	var work sync.WaitGroup
	answered := make([]int, writers)
	sessions := make([]string, writers)
	busy := make(chan struct{}, writers)
	for w := range writers {
		c := dial(t, path)
		sessions[w] = c.create()
		work.Go(func() {
			for i := 0; ; i++ {
				if _, err := c.Write([]byte(call(i, "entries.append", message(sessions[w], fmt.Sprint(i))) + "\n")); err != nil {
					return
				}
				line, err := c.lines.ReadString('\n')
				for err == nil && strings.HasPrefix(line, progress) {
					line, err = c.lines.ReadString('\n')
				}
				if err != nil {
					return
				}
				if !strings.Contains(line, `"result"`) {
					t.Errorf("an answer: %s", line)
				}
				if answered[w]++; i == 5 {
					busy <- struct{}{}
				}
			}
		})
	}
	watcher := dial(t, path)
	watcher.say(call("watch", "entries.follow", object{}))
	for range writers {
		<-busy
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	work.Wait()
	for {
		answer := watcher.next()
		if answer["id"] == "watch" {
			break // it was told that it ends
		}
	}
	for w, id := range sessions {
		info, err := h.Sessions.Get(t.Context(), home.SessionRequest{Session: id})
		if err != nil || info.Messages != answered[w] {
			t.Errorf("%d messages were answered, and the log has %v, %v", answered[w], info.Messages, err)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is still there")
	}
}

// TestEndOfInput: a client that has nothing more to ask still gets its answers, even without a
// newline at the end, and then the connection ends.
func TestEndOfInput(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	id := fill(t, h, 20)
	_, path := serve(t, h, nil)
	c := dial(t, path)
	c.say(call("watch", "entries.follow", object{}))
	c.say(call("path", "entries.path", object{"session": id}))
	if _, err := c.Write([]byte(`{"type":"session_list"}`)); err != nil {
		t.Fatal(err)
	}
	if err := c.Conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(c.lines)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`{"jsonrpc":"2.0","id":"path","result":{"events":20}}`, `"id":"watch","result"`, `{"type":"session_list_result"`} {
		if !bytes.Contains(rest, []byte(part)) {
			t.Errorf("there is no %s", part)
		}
	}
}

// TestStream: the same by a pair of streams.
func TestStream(t *testing.T) {
	t.Parallel()
	in := strings.NewReader("{\"type\":\"session_create\"}\n{\"type\":\"session_save\"}\n" + call(1, "sessions.tags", nil))
	var out bytes.Buffer
	if err := ipc.New(newHome(t), nil).ServeStream(in, &out); err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(strings.Split(strings.TrimSpace(out.String()), "\n"), func(line string) bool { return strings.HasPrefix(line, progress) })
	if len(got) != 3 || !strings.Contains(got[1], `{"type":"session_saved","success":true}`) || !strings.Contains(got[2], `"result":{"tags":[]}`) {
		t.Errorf("%q", got)
	}
}

// TestStreamShutdown: a server of streams ends although its input does not.
func TestStreamShutdown(t *testing.T) {
	t.Parallel()
	in, writer := io.Pipe()
	defer writer.Close()
	reader, out := io.Pipe()
	s := ipc.New(newHome(t), nil)
	done := make(chan error, 1)
	go func() { done <- s.ServeStream(in, out) }()
	go func() { _, _ = writer.Write([]byte(call(1, "sessions.tags", nil) + "\n")) }()
	if _, err := reader.Read(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
