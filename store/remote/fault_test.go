package remote_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/remote"
	"github.com/coppice-dev/coppice/store/storetest"
)

func num(n int) string { return fmt.Sprintf(`{"n":%d}`, n) }

func nums(from, to int) (all []string) {
	for n := from; n < to; n++ {
		all = append(all, num(n))
	}
	return all
}

func wantLines(t testing.TB, log store.Log, want ...string) {
	t.Helper()
	var got []string
	for _, line := range storetest.MustRead(t, log, 0) {
		got = append(got, string(line.Data))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the log has %d lines %.200q, want %d", len(got), got, len(want))
	}
}

// An append whose answer is lost happens once, and its caller learns that it did.
func TestLostAnswerOfAnAppend(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]int32{"cut": cut, "half": half, "silent": swallow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served := inMemory()
			p, url := newProxy(t, serve(t, served))
			st := open(t, url)
			st.Quiet(100 * time.Millisecond)
			log := storetest.MustCreate(t, st, "a", num(0))
			for n := 1; n < 6; n++ {
				end := storetest.MustEnd(t, log)
				p.mode.Store(mode)
				before := p.cuts.Load()
				go func() {
					for p.cuts.Load() == before {
						time.Sleep(time.Millisecond)
					}
					p.mode.Store(pass)
				}()
				got, err := log.Append(t.Context(), end, []byte(num(n)))
				if err != nil {
					t.Fatalf("append %d: %v", n, err)
				}
				if now := storetest.MustEnd(t, log); now != got {
					t.Fatalf("append returned %d, the log ends at %d", got, now)
				}
			}
			wantLines(t, storetest.MustOpen(t, served, "a"), nums(0, 6)...)
		})
	}
}

// If the answer of an append is lost and another writer was first, that is a conflict.
func TestLostAnswerOfAConflict(t *testing.T) {
	t.Parallel()
	served := inMemory()
	p, url := newProxy(t, serve(t, served))
	st := open(t, url)
	log := storetest.MustCreate(t, st, "a", num(0))
	end := storetest.MustEnd(t, log)
	storetest.MustAppend(t, storetest.MustOpen(t, served, "a"), num(7))
	p.mode.Store(cut)
	go func() {
		for p.cuts.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		p.mode.Store(pass)
	}()
	if _, err := log.Append(t.Context(), end, []byte(num(1))); !errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknown) {
		t.Fatalf("append: %v, want a conflict", err)
	}
	wantLines(t, log, num(0), num(7))
}

