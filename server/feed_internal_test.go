package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// crowd is a server with many followers.
type crowd struct {
	*testing.T
	home    *home.Home
	server  *Server
	session string
	encoded atomic.Int64
}

func newCrowd(t *testing.T, memory int64) *crowd {
	h, err := home.Open(t.Context(), "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Home: h, Limits: Limits{Memory: memory}, Authorize: func(context.Context, string) (*Grant, error) { return &Grant{Access: home.Admin}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	})
	c := &crowd{T: t, home: h, server: s}
	s.feeds.encode = func(v any) ([]byte, error) { c.encoded.Add(1); return json.Marshal(v) }
	made, err := h.Sessions.Create(t.Context(), home.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	c.session = made.Session
	c.say("first")
	return c
}

func (c *crowd) say(words string) string {
	c.Helper()
	e := session.Message(session.RoleUser, session.Text(words))
	r := home.AppendRequest{Session: c.session, Message: e.Message}
	said, err := c.home.Entries.Append(c.Context(), r)
	if err != nil {
		c.Fatal(err)
	}
	return said.Entry
}

// reader is a caller who takes what it is sent, except while it is stuck.
type reader struct {
	*httptest.ResponseRecorder
	mu       sync.Mutex
	free     *sync.Cond
	text     strings.Builder
	stuck    bool
	deadline time.Time
	leave    context.CancelFunc
	done     chan struct{}
}

func (r *reader) SetReadDeadline(time.Time) error { return nil }

func (r *reader) SetWriteDeadline(at time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadline = at
	r.free.Broadcast()
	return nil
}

func (r *reader) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.stuck && len(p) > 1000 && time.Now().Before(r.deadline) {
		r.free.Wait()
	}
	if !time.Now().Before(r.deadline) {
		return 0, context.DeadlineExceeded
	}
	r.text.Write(p)
	r.free.Broadcast()
	return len(p), nil
}

// await waits until the reader has been sent some words.
func (r *reader) await(words string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !strings.Contains(r.text.String(), words) {
		r.free.Wait()
	}
}

func (r *reader) count(words string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.text.String(), words)
}

func (c *crowd) follow(path string, stuck bool) *reader {
	ctx, cancel := context.WithCancel(c.Context())
	r := &reader{ResponseRecorder: httptest.NewRecorder(), stuck: stuck, leave: cancel, done: make(chan struct{})}
	r.free = sync.NewCond(&r.mu)
	request := httptest.NewRequestWithContext(ctx, "GET", "http://localhost"+path, nil)
	request.Header.Set("Accept", lines)
	go func() {
		defer close(r.done)
		c.server.ServeHTTP(r, request)
	}()
	c.Cleanup(func() {
		cancel()
		_ = r.SetWriteDeadline(time.Unix(1, 0))
		<-r.done
	})
	return r
}

func (c *crowd) held() int64 {
	c.server.feeds.mu.Lock()
	defer c.server.feeds.mu.Unlock()
	return c.server.feeds.size
}

// An entry is encoded once for all who follow, whatever they follow it with.
func TestFollowersShareWhatIsEncoded(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"all": "/v1/follow", "session": "/v1/follow?session=%s", "filled": "/v1/follow?session=%s&filled=true", "last": "/v1/follow?session=%s&last=1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowd(t, 512<<20)
			if strings.Contains(path, "%s") {
				path = fmt.Sprintf(path, c.session)
			}
			var readers []*reader
			for range 50 {
				readers = append(readers, c.follow(path, false))
			}
			for _, r := range readers {
				r.await(`"begun":true`)
			}
			before := c.encoded.Load()
			for i := range 5 {
				c.say(fmt.Sprint("words ", i, strings.Repeat(" many", 10000)))
			}
			for _, r := range readers {
				r.await("words 4")
				for i := range 5 {
					if n := r.count(fmt.Sprint("words ", i)); n != 1 {
						t.Errorf("a follower has entry %d %d times", i, n)
					}
				}
			}
			if n := c.encoded.Load() - before; n != 5 {
				t.Errorf("5 entries were encoded %d times", n)
			}
		})
	}
}

// Those who do not read hold what they are sent once, together, and no more than there may be: then
// they are cut off. The others get everything.
func TestFollowersWhoDoNotReadHoldLittle(t *testing.T) {
	t.Parallel()
	const size, limit = 1 << 20, 64 << 20 // of which feeds have a quarter
	for name, path := range map[string]string{"all": "/v1/follow", "session": "/v1/follow?session=%s"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowd(t, limit)
			if strings.Contains(path, "%s") {
				path = fmt.Sprintf(path, c.session)
			}
			reads := c.follow(path, false)
			reads.await(`"begun":true`)
			var deaf []*reader
			greatest := int64(0)
			for i := range 24 {
				for range 3 { // each of the next is stuck at another entry
					r := c.follow(path, true)
					r.await(`"begun":true`)
					deaf = append(deaf, r)
				}
				words := fmt.Sprint("words ", i, " ")
				c.say(words + strings.Repeat("x", size))
				reads.await(words)
				greatest = max(greatest, c.held())
			}
			if greatest < 10*size || greatest > limit/4+4*size {
				t.Errorf("the feeds held up to %d bytes", greatest)
			}
			for _, r := range deaf[:20] {
				<-r.done // it was cut off
			}
			for i := range 24 {
				if n := reads.count(fmt.Sprint("words ", i, " ")); n != 1 {
					t.Errorf("who reads has entry %d %d times", i, n)
				}
			}
		})
	}
}

// Who was away continues where it was, from what the feed has or from the log: each entry comes once.
func TestFollowerContinues(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 4<<20) // of which feeds keep little
	var ids []string
	say := func(n int) {
		for range n {
			ids = append(ids, c.say(fmt.Sprint("words ", len(ids), " ", strings.Repeat("x", 100<<10))))
		}
	}
	say(20)
	path := "/v1/follow?session=" + c.session
	other := c.follow(path, false)
	other.await(`"begun":true`)
	say(20)
	for from := 0; from < len(ids); from += 7 {
		r := c.follow(path+"&after="+ids[from], false)
		last := c.follow(fmt.Sprint(path, "&last=", len(ids)-from), false)
		say(1)
		for _, words := range []struct {
			*reader
			first int
		}{{r, from + 1}, {last, from}} {
			words.await(fmt.Sprint("words ", len(ids)-1, " "))
			for i := range ids {
				want := 0
				if i >= words.first {
					want = 1
				}
				if n := words.count(fmt.Sprint("words ", i, " ")); n != want && (i != words.first || words.reader != last) {
					t.Errorf("from %d: entry %d came %d times, want %d", from, i, n, want)
				}
			}
		}
		r.leave()
		last.leave()
	}
}

// A feed ends when nobody has followed for a while, and then holds nothing.
func TestFeedEndsWithItsFollowers(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 64<<20)
	c.server.feeds.linger = time.Millisecond
	for _, path := range []string{"/v1/follow", "/v1/follow?session=" + c.session} {
		r := c.follow(path, false)
		r.await(`"begun":true`)
		c.say("heard")
		r.await("heard")
		r.leave()
		<-r.done
	}
	for range 1000 {
		c.server.feeds.mu.Lock()
		n := len(c.server.feeds.all)
		c.server.feeds.mu.Unlock()
		if n == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := c.held(); n != 0 || len(c.server.feeds.all) > 0 {
		t.Errorf("%d feeds hold %d bytes", len(c.server.feeds.all), n)
	}
}
