package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
)

// TestFollowingWithContentAgain: a caller that reconnects to a stream which the server does not
// keep learns that entries may be missing, and gets those that come from then on.
func TestFollowingWithContentAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	session, at := s.talk()
	const path = "/v1/follow?filled=true"
	next := s.events(path, "Last-Event-ID: "+at)
	if id, event, _ := next(); event != "reset" || id != "" {
		t.Errorf("it begins with %s %q", event, id)
	}
	said := want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+session+"/entries", hello).Entry
	if id, event, data := next(); id != said || event != "message" {
		t.Errorf("then comes %s %s %s", event, id, data)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+path+"&after="+at, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/x-ndjson")
	resp, err := caller.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); ; {
		var m server.Message
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &m) != nil || m.Error != nil {
			t.Fatalf("after %s comes %q", at, lines.Text())
		}
		if m.Notice != nil && m.Notice.Kind == home.EntriesMissed {
			break
		}
	}
}

// TestReconnectingAsksForTheSameAddress: what it says about the beginning counts only once.
func TestReconnectingAsksForTheSameAddress(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, first := s.talk()
	second := want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+id+"/entries", hello).Entry
	path := "/v1/follow?last=2&session=" + id
	next := s.arrivals(path)
	for _, want := range []string{first, second} {
		if got, _, data := next(); got != want {
			t.Errorf("it begins with %s, not with %s", data, want)
		}
	}
	if got, _, data := s.arrivals(path, "Last-Event-ID: "+first)(); got != second {
		t.Errorf("it goes on with %s, not with %s", data, second)
	}
}

// deaf is a caller that takes the first pieces of an answer, and then nothing more: who writes to it
// waits until the deadline.
type deaf struct {
	*httptest.ResponseRecorder
	t        *testing.T
	deadline time.Time
	takes    int
	took     chan struct{}
	leave    context.CancelFunc // ends the request
}

func (d *deaf) SetReadDeadline(time.Time) error     { return nil }
func (d *deaf) SetWriteDeadline(at time.Time) error { d.deadline = at; return nil }

func (d *deaf) Write(p []byte) (int, error) {
	if d.takes > 0 {
		d.takes--
		d.took <- struct{}{}
		return d.ResponseRecorder.Write(p)
	}
	if patience := time.Until(d.deadline); patience > time.Minute || d.deadline.IsZero() {
		d.t.Errorf("the server would wait until %s", d.deadline)
	}
	d.leave() // as net/http does when it cannot write
	return 0, os.ErrDeadlineExceeded
}

// TestAFollowerWhoDoesNotReadIsCutOff: it does not keep the server waiting, nor its place.
func TestAFollowerWhoDoesNotReadIsCutOff(t *testing.T) {
	t.Parallel()
	h, err := home.Open(t.Context(), t.TempDir(), &home.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Options{Home: h, Authorize: anybody, Limits: server.Limits{Streams: 1}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := h.Sessions.Create(t.Context(), home.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	said := home.AppendRequest{Session: made.Session}
	if err := json.Unmarshal([]byte(hello), &said); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/follow", "/v1/follow?filled=true", "/v1/follow?last=1"} {
		for takes := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			w := &deaf{ResponseRecorder: httptest.NewRecorder(), t: t, takes: takes, took: make(chan struct{}, takes), leave: cancel}
			var talking sync.WaitGroup
			talking.Go(func() {
				for {
					if _, err := h.Entries.Append(t.Context(), said); err != nil {
						t.Error(err)
					}
					select {
					case <-w.took:
					case <-ctx.Done():
						return
					}
				}
			})
			srv.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://localhost"+path, nil)) // it ends
			cancel()
			talking.Wait()
			if w.Code != http.StatusOK || w.takes > 0 {
				t.Errorf("%s: %d %s; %d pieces were not taken", path, w.Code, w.Body, w.takes)
			}
		}
	}
	if err := errors.Join(srv.Close(), h.Close()); err != nil {
		t.Error(err)
	}
}
