package remote_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/remote"
	"github.com/coppice-dev/coppice/store/storetest"
)

func frame(kind byte, payload string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload)))) + payload
}

// Every kind of error is the same on the other side.
func TestErrorsCross(t *testing.T) {
	t.Parallel()
	for _, kind := range remote.Kinds() {
		for _, err := range []error{kind, fmt.Errorf("around: %w", kind), &store.Error{Op: "append", Name: "a", Offset: 7, At: true, Kind: kind, Hint: "do this"}} {
			got := remote.Describe(err, "/srv/secret")
			if !errors.Is(got, kind) {
				t.Errorf("%v became %v", err, got)
			}
		}
	}
	limit := store.MaxSession.Check("append", "a", 12, 10)
	if got := remote.Describe(limit, ""); got.Error() != limit.Error() || !errors.Is(got, store.ErrTooLarge) {
		t.Errorf("%v became %v", limit, got)
	}
	full := &store.Error{Op: "append", Path: "/srv/secret/a", Kind: store.ErrUnknown, Err: &fs.PathError{Op: "write", Path: "/srv/secret/a", Err: syscall.ENOSPC}}
	got := remote.Describe(full, "/srv/secret")
	if !errors.Is(got, store.ErrUnknown) || !errors.Is(got, syscall.ENOSPC) || strings.Contains(got.Error(), "srv") {
		t.Errorf("%v became %v", full, got)
	}
}

// No error reveals the path of the store on the server.
func TestNoPathLeaks(t *testing.T) {
	t.Parallel()
	served := inFiles(t)
	dir := served.Where()
	st := open(t, serve(t, served))
	ctx := t.Context()
	storetest.MustCreate(t, st, "a", num(0)).Close()
	_, err := st.Open(ctx, "missing")
	texts := []string{err.Error(), st.Where()}
	_, err = st.Create(ctx, "a", store.Lines())
	texts = append(texts, err.Error())
	if err := os.Remove(path.Join(dir, "a.jsonl")); err == nil {
		if err := os.Mkdir(path.Join(dir, "a.jsonl"), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err = st.Open(ctx, "a")
		texts = append(texts, fmt.Sprint(err))
	}
	for _, text := range texts {
		if strings.Contains(text, dir) {
			t.Errorf("%q has the directory of the store", text)
		}
	}
}

// A client that takes its time over a note keeps no other from changing it.
func TestSlowChangeKeepsNoOneOut(t *testing.T) {
	t.Parallel()
	url := serve(t, inFiles(t))
	slow, other := open(t, url), open(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // so that it does not hang if it fails
	defer cancel()
	add := func(text string) func([]byte) ([]byte, error) {
		return func(old []byte) ([]byte, error) { return append(old, text...), nil }
	}
	calls := 0
	err := slow.Notes("room").Change(ctx, "a", func(old []byte) ([]byte, error) {
		if calls++; calls == 1 {
			for _, name := range []string{"a", "b"} {
				if err := other.Notes("room").Change(ctx, name, add("other")); err != nil {
					return nil, err
				}
			}
		}
		return add(" slow")(old)
	})
	if err != nil {
		t.Fatal(err)
	}
	if data, err := other.Notes("room").Read(ctx, "a"); err != nil || string(data) != "other slow" || calls != 2 {
		t.Errorf("after %d calls the note is %q, %v", calls, data, err)
	}
}

// evil answers every request with the same bytes, but lets itself be opened.
func evil(t testing.TB, answer []byte) *remote.Store {
	t.Helper()
	hello := frame('J', `{"version":1,"limits":{"Entry":1048576}}`) + frame('Z', "")
	url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if path.Base(r.URL.Path) == "hello" {
			_, _ = io.WriteString(w, hello)
			return
		}
		_, _ = w.Write(answer)
	}))
	st, err := remote.Open(t.Context(), url, &remote.Options{Patience: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// useAll calls everything that reads an answer.
func useAll(ctx context.Context, st *remote.Store) {
	log, err := st.Open(ctx, "a")
	if err == nil {
		_, _ = log.Append(ctx, 3, []byte(num(1)))
		_, _ = log.End(ctx)
		_ = log.Current()
		for range log.Forward(ctx, 0) {
		}
		for range log.Backward(ctx, 1<<40) {
		}
		n := 0
		for range log.Watch(ctx, 0) {
			if n++; n > 100 {
				break
			}
		}
		if release, err := log.Pin(ctx); err == nil {
			release()
		}
		_ = log.Close()
	}
	_, _ = st.Create(ctx, "b", store.Lines([]byte(num(0))))
	_, _ = st.Stat(ctx, "a")
	_, _ = store.All(ctx, st)
	_, _ = st.Blobs().Get(ctx, store.RefOf([]byte("x")))
	_, _ = st.Notes("").Read(ctx, "x")
	n := 0
	_ = st.Notes("").Change(ctx, "x", func(old []byte) ([]byte, error) {
		if n++; n > 10 {
			return nil, io.EOF
		}
		return old, nil
	})
	_ = st.Close()
}

var hostile = []string{
	"", "J", "Z\x00\x00\x00\x00", "Z\xff\xff\xff\xff", "L\xff\xff\xff\xff", "D\x3f\xff\xff\xff", "J\x7f\xff\xff\xff{", "E\x00\x00\x00\x02{}", "E\x00\x00\x00\x02[]",
	"X\x00\x00\x00\x00", "<html>no</html>", frame('L', "short") + frame('Z', ""), frame('J', "{}") + frame('Z', ""), frame('J', "null") + frame('J', "3"),
	frame('J', `{"handle":"h","lease":"l","end":5,"stat":{}}`) + frame('Z', ""),
	frame('J', `{"end":-1}`) + frame('Z', ""),
	frame('L', string(binary.BigEndian.AppendUint64(nil, 1<<63))+strings.Repeat("\x00", 20)) + frame('Z', ""),
	frame('D', "bytes") + frame('Z', ""), strings.Repeat(frame('B', ""), 1000), frame('E', `{"is":["gone"]}`), frame('E', `{"is":["conflict","unknown"]}`),
}

// Whatever a server answers, the client neither panics nor believes it.
func TestHostileAnswers(t *testing.T) { // alone, because it counts memory
	for _, answer := range hostile {
		storetest.Bounded(t, 64<<20, func() { useAll(t.Context(), evil(t, []byte(answer))) })
	}
}

func FuzzAnswer(f *testing.F) {
	for _, answer := range hostile {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		useAll(t.Context(), evil(t, answer))
	})
}

// FuzzRequest sends any bytes to every operation of a server.
func FuzzRequest(f *testing.F) {
	for _, op := range []string{"open", "read", "append", "create", "note-change", "hold", "put", "remove"} {
		f.Add(op, []byte(frame('J', `{"name":"a"}`)+frame('D', "x")+frame('Z', "")))
		f.Add(op, []byte(frame('J', `{"handle":"x","lease":"y","back":true}`)))
		f.Add(op, []byte(frame('J', `{"name":"a","seen":{"runs":[{"from":3,"to":-1}]}}`)+"D\xff\xff\xff\xff"))
	}
	f.Fuzz(func(t *testing.T, op string, body []byte) {
		served := inMemory()
		storetest.MustCreate(t, served, "a", num(0))
		h := remote.NewHandler(served)
		defer h.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body))
		r.URL.Path = "/" + op
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError {
			t.Fatalf("%s: %s", op, w.Body)
		}
	})
}