// If nothing can be found out, the caller is told so, and the handle takes no more appends.
func TestUnknownAppend(t *testing.T) {
	t.Parallel()
	served := inMemory()
	p, url := newProxy(t, serve(t, served))
	st, err := remote.Open(t.Context(), url, &remote.Options{Patience: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log := storetest.MustCreate(t, st, "a", num(0))
	end := storetest.MustEnd(t, log)
	p.mode.Store(cut)
	_, err = log.Append(t.Context(), end, []byte(num(1)))
	if !errors.Is(err, store.ErrUnknown) {
		t.Fatalf("append: %v, want %v", err, store.ErrUnknown)
	}
	p.mode.Store(pass)
	if _, err = log.Append(t.Context(), end, []byte(num(2))); !errors.Is(err, store.ErrUnknown) {
		t.Fatalf("append after that: %v, want %v", err, store.ErrUnknown)
	}
	wantLines(t, storetest.MustOpen(t, st, "a"), nums(0, 2)...)
}

// A request that never got through was not made.
func TestRefusedConnection(t *testing.T) {
	t.Parallel()
	p, url := newProxy(t, serve(t, inMemory()))
	st := open(t, url)
	log := storetest.MustCreate(t, st, "a", num(0))
	p.refuse.Store(true)
	p.hangUp()
	time.AfterFunc(50*time.Millisecond, func() { p.refuse.Store(false) })
	storetest.MustAppend(t, log, num(1))
	wantLines(t, log, nums(0, 2)...)
}

// A log whose creation was not answered is there once, and open.
func TestLostAnswerOfACreation(t *testing.T) {
	t.Parallel()
	p, url := newProxy(t, serve(t, inMemory()))
	st := open(t, url)
	p.mode.Store(cut)
	go func() {
		for p.cuts.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		p.mode.Store(pass)
	}()
	log := storetest.MustCreate(t, st, "a", nums(0, 3)...)
	storetest.MustAppend(t, log, num(3))
	wantLines(t, log, nums(0, 4)...)
}

// A watch goes on where it was: nothing is missing, and nothing comes twice.
func TestWatchOverABadConnection(t *testing.T) {
	t.Parallel()
	served := inMemory()
	p, url := newProxy(t, serve(t, served))
	log := storetest.MustCreate(t, open(t, url), "a", num(0))
	writer := storetest.MustOpen(t, served, "a")
	const last = 500
	go func() {
		for n := 1; n < last; n++ {
			end, _ := writer.End(context.Background())
			_, _ = writer.Append(context.Background(), end, []byte(num(n)))
			if n%50 == 0 {
				p.hangUp()
			}
		}
	}()
	n := 0
	for line, err := range log.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if string(line.Data) != num(n) {
			t.Fatalf("line %d is %s", n, line.Data)
		}
		if n++; n == last {
			break
		}
	}
	if n != last {
		t.Fatalf("the watch ended after %d lines", n)
	}
}

// A server is restarted: handles and watches go on if the log is what it was.
func TestRestartedServer(t *testing.T) {
	t.Parallel()
	served := inMemory()
	var handler atomic.Pointer[remote.Handler]
	handler.Store(remote.NewHandler(served))
	restart := func() {
		if err := handler.Swap(remote.NewHandler(served)).Close(); err != nil {
			t.Error(err)
		}
	}
	st := open(t, listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.Load().ServeHTTP(w, r) })))
	created := storetest.MustCreate(t, st, "a", nums(0, 3)...)
	read := storetest.MustOpen(t, st, "a")
	storetest.MustRead(t, read, 0)
	unread := storetest.MustOpen(t, st, "a")
	tail := storetest.MustOpen(t, st, "a")
	for range tail.Backward(t.Context(), storetest.MustEnd(t, tail)) {
		break
	}
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan string, 100)
	go func() {
		defer close(watched)
		for line, err := range read.Watch(ctx, 0) {
			if err != nil {
				t.Error(err)
				return
			}
			watched <- string(line.Data)
		}
	}()
	n := 3
	for _, log := range []store.Log{created, read, unread, tail} {
		restart()
		storetest.MustAppend(t, log, num(n), num(n+1))
		n += 2
	}
	wantLines(t, created, nums(0, n)...)
	for want := range n {
		if got := <-watched; got != num(want) {
			t.Fatalf("watched %s, want %s", got, num(want))
		}
	}
	stop()
	if more, ok := <-watched; ok {
		t.Fatalf("watched %s as well", more)
	}
	part := store.Part{Kind: store.PartLog, Name: "a", Place: served.Parts().Where(store.PartLog, "a")}
	if err := served.Parts().Edit(t.Context(), part, func(line []byte) ([]byte, error) { return []byte(strings.ToUpper(string(line))), nil }); err != nil {
		t.Fatal(err)
	}
	restart()
	for _, log := range []store.Log{created, read, tail} {
		if err := log.Current(); !errors.Is(err, store.ErrReplaced) {
			t.Errorf("a handle from before the change: %v, want %v", err, store.ErrReplaced)
		}
	}
}

