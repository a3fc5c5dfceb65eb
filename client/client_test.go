package client_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/client"
	"github.com/coppice-dev/coppice/home"
	_ "github.com/coppice-dev/coppice/home/all"
	"github.com/coppice-dev/coppice/internal/postgrestest"
	"github.com/coppice-dev/coppice/server"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/transcript/bulk"
	"github.com/coppice-dev/coppice/upkeep"
)

const token = "cpk_right"

// serve has a server with a home of its own, and returns the home and the address.
func serve(t *testing.T, access home.Access) (*home.Home, string) {
	h, at := serveAgain(t, access)
	return h, at.URL
}

// served is a server that can be restarted.
type served struct {
	*httptest.Server
	restart func()
}

// serveAgain is serve with a server that can be restarted.
func serveAgain(t *testing.T, access home.Access) (*home.Home, *served) {
	t.Helper()
	h, err := home.Open(t.Context(), postgrestest.Home(t), &home.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	o := server.Options{
		Home: h, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		Authorize: func(_ context.Context, given string) (*server.Grant, error) {
			if given != token {
				return nil, server.ErrUnauthorized
			}
			return &server.Grant{Name: "test", Access: access}, nil
		},
	}
	var now atomic.Pointer[server.Server]
	start := func() (before *server.Server) {
		s, err := server.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return now.Swap(s)
	}
	start()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().ServeHTTP(w, r) }))
	t.Cleanup(func() {
		web.CloseClientConnections()
		if err := now.Load().Close(); err != nil {
			t.Error(err)
		}
		web.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, &served{web, func() {
		if err := start().Close(); err != nil {
			t.Error(err)
		}
	}}
}

func open(t *testing.T, address string) *home.Home {
	t.Helper()
	h, err := client.Open(t.Context(), address, &client.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Without a token that the server knows, opening fails with a kind of its own.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	_, address := serve(t, home.Admin)
	for _, given := range []string{"", "another"} {
		if _, err := client.Open(t.Context(), address, &client.Options{Token: given}); home.KindOf(err) != home.KindUnauthorized || home.HintOf(err) == "" {
			t.Errorf("open with the token %q: %v (%s)", given, err, home.KindOf(err))
		}
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// say appends what a user says.
func say(t *testing.T, h *home.Home, to, text string) *home.AppendResult {
	t.Helper()
	return must[*home.AppendResult](t)(h.Entries.Append(t.Context(), home.AppendRequest{
		Session: to, Message: &session.MessageEntry{Role: string(session.RoleUser), Content: []session.Content{session.Text(text)}},
	}))
}

// A home on another machine does what the home itself does.
func TestHomeElsewhere(t *testing.T) {
	t.Parallel()
	there, address := serve(t, home.Admin)
	here := open(t, address)
	ctx := t.Context()
	made := must[*home.CreateResult](t)(here.Sessions.Create(ctx, home.CreateRequest{Title: "Across the wire", Key: "team/1", Tags: []string{"far"}}))
	first := say(t, here, made.Session, "how tall is the tower?")
	say(t, there, made.Session, "it is 300 metres tall")

	for name, h := range map[string]*home.Home{"here": here, "there": there} {
		list := must[*home.ListResult](t)(h.Sessions.List(ctx, home.ListRequest{Tags: []string{"far"}}))
		if len(list.Sessions) != 1 || list.Sessions[0].Title != "Across the wire" || list.Sessions[0].Messages != 2 {
			t.Errorf("%s lists %+v", name, list.Sessions)
		}
		found := must[*home.FindResult](t)(h.Search.Find(ctx, home.FindRequest{Query: "metres"}))
		if len(found.Hits) != 1 {
			t.Errorf("%s finds %+v", name, found)
		}
		var texts []string
		_, err := h.Entries.Path(ctx, home.PathRequest{Session: "team/1"}, func(e session.Entry) error {
			if e.Type == session.TypeMessage {
				texts = append(texts, e.ID)
			}
			return nil
		})
		if err != nil || len(texts) != 2 || texts[0] != first.Entry {
			t.Errorf("%s reads %q, %v", name, texts, err)
		}
	}

	// What a program holds open is here, on the store of the server.
	c := must[*home.Conversation](t)(here.Conversation(ctx, home.OpenRequest{Session: "last"}))
	defer c.Close()
	if c.Handle != made.Session {
		t.Errorf("the last conversation is %q, want %q", c.Handle, made.Session)
	}
	if drawn, err := c.Rendered(ctx); err != nil || drawn.Name == "" {
		t.Errorf("it is drawn as %+v, %v", drawn, err)
	}

	// Files are those of this machine.
	path := filepath.Join(t.TempDir(), "out.md")
	must[*home.ExportResult](t)(here.Transfer.Export(ctx, home.ExportRequest{OpenRequest: home.OpenRequest{Session: "@1"}, Path: path}, nil))
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "300 metres") {
		t.Errorf("exported %q, %v", text, err)
	}
}

// Errors are the same, whoever reports them.
func TestErrorsElsewhere(t *testing.T) {
	t.Parallel()
	there, address := serve(t, home.Write)
	here := open(t, address)
	ctx := t.Context()
	for _, name := range []string{"nothing", "@7", ""} {
		_, want := there.Sessions.Get(ctx, home.SessionRequest{Session: name})
		_, got := here.Sessions.Get(ctx, home.SessionRequest{Session: name})
		if home.KindOf(got) != home.KindOf(want) || errors.Is(got, session.ErrNotExist) != errors.Is(want, session.ErrNotExist) {
			t.Errorf("%q: here %v (%s), there %v (%s)", name, got, home.KindOf(got), want, home.KindOf(want))
		}
		_, err := here.Conversation(ctx, home.OpenRequest{Session: name})
		if home.KindOf(err) != home.KindOf(want) {
			t.Errorf("open %q: %v", name, err)
		}
	}
	_, err := here.Sessions.List(ctx, home.ListRequest{Sort: "colour"})
	if info, ok := errors.AsType[*home.ErrorInfo](err); !ok || info.Kind != home.KindInvalid || info.Field != "sort" {
		t.Errorf("a wrong field: %#v", err)
	}
	if _, err := here.Upkeep.EmptyTrash(ctx, home.EmptyTrashRequest{}); err == nil || !strings.Contains(err.Error(), "admin") {
		t.Errorf("what the token does not allow: %v", err)
	}
	if _, err := here.Upkeep.Backup(ctx, home.BackupRequest{To: filepath.Join(t.TempDir(), "backup")}); err == nil {
		t.Error("a backup of another machine was made here")
	}
}

// A token that may not do everything performs the operations that it is for, and reads what is in
// the store, but for its notes.
func TestTheStoreStaysThere(t *testing.T) {
	t.Parallel()
	for _, access := range []home.Access{home.Read, home.Write} {
		there, address := serve(t, access)
		made := must[*home.CreateResult](t)(there.Sessions.Create(t.Context(), home.CreateRequest{}))
		here := open(t, address)
		if list := must[*home.ListResult](t)(here.Sessions.List(t.Context(), home.ListRequest{All: true})); len(list.Sessions) != 1 {
			t.Errorf("%s access lists %+v", access, list)
		}
		_, err := here.Entries.Append(t.Context(), home.AppendRequest{Session: made.Session, Message: &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("hello")}}})
		if (err == nil) != (access == home.Write) {
			t.Errorf("%s access appends: %v", access, err)
		}
		c := must[*home.Conversation](t)(here.Conversation(t.Context(), home.OpenRequest{Session: made.Session}))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if notes, err := here.Store().Notes("").List(t.Context()); err != nil || len(notes) > 0 {
			t.Errorf("%s access sees notes: %v, %v", access, notes, err)
		}
		for what, err := range map[string]error{
			"remove":      here.Store().Remove(t.Context(), made.Session),
			"note":        here.Store().Notes("").Write(t.Context(), "x", nil),
			"remove note": here.Store().Notes("").Remove(t.Context(), "x"),
		} {
			if !errors.Is(err, fs.ErrPermission) || home.KindOf(err) != home.KindForbidden || home.HintOf(err) == "" {
				t.Errorf("%s access, %s: %v (%s)", access, what, err, home.KindOf(err))
			}
		}
	}
}

// A chat with a home elsewhere works here: whoever decides about its calls here is not sent there.
func TestAChatElsewhereIsAskedHere(t *testing.T) {
	t.Parallel()
	there, address := serve(t, home.Admin)
	here, dir := open(t, address), t.TempDir()
	c := must[*home.Chat](t)(here.Chat(t.Context(), home.TurnOptions{ChatRequest: home.ChatRequest{CWD: dir, Tools: []string{"bash"}, Provider: "offline"}}))
	turn := must[*home.Turn](t)(c.Say(t.Context(), []session.Content{session.Text(`call bash {"command":"touch leaf"}`)}))
	id := c.Conversation().Handle
	must[*home.TurnResult](t)(turn.Listen(t.Context(), func(e home.TurnEvent) error {
		if e.Type != agent.ToolWaiting {
			return nil
		}
		if s, err := there.Turns.Status(t.Context(), home.SessionRequest{Session: id}); err != nil || s.Running || s.Working == nil {
			t.Errorf("there, the status is %+v, %v", s, err)
		}
		heard := errors.New("heard")
		if _, err := here.Turns.Watch(t.Context(), home.WatchRequest{Session: id}, func(home.TurnEvent) error { return heard }); !errors.Is(err, heard) {
			t.Errorf("it is watched: %v", err)
		}
		made, err := here.Turns.Approve(t.Context(), home.ApproveRequest{Session: id, Call: e.Call.ID, Decision: agent.Allow})
		if err == nil && !made.Running {
			err = errors.New("it was decided about elsewhere")
		}
		return err
	}))
	if _, err := os.Stat(filepath.Join(dir, "leaf")); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A redaction on the server while a file is imported does not stop the import, and the imported
// session has nothing of what was redacted, wherever it came from.
func TestRedactedThereDuringAnImport(t *testing.T) {
	t.Parallel()
	there, at := serveAgain(t, home.Admin)
	made := must[*home.CreateResult](t)(there.Sessions.Create(t.Context(), home.CreateRequest{}))
	say(t, there, made.Session, "the word is Rotkehlchen-4711")
	redact := func() {
		must[*upkeep.RedactResult](t)(there.Upkeep.Redact(t.Context(), home.RedactRequest{Value: "Rotkehlchen-4711", Apply: true}))
	}
	var created sync.Once
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at.Config.Handler.ServeHTTP(w, r)
		if r.URL.Path == "/v1/store/create" {
			created.Do(redact)
		}
	}))
	defer proxy.Close()
	here := open(t, proxy.URL)
	file := filepath.Join("..", "transcript", "format", "testdata", "qwen", "agent.jsonl")
	done := must[*bulk.Result](t)(here.Transfer.Import(t.Context(), home.ImportRequest{Paths: []string{file}}, nil, func(e home.ImportEvent) error {
		if e.Error != nil {
			t.Errorf("import: %+v", e.Error)
		}
		return nil
	}))
	list := must[*home.ListResult](t)(here.Sessions.List(t.Context(), home.ListRequest{Sort: "created"}))
	if done.Failed > 0 || len(list.Sessions) != 2 {
		t.Fatalf("imported %+v, and there is %+v", done, list.Sessions)
	}
	created.Do(func() { t.Error("no session was created") })
	for _, s := range list.Sessions { // as if the import had brought it
		log := must[store.Log](t)(there.Store().Open(t.Context(), s.ID))
		end := must[store.Pos](t)(log.End(t.Context()))
		line := `{"type":"message","id":"late","parent_id":null,"timestamp":"2026-01-02T03:04:05Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Rotkehlchen-4711 ` + secret + `"}}]}}`
		must[store.Pos](t)(log.Append(t.Context(), end, []byte(line)))
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		must[*upkeep.RedactResult](t)(here.Upkeep.Redact(t.Context(), home.RedactRequest{Sessions: []string{s.ID}, Link: true, Known: true, Apply: true}))
		log = must[store.Log](t)(there.Store().Open(t.Context(), s.ID))
		var last string
		for line, err := range log.Forward(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			last = string(line.Data)
		}
		if strings.Contains(last, "Rotkehlchen-4711") || !strings.Contains(last, secret) {
			t.Errorf("the last line is %s", last)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
}

// secret looks like a secret, but was never redacted.
const secret = "ghp_0aB9xQ2mWvT7Lr4Ek1Zs8Yp3Nd6Hc5Jf2GuX"

// A wrong token is refused, and appears nowhere.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	_, address := serve(t, home.Read)
	_, err := client.Open(t.Context(), address, &client.Options{Token: "cpk_wrong"})
	if err == nil || strings.Contains(err.Error(), "cpk_wrong") {
		t.Errorf("open: %v", err)
	}
}