// A creation that is cut off creates nothing.
func TestTruncatedCreation(t *testing.T) {
	t.Parallel()
	served := inMemory()
	url := serve(t, served)
	whole := frame('J', `{"name":"a"}`) + frame('D', num(0)) + frame('D', num(1)) + frame('Z', "")
	for n := range len(whole) {
		resp, err := http.Post(url+"/create", "", strings.NewReader(whole[:n]))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if _, err := served.Stat(t.Context(), "a"); !errors.Is(err, store.ErrNotExist) {
			t.Fatalf("after %d of %d bytes there is a log: %v", n, len(whole), err)
		}
	}
}

// A token goes to its server only, and never where others can read it.
func TestToken(t *testing.T) {
	t.Parallel()
	const token = "cpk_geheim"
	asked := make(chan string, 10)
	elsewhere := listen(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
	handler := remote.NewHandler(inMemory())
	url := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/moved/hello":
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		case r.Header.Get("Authorization") != "Bearer "+token:
			http.Error(w, "who are you?", http.StatusUnauthorized)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	if _, err := remote.Open(t.Context(), url, &remote.Options{Token: token}); err != nil {
		t.Fatal(err)
	}
	for where, o := range map[string]*remote.Options{
		url:                             {Token: "another"},
		url + "/":                       nil,
		url + "/moved":                  {Token: token},
		"http://example.com/v1/store":   {Token: token},
		"http://u:pw@127.0.0.1:1/store": {Token: token},
		"ftp://example.com":             {Token: token},
		"https://127.0.0.1:1/store":     {Token: token},
	} {
		_, err := remote.Open(t.Context(), where, o)
		if err == nil {
			t.Errorf("%s was opened", where)
		} else if strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "pw@") {
			t.Errorf("%v says too much", err)
		}
		if o != nil && o.Token == "another" && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a wrong token: %v", err)
		}
	}
	select {
	case got := <-asked:
		t.Errorf("another server was asked with %q", got)
	default:
	}
}