// A watch that sees the first line of a batch before the append is answered costs the handle
// nothing, however often it happens.
func TestRestartWhileABatchIsWatched(t *testing.T) {
	t.Parallel()
	served := inMemory()
	var handler atomic.Pointer[remote.Handler]
	handler.Store(remote.NewHandler(served))
	answer := make(chan struct{})
	st := open(t, listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) != "append" {
			handler.Load().ServeHTTP(w, r)
			return
		}
		held := httptest.NewRecorder()
		handler.Load().ServeHTTP(held, r)
		<-answer
		maps.Copy(w.Header(), held.Header())
		w.WriteHeader(held.Code)
		_, _ = held.Body.WriteTo(w)
	})))
	log := storetest.MustCreate(t, st, "a", num(0))
	end := storetest.MustEnd(t, log)
	appended := make(chan error, 1)
	add := func(n int) {
		next, err := log.Append(t.Context(), end, []byte(num(n)), []byte(num(n+1)))
		end = next
		appended <- err
	}
	const rounds = 40
	n := 0
	for line, err := range log.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if string(line.Data) != num(n) {
			t.Fatalf("line %d is %s", n, line.Data)
		}
		if n%2 == 1 { // the first of a batch, and the second is not seen yet
			answer <- struct{}{}
			if err := <-appended; err != nil {
				t.Fatal(err)
			}
		} else if n == 2*rounds {
			break
		} else {
			go add(n + 1)
		}
		n++
	}
	if err := handler.Swap(remote.NewHandler(served)).Close(); err != nil {
		t.Fatal(err)
	}
	close(answer)
	storetest.MustAppend(t, log, num(n+1))
	wantLines(t, log, nums(0, n+2)...)
}

// listen serves a handler on the loopback interface.
func listen(t testing.TB, h http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	return "http://" + listener.Addr().String()
}

