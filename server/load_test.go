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
	"runtime"
	"slices"
	"strconv"
	"strings"
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
// of it, in the order of the log. With COPPICE_SOAK=60, 500 write for a minute and 200 watch.
func TestManyWritersAndWatchers(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *server.Options) { o.Limits.Rate = 1e6 })
	writers, watchers, length := min(soak.N(40), 500), min(soak.N(20), 200), soak.For(time.Second)
	var ids []string
	for range max(4, writers/10) {
		id, _ := s.talk()
		ids = append(ids, id)
	}
	heard := make([][]string, watchers)
	var watching sync.WaitGroup
	for w := range watchers {
		next := s.events("/v1/follow?session=" + ids[w%len(ids)])
		watching.Go(func() {
			for {
				last, name, data := next()
				if name == "message" {
					heard[w] = append(heard[w], last)
				}
				if strings.Contains(data, theEnd) {
					return
				}
			}
		})
	}
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: writers}}
	defer web.CloseIdleConnections()
	said, byHTTP := write(t, writers, length, func(w, i int) (entry string, _ error) {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/sessions/"+ids[w%len(ids)]+"/entries", strings.NewReader(hello))
		if err != nil {
			return "", err
		}
		r.Header.Set("Idempotency-Key", fmt.Sprintf("%d-%d", w, i))
		resp, err := web.Do(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		var a home.AppendResult
		if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != 200 {
			return "", fmt.Errorf("%s: %w", resp.Status, err)
		}
		return a.Entry, nil
	})
	acknowledged := make([][]string, len(ids))
	for w := range said {
		acknowledged[w%len(ids)] = append(acknowledged[w%len(ids)], said[w]...)
	}
	for n, id := range ids {
		last := want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+id+"/entries", strings.Replace(hello, "How do otters sleep?", theEnd, 1))
		acknowledged[n] = append(acknowledged[n], last.Entry)
	}
	watching.Wait()
	for n, id := range ids {
		var log []string
		if _, err := s.home.Entries.Path(t.Context(), home.PathRequest{Session: id, All: true}, func(e session.Entry) error {
			log = append(log, e.ID)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		log = log[max(0, len(log)-len(acknowledged[n])):] // without what it began with
		if !slices.Equal(slices.Sorted(slices.Values(acknowledged[n])), slices.Sorted(slices.Values(log))) {
			t.Errorf("%d entries were acknowledged, and the session has %d", len(acknowledged[n]), len(log))
		}
		for w := n; w < watchers; w += len(ids) {
			if !slices.Equal(heard[w], log) {
				t.Errorf("a watcher heard %d entries of %d, or in another order", len(heard[w]), len(log))
			}
		}
	}
	var memory runtime.MemStats
	runtime.GC()
	if runtime.ReadMemStats(&memory); memory.HeapAlloc > 512<<20 {
		t.Errorf("the heap has %d MB", memory.HeapAlloc>>20)
	}
	var request home.AppendRequest
	if err := json.Unmarshal([]byte(hello), &request); err != nil {
		t.Fatal(err)
	}
	_, byLibrary := write(t, writers, length/4, func(w, i int) (string, error) {
		r := request
		r.Session, r.Once = ids[w%len(ids)], fmt.Sprintf("library %d-%d", w, i)
		a, err := s.home.Entries.Append(t.Context(), r)
		if err != nil {
			return "", err
		}
		return a.Entry, nil
	})
	t.Logf("%d writers, %d watchers, %d sessions, %v: by HTTP %s; by the library, then, %s; the heap has %d MB and took %d MB from the system",
		writers, watchers, len(ids), length, byHTTP, byLibrary, memory.HeapAlloc>>20, memory.HeapSys>>20)
}

// theEnd is the last that watchers wait for.
const theEnd = "That was all about otters."

// times are how long things took.
type times struct {
	took []time.Duration // sorted
	rate float64         // a second
}

func (l times) String() string {
	return fmt.Sprintf("%d appends, %.0f/s, p50 %v, p99 %v", len(l.took), l.rate,
		l.took[len(l.took)/2].Round(time.Microsecond), l.took[len(l.took)*99/100].Round(time.Microsecond))
}

// write has many append at once for a while, each at least once, and returns what each has
// written.
func write(t *testing.T, writers int, length time.Duration, say func(w, i int) (string, error)) ([][]string, times) {
	t.Helper()
	said, took := make([][]string, writers), make([][]time.Duration, writers)
	began := time.Now()
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := 0; i == 0 || time.Since(began) < length; i++ {
				at := time.Now()
				entry, err := say(w, i)
				if err != nil {
					t.Error(err)
					return
				}
				took[w], said[w] = append(took[w], time.Since(at)), append(said[w], entry)
			}
		})
	}
	writing.Wait()
	all := slices.Concat(took...)
	slices.Sort(all)
	return said, times{all, float64(len(all)) / time.Since(began).Seconds()}
}

// BenchmarkAppend compares an append by HTTP, by one client and by many at once, with the library
// and with a bare handler that writes the same bytes as durably.
func BenchmarkAppend(b *testing.B) {
	for _, atOnce := range []int{1, 64} {
		b.Run(strconv.Itoa(atOnce), func(b *testing.B) { benchmarkAppend(b, atOnce) })
	}
}

func benchmarkAppend(b *testing.B, atOnce int) {
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
	run := func(b *testing.B, do func(n int)) {
		var n atomic.Int64
		var mu sync.Mutex
		var took []time.Duration
		var working sync.WaitGroup
		b.ResetTimer()
		for me := range atOnce {
			working.Go(func() {
				var own []time.Duration
				for n.Add(1) <= int64(b.N) {
					began := time.Now()
					do(me)
					own = append(own, time.Since(began))
				}
				mu.Lock()
				took = append(took, own...)
				mu.Unlock()
			})
		}
		working.Wait()
		b.StopTimer()
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
		run(b, func(n int) {
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
		run(b, func(n int) { post(b, at.URL+"/v1/sessions/"+ids[n%atOnce]+"/entries", []byte(hello)) })
	})
	b.Run("bare", func(b *testing.B) {
		dir := b.TempDir()
		files := make([]*os.File, atOnce)
		for i := range files {
			f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(i)), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			files[i] = f
		}
		one := make([]sync.Mutex, atOnce)
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
		run(b, func(n int) { post(b, fmt.Sprint(at.URL, "/", n%atOnce), []byte(hello)) })
	})
}
