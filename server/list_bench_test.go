package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/server"
	"github.com/coppice-dev/coppice/session"
)

// manySessions fills a directory with sessions of three messages, half of them about /otters, and
// returns a home there whose index is up to date.
func manySessions(b *testing.B) *home.Home {
	dir := b.TempDir()
	began := time.Now()
	for n := range soak.N(1000) {
		at := time.Unix(1_700_000_000+int64(n), 0).UTC()
		h := session.Header{Type: session.TypeSession, Version: session.Version, ID: session.NewID(), CreatedAt: at, CWD: [2]string{"/otters", "/beavers"}[n%2]}
		var text []byte
		parent := (*string)(nil)
		for i := range 4 {
			var line any = h
			if i > 0 {
				e := session.Message(session.RoleUser, session.Text(fmt.Sprintf("How do otters number %d sleep, in river %d?", n, n%100)))
				e.ID, e.Timestamp, e.ParentID = session.NewID(), at, parent
				parent, line = &e.ID, e
			}
			encoded, err := json.Marshal(line)
			if err != nil {
				b.Fatal(err)
			}
			text = append(append(text, encoded...), '\n')
		}
		if err := os.WriteFile(filepath.Join(dir, h.ID+".jsonl"), text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	h, err := home.Open(b.Context(), dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close() })
	if _, err := h.Sessions.List(b.Context(), home.ListRequest{Limit: 1}); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d sessions made and indexed in %v", soak.N(1000), time.Since(began).Round(time.Millisecond))
	return h
}

// BenchmarkMany lists and searches many sessions, by the library and by HTTP. COPPICE_SOAK=100
// makes 100,000 of them.
func BenchmarkMany(b *testing.B) {
	h := manySessions(b)
	s, err := server.New(server.Options{Home: h})
	if err != nil {
		b.Fatal(err)
	}
	web := httptest.NewServer(s)
	b.Cleanup(func() { web.Close(); _ = s.Close() })
	get := func(path string) error {
		resp, err := http.Get(web.URL + path)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != 200 {
			err = errors.New(resp.Status)
		}
		return err
	}
	list := func() error {
		_, err := h.Sessions.List(b.Context(), home.ListRequest{Limit: 50})
		return err
	}
	find := func() error {
		_, err := h.Search.Find(b.Context(), home.FindRequest{Query: "otters river 42"})
		return err
	}
	for _, work := range []struct {
		name string
		do   func() error
	}{
		{"list/library", list},
		{"list/HTTP", func() error { return get("/v1/sessions?limit=50") }},
		{"search/library", find},
		{"search/HTTP", func() error { return get("/v1/search?query=otters+river+42") }},
	} {
		b.Run(work.name, func(b *testing.B) {
			for b.Loop() {
				if err := work.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