// What a client had locked is free when the client is dead.
func TestDeadClient(t *testing.T) {
	t.Parallel()
	served := inMemory()
	handler := remote.NewHandler(served)
	handler.Hurry(time.Second, 100*time.Millisecond)
	url := listen(t, handler)
	dead, alive := open(t, url), open(t, url)
	log := storetest.MustCreate(t, dead, "a", num(0))
	if _, err := log.Pin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := dead.Blobs().Hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	changing := make(chan struct{})
	go func() {
		_ = dead.Notes("").Change(t.Context(), "note", func([]byte) ([]byte, error) {
			close(changing)
			<-t.Context().Done()
			return []byte("late"), nil
		})
	}()
	<-changing
	dead.Die()
	died := time.Now()
	ref := storetest.MustPut(t, alive.Blobs(), []byte("nobody names it"))
	storetest.MustAppend(t, storetest.MustOpen(t, alive, "a"), num(1))
	if done, err := served.Blobs().Collect(t.Context(), ref); err != nil || len(done.Deleted) != 1 {
		t.Fatalf("collect: %+v, %v", done, err)
	}
	if waited := time.Since(died); waited > 30*time.Second { // a pin would end by itself
		t.Errorf("the others had to wait for %s", waited)
	}
	err := alive.Notes("").Change(t.Context(), "note", func(old []byte) ([]byte, error) {
		if old != nil {
			t.Errorf("the note of the dead client is %q", old)
		}
		return []byte("alive"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// counted counts what is taken of a store.
type counted struct {
	store.Store
	holds, pins, flushes atomic.Int32
}

func (c *counted) Blobs() store.Blobs { return countedBlobs{c.Store.Blobs(), c} }

func (c *counted) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	log, err := c.Store.Create(ctx, name, lines)
	return countedLog{log, c}, err
}

type countedBlobs struct {
	store.Blobs
	of *counted
}

func (b countedBlobs) Hold(ctx context.Context) (func(), error) {
	b.of.holds.Add(1)
	return b.Blobs.Hold(ctx)
}

type countedLog struct {
	store.Log
	of *counted
}

func (l countedLog) Pin(ctx context.Context) (func(), error) {
	l.of.pins.Add(1)
	return l.Log.Pin(ctx)
}

func (l countedLog) Flush(ctx context.Context) error {
	l.of.flushes.Add(1)
	return l.Log.Flush(ctx)
}

// Logs created in a batch are durable, even if the store there syncs lazily.
func TestABatchIsDurable(t *testing.T) {
	t.Parallel()
	served := &counted{Store: inMemory()}
	b := open(t, listen(t, remote.NewHandler(served))).Batch()
	for n := range 20 {
		if err := b.Add(t.Context(), fmt.Sprint("log", n), store.Lines([]byte(num(n)))); err != nil {
			t.Fatal(err)
		}
	}
	if errs := b.Commit(t.Context()); len(errs) > 0 || served.flushes.Load() != 20 {
		t.Errorf("%d of 20 logs were flushed; %v", served.flushes.Load(), errs)
	}
}

// A client that never releases a lease does not keep others out for ever, even while it is alive. It
// takes the lease again if it still needs it.
func TestALeaseHasALife(t *testing.T) {
	t.Parallel()
	served := &counted{Store: inMemory()}
	handler := remote.NewHandler(served)
	handler.Shorten(50 * time.Millisecond)
	url := listen(t, handler)
	tight, other := open(t, url), open(t, url)
	tight.Tick(time.Millisecond)
	holdAll(t, tight)
	ref := storetest.MustPut(t, other.Blobs(), []byte("nobody names it"))
	storetest.MustAppend(t, storetest.MustOpen(t, other, "a"), num(1))
	if done, err := served.Blobs().Collect(t.Context(), ref); err != nil || len(done.Deleted) != 1 {
		t.Errorf("collect: %+v, %v", done, err)
	}
	for served.holds.Load() < 3 || served.pins.Load() < 3 { // and again, and again
		time.Sleep(time.Millisecond)
	}
}

// A handle that nobody uses is forgotten; its client does not notice.
func TestForgottenHandle(t *testing.T) {
	t.Parallel()
	handler := remote.NewHandler(inMemory())
	log := storetest.MustCreate(t, open(t, listen(t, handler)), "a", num(0))
	for n := 1; n < 20; n++ {
		storetest.MustAppend(t, log, num(n))
		if handler.Forget() != 1 {
			t.Fatal("there was no handle to forget")
		}
	}
	wantLines(t, log, nums(0, 20)...)
}

const childEnv = "COPPICE_REMOTE_CHILD"

// TestChild is the server of TestKilledServer.
func TestChild(t *testing.T) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		return
	}
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(listener.Addr())
	t.Fatal(http.Serve(listener, remote.NewHandler(st)))
}

func startChild(dir string) (child *exec.Cmd, host string, err error) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, "", err
	}
	host, err = bufio.NewReader(out).ReadString('\n')
	return cmd, strings.TrimSpace(host), err
}

// A server is killed while a client appends, and another one takes its place: every line is
// there once, in order.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	child, host, err := startChild(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, url := newProxy(t, "http://"+host)
	st := open(t, url)
	log := storetest.MustCreate(t, st, "a", num(0))
	n, rng := 1, soak.Rand(t)
	for range soak.N(5) {
		replaced := make(chan error, 1)
		go func() {
			time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond)
			_ = child.Process.Kill()
			_ = child.Wait()
			var err error
			if child, host, err = startChild(dir); err == nil {
				p.moveTo(host)
			}
			replaced <- err
		}()
		for done := false; !done; n++ {
			select {
			case err := <-replaced:
				if err != nil {
					t.Fatal(err)
				}
				done = true
			default:
			}
			end, err := log.End(t.Context())
			if err == nil {
				_, err = log.Append(t.Context(), end, []byte(num(n)))
			}
			if err != nil {
				t.Fatalf("append %d: %v", n, err)
			}
		}
	}
	wantLines(t, storetest.MustOpen(t, st, "a"), nums(0, n)...)
	t.Logf("%d appends", n)
	_ = child.Process.Kill()
	_ = child.Wait()
}