// What is appended arrives.
func TestFollowElsewhere(t *testing.T) {
	t.Parallel()
	there, address := serve(t, home.Write)
	here := open(t, address)
	made := must[*home.CreateResult](t)(there.Sessions.Create(t.Context(), home.CreateRequest{}))
	first := say(t, there, made.Session, "one")
	ctx, stop := context.WithCancel(t.Context())
	var got []string
	_, err := here.Entries.Follow(ctx, home.FollowRequest{Session: made.Session, Last: 1}, func(a home.Arrival) error {
		if got = append(got, a.Entry.ID); len(got) == 1 {
			got = append(got, say(t, there, made.Session, "two").Entry)
		} else {
			stop()
		}
		return nil
	})
	if err != nil || len(got) != 3 || got[0] != first.Entry || got[1] != got[2] {
		t.Fatalf("followed %q, %v", got, err)
	}
}

// A caller that follows every session misses nothing when the connection is lost, and learns of
// it when the server was restarted and cannot know what it has missed.
func TestFollowingEverySessionGoesOn(t *testing.T) {
	t.Parallel()
	there, at := serveAgain(t, home.Write)
	missed := make(chan home.Notice, 1000)
	here := must[*home.Home](t)(client.Open(t.Context(), at.URL, &client.Options{Token: token, Home: home.Options{Notify: func(n home.Notice) { missed <- n }}}))
	t.Cleanup(func() { _ = here.Close() })
	made := must[*home.CreateResult](t)(there.Sessions.Create(t.Context(), home.CreateRequest{}))
	came := make(chan string, 1000)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		_, err := here.Entries.Follow(ctx, home.FollowRequest{}, func(a home.Arrival) error {
			came <- a.Entry.ID
			return nil
		})
		ended <- err
	}()
	live := func() { // says something until it is heard
		t.Helper()
		for {
			last := say(t, there, made.Session, "Is anyone there?").Entry
			for waiting := time.After(time.Second); waiting != nil; {
				select {
				case id := <-came:
					if id == last {
						return
					}
				case <-waiting:
					waiting = nil
				}
			}
		}
	}
	live()
	for range 3 {
		var want []string
		for n := range 5 {
			if n == 2 {
				at.CloseClientConnections()
			}
			want = append(want, say(t, there, made.Session, "Did you hear that?").Entry)
		}
		for _, id := range want {
			if got := <-came; got != id {
				t.Fatalf("the entry %s came, not %s", got, id)
			}
		}
	}
	at.restart()
	for n := range missed {
		if n.Kind == home.EntriesMissed {
			break
		} else if n.Kind != home.ConnectionLost || n.Error == nil {
			t.Errorf("the notice is %+v", n)
		}
	}
	live()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A server that is away for a while is mentioned once, and so is what may be missing when it is
