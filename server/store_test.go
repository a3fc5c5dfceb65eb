package server_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/remote"
)

// TestTheStoreBringsNothingBack: a client that writes lines of its own cannot bring back what was
// redacted, in whatever it writes, and can write everything else.
func TestTheStoreBringsNothingBack(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	id, _ := s.talk()
	secret := "ghp_0aB9xQ2mWvT7Lr4Ek1Zs8Yp3Nd6Hc5Jf2GuX"
	want[home.AppendResult](s, 200, "POST", "/v1/sessions/"+id+"/entries", strings.ReplaceAll(hello, "How", "the key is "+secret))
	redacted, err := s.home.Upkeep.Redact(t.Context(), home.RedactRequest{All: true, Apply: true})
	if err != nil || redacted.Receipt == nil || len(redacted.Receipt.Kinds) == 0 {
		t.Fatalf("%+v, %v", redacted, err)
	}
	st, err := remote.Open(t.Context(), s.url+"/v1/store", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for n, text := range []string{"the key was " + secret, "the key is gone"} {
		name, ctx := "made-"+string(rune('a'+n)), t.Context()
		entry := session.Entry{Type: session.TypeMessage, ID: "e-" + name, Timestamp: time.Now(), Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text(text)}}}
		line, err := entry.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		header := []byte(`{"type":"session","id":"` + name + `","version":1,"timestamp":"2026-01-02T03:04:05Z"}`)
		closed := func(l store.Log, err error) error {
			if err != nil {
				return err
			}
			return l.Close()
		}
		for what, write := range map[string]func() error{
			"create": func() error { return closed(st.Create(ctx, name, store.Lines(header, line))) },
			"append": func() error {
				l, err := st.Open(ctx, id)
				if err != nil {
					return err
				}
				end, err := l.End(ctx)
				if err == nil {
					_, err = l.Append(ctx, end, line)
				}
				return errors.Join(err, l.Close())
			},
			"batch": func() error {
				b := st.Batch()
				defer b.Discard()
				if err := b.Add(ctx, "batch-"+name, store.Lines(header, line)); err != nil {
					return err
				}
				return b.Commit(ctx)["batch-"+name]
			},
			"blob": func() error { _, err := st.Blobs().Put(ctx, []byte(text)); return err },
			"note": func() error { return st.Notes("room").Write(ctx, "n", []byte(text)) },
			"hint": func() error { return st.Notes("room").WriteHint(ctx, "h", []byte(text)) },
			"change": func() error {
				return st.Notes("room").Change(ctx, "c", func([]byte) ([]byte, error) { return []byte(text), nil })
			},
		} {
			if err := write(); n == 0 && !errors.Is(err, store.ErrInvalid) || n == 1 && err != nil {
				t.Errorf("%s of %q: %v", what, text, err)
			}
		}
	}
	if found := want[home.FindResult](s, 200, "GET", "/v1/search?query="+secret, ""); len(found.Hits) > 0 {
		t.Errorf("it is back: %+v", found.Hits)
	}
}

// TestTheStoreRefusesAsOthersDo: a request that is not allowed, or that asks for something that does
// not exist, is answered by a problem with a kind, as everywhere on the server.
func TestTheStoreRefusesAsOthersDo(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *server.Options) { o.Authorize = allowed })
	for _, test := range []struct {
		request, token string
		status         int
		kind           home.Kind
		detail         string
	}{
		{"POST append", "r", 403, home.KindForbidden, "the token r has read"},
		{"POST remove", "w", 403, home.KindForbidden, "the token w has write"},
		{"POST nothing", "r", 404, home.KindNotFound, "no such operation"},
		{"GET append", "a", 405, home.KindInvalid, "/v1/store/append takes POST"},
	} {
		method, op, _ := strings.Cut(test.request, " ")
		a := s.ask(method, "/v1/store/"+op, "", "Authorization: Bearer "+test.token)
		var p server.Problem
		if err := json.Unmarshal(a.body, &p); err != nil || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s, %v", test.request, a.body, err)
		}
		if a.status != test.status || p.Status != test.status || p.Kind != test.kind || !strings.Contains(p.Detail, test.detail) {
			t.Errorf("%s: %d %s", test.request, a.status, a.body)
		}
	}
}
