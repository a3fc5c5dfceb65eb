package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/server"
	"github.com/coppice-dev/coppice/session"
)

// TestManyWritersAndWatchers: what many say at once is there once, and those who watch hear all
// of it, in the order of the log.
func TestManyWritersAndWatchers(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	const sessions, watchers = 4, 20
	writers, each := 40, soak.N(10)
	var ids []string
	for range sessions {
		id, _ := s.talk()
		ids = append(ids, id)
	}
	heard := make([][]string, watchers)
	var watching sync.WaitGroup
	for w := range watchers {
		id := ids[w%sessions]
		next := s.events("/v1/follow?session=" + id)
		total := writers / sessions * each
		watching.Go(func() {
			for len(heard[w]) < total {
				if last, name, _ := next(); name == "message" {
					heard[w] = append(heard[w], last)
				}
			}
		})
	}
	said := make([][]string, writers)
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				a := want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+ids[w%sessions]+"/entries", hello, fmt.Sprintf("Idempotency-Key: %d-%d", w, i))
				said[w] = append(said[w], a.Entry)
			}
		})
	}
	writing.Wait()
	watching.Wait()
	for n, id := range ids {
		var log []string
		if _, err := s.home.Entries.Path(t.Context(), home.PathRequest{Session: id, All: true}, func(e session.Entry) error {
			log = append(log, e.ID)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		log = log[len(log)-writers/sessions*each:] // without what it began with
		var acknowledged []string
		for w := n; w < writers; w += sessions {
			acknowledged = append(acknowledged, said[w]...)
		}
		if !slices.Equal(slices.Sorted(slices.Values(acknowledged)), slices.Sorted(slices.Values(log))) {
			t.Errorf("%d entries were acknowledged, and the session has %d", len(acknowledged), len(log))
		}
		for w := n; w < watchers; w += sessions {
			if !slices.Equal(heard[w], log) {
				t.Errorf("a watcher heard %d entries of %d, or in another order", len(heard[w]), len(log))
			}
		}
	}
}

// BenchmarkAppend compares an append by HTTP, by many at once, with the library and with a bare
// handler that writes the same bytes as durably.
func BenchmarkAppend(b *testing.B) {
	const atOnce = 64
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4 * atOnce}}
	post := func(b *testing.B, url string, body []byte) {
		resp, err := web.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			b.Error(err)
			return
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			b.Error(resp.Status, err)
		}
	}
	run := func(b *testing.B, do func(n int64)) {
		var n atomic.Int64
		var mu sync.Mutex
		var took []time.Duration
		b.SetParallelism(atOnce / 2)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			var own []time.Duration
			me := n.Add(1)
			for pb.Next() {
				began := time.Now()
				do(me)
				own = append(own, time.Since(began))
			}
			mu.Lock()
			took = append(took, own...)
			mu.Unlock()
		})
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	}
	newHome := func(b *testing.B) (*home.Home, []string) {
		h, err := home.Open(b.Context(), filepath.Join(b.TempDir(), "sessions"), &home.Options{Create: true})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = h.Close() })
		var ids []string
		for range atOnce {
			made, err := h.Sessions.Create(b.Context(), home.CreateRequest{})
			if err != nil {
				b.Fatal(err)
			}
			ids = append(ids, made.Session)
		}
		return h, ids
	}
	var request home.AppendRequest
	if err := json.Unmarshal([]byte(hello), &request); err != nil {
		b.Fatal(err)
	}
	b.Run("library", func(b *testing.B) {
		h, ids := newHome(b)
		run(b, func(n int64) {
			r := request
			r.Session = ids[n%atOnce]
			if _, err := h.Entries.Append(b.Context(), r); err != nil {
				b.Error(err)
			}
		})
	})
	b.Run("HTTP", func(b *testing.B) {
		h, ids := newHome(b)
		s, err := server.New(server.Options{Home: h, Limits: server.Limits{Rate: 1e6}})
		if err != nil {
			b.Fatal(err)
		}
		at := httptest.NewServer(s)
		defer func() { at.Close(); _ = s.Close() }()
		run(b, func(n int64) { post(b, at.URL+"/v1/sessions/"+ids[n%atOnce]+"/entries", []byte(hello)) })
	})
	b.Run("bare", func(b *testing.B) {
		dir := b.TempDir()
		var files [atOnce]*os.File
		for i := range files {
			f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(i)), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			files[i] = f
		}
		var one [atOnce]sync.Mutex
		at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var n int
			_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
			body, err := io.ReadAll(r.Body)
			one[n].Lock()
			defer one[n].Unlock()
			if err == nil {
				_, err = files[n].Write(append(body, '\n'))
			}
			if err == nil {
				err = files[n].Sync()
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}))
		defer at.Close()
		run(b, func(n int64) { post(b, fmt.Sprint(at.URL, "/", n%atOnce), []byte(hello)) })
	})
}