// back.
func TestALongAbsenceIsMentionedOnce(t *testing.T) {
	t.Parallel()
	there, at := serveAgain(t, home.Write)
	var away atomic.Bool
	var refused atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			refused.Add(1)
			panic(http.ErrAbortHandler)
		}
		at.Config.Handler.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	notices := make(chan home.NoticeKind, 100)
	here := must[*home.Home](t)(client.Open(t.Context(), proxy.URL, &client.Options{Token: token, Home: home.Options{Notify: func(n home.Notice) { notices <- n.Kind }}}))
	t.Cleanup(func() { _ = here.Close() })
	made := must[*home.CreateResult](t)(there.Sessions.Create(t.Context(), home.CreateRequest{}))
	ctx, stop := context.WithCancel(t.Context())
	begun, came, ended := make(chan struct{}, 10), make(chan string, 10), make(chan *home.Streamed, 1)
	go func() {
		r, err := here.Entries.Follow(home.WithBegun(ctx, func() { begun <- struct{}{} }), home.FollowRequest{Session: made.Session}, func(a home.Arrival) error {
			came <- a.Entry.ID
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	<-begun // nothing was said yet, so the client has no place to continue at
	away.Store(true)
	proxy.CloseClientConnections()
	for refused.Load() < 4 {
		time.Sleep(time.Millisecond)
	}
	away.Store(false)
	<-begun
	said := say(t, there, made.Session, "Are you back?").Entry
	if got := <-came; got != said {
		t.Errorf("the entry %s came, not %s", got, said)
	}
	stop()
	if r := <-ended; r == nil || r.Events != 1 {
		t.Errorf("followed %+v", r)
	}
	close(notices)
	var got []home.NoticeKind
	for n := range notices {
		got = append(got, n)
	}
	if want := []home.NoticeKind{home.ConnectionLost, home.EntriesMissed}; !slices.Equal(got, want) {
		t.Errorf("the notices are %v, not %v", got, want)
	}
}

// A closed home does nothing more, here and elsewhere.
func TestClosedHomes(t *testing.T) {
	t.Parallel()
	there, address := serve(t, home.Admin)
	made := must[*home.CreateResult](t)(there.Sessions.Create(t.Context(), home.CreateRequest{}))
	away := must[*home.Home](t)(client.Open(t.Context(), address, &client.Options{Token: token}))
	here := must[*home.Home](t)(home.Open(t.Context(), t.TempDir(), &home.Options{Create: true}))
	own := must[*home.CreateResult](t)(here.Sessions.Create(t.Context(), home.CreateRequest{}))
	for id, h := range map[string]*home.Home{made.Session: away, own.Session: here} {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		_, appending := h.Entries.Append(t.Context(), home.AppendRequest{Session: id, Entry: []byte(`{"type":"session_info","session_info":{"name":"x"}}`)})
		_, listing := h.Sessions.List(t.Context(), home.ListRequest{})
		_, following := h.Entries.Follow(t.Context(), home.FollowRequest{}, nil)
		for _, err := range []error{appending, listing, following} {
			if !errors.Is(err, store.ErrClosed) || home.KindOf(err) == home.KindCorrupt {
				t.Errorf("%s: %v", h.Dir(), err)
			}
		}
	}
}

// A server that is not there is unavailable, whatever is asked of it.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	_, at := serveAgain(t, home.Write)
	gone := httptest.NewServer(at.Config.Handler)
	here := open(t, gone.URL)
	gone.Close()
	_, listing := here.Sessions.List(t.Context(), home.ListRequest{})
	_, opening := client.Open(t.Context(), gone.URL, &client.Options{Token: token})
	for _, err := range []error{listing, opening} {
		if home.KindOf(err) != home.KindUnavailable {
			t.Errorf("the kind of %v is %s", err, home.KindOf(err))
		}
	}
}
