package home_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// drawn is a session of a random home.
type drawn struct {
	header session.Header
	tags   []string
	title  string
	said   []string
	copyOf int // the number of a session whose entries it has, too, or -1
}

func drawSession(t *rapid.T, n int) drawn {
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
	d := drawn{copyOf: rapid.IntRange(-1, n-1).Draw(t, "copy of")}
	d.header = session.Header{
		ID: fmt.Sprintf("0190%04x-0000-7000-8000-%012x", n, rapid.Uint32().Draw(t, "random")), CreatedAt: time.Date(2026, 1, 1, n, 0, 0, 0, time.UTC),
		CWD: pick("cwd", "", "/a/forge", "/b/forge", "/a/forge/x", "/a/reforge", "/Forge"),
	}
	if key := pick("key", "", "", "tg:", "tg:1", "tg", "x:tg:"); key != "" {
		d.header.Key = fmt.Sprintf("%s.%d", key, n)
		d.header.ID, _ = session.KeyID(d.header.Key)
	}
	d.tags = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "a/b", "a/b/c", "ab", "a-b", "b"}), 0, 3, rapid.ID).Draw(t, "tags")
	d.title = pick("title", "", "Heron", "heron", "Falcon 2")
	d.said = rapid.SliceOfN(rapid.SampledFrom([]string{"heron reeds", "falcon cliffs", "herons fishing", "the cliff", "xylophone"}), 1, 4).Draw(t, "said")
	return d
}

// isIn is the rule of limits, once more.
func (d *drawn) isIn(l home.Limit) bool {
	tagged := func(tag string) bool { return tag == l.Tag || strings.HasPrefix(tag, l.Tag+"/") }
	switch {
	case l.Tag != "":
		return slices.ContainsFunc(d.tags, tagged)
	case l.Project != "":
		return strings.HasSuffix(strings.ToLower(d.header.CWD), "/"+l.Project)
	}
	return strings.HasPrefix(d.header.Key, l.Key)
}

func (d *drawn) write(t *rapid.T, h *home.Home, all []drawn) {
	n, at := 0, d.header.CreatedAt
	seed := d.header.ID
	o := &session.Options{
		Now:   func() time.Time { at = at.Add(time.Minute); return at },
		NewID: func(session.EntryType) string { n++; return fmt.Sprintf("%s-%d", seed[len(seed)-12:], n) },
	}
	s, err := session.Create(context.Background(), h.Store(), d.header, o)
	if err != nil {
		t.Fatal(err)
	}
	said := d.said
	if d.copyOf >= 0 { // with the same ids, as a fork has them
		seed, said = all[d.copyOf].header.ID, append(slices.Clone(all[d.copyOf].said), said...)
	}
	entries := []session.Entry{}
	for i, text := range said {
		e := session.Message([]session.MessageRole{session.RoleUser, session.RoleAssistant}[i%2], session.Text(text))
		if i%2 == 1 {
			e.Message.Provider, e.Message.Model, e.Message.ResponseID = "anthropic", "claude-sonnet-4-5", seed+text
			e.Message.Usage = &session.Usage{Input: 10 * i, Output: i}
		}
		entries = append(entries, e)
	}
	if d.title != "" {
		entries = append(entries, session.Name(d.title))
	}
	if len(d.tags) > 0 {
		entries = append(entries, session.Tags(d.tags...))
	}
	for _, e := range entries {
		if _, err := s.AppendEntry(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Of a random home, a limited one lists, finds, counts and names exactly what a home does that
// has only those sessions.
func TestLimitedHomeIsLikeASmallOne(t *testing.T) {
	t.Parallel()
	soak.Few(t, 12, func(r *rapid.T) {
		whole, small := memHome(t), memHome(t)
		defer func() { _ = errors.Join(whole.Close(), small.Close()) }()
		l := rapid.SampledFrom([]home.Limit{{Tag: "a"}, {Tag: "a/b"}, {Project: "forge"}, {Project: "a/forge"}, {Key: "tg:"}, {Key: "tg:1"}}).Draw(r, "limit")
		var all []drawn
		for n := range rapid.IntRange(1, 12).Draw(r, "sessions") {
			d := drawSession(r, n)
			all = append(all, d)
			d.write(r, whole, all)
			if d.isIn(l) {
				d.write(r, small, all)
			}
		}
		part, err := whole.Limited(l)
		if err != nil {
			r.Fatal(err)
		}
		for _, o := range []string{"sessions.list", "sessions.tags", "sessions.overview", "sessions.suggest", "sessions.filter_values", "sessions.short", "search.find", "search.stats"} {
			for _, request := range partRequests(o) {
				w, v := &world{T: t, Home: whole}, &world{T: t, Home: small}
				got, want := answer(w, part, home.OperationNamed(o), request), answer(v, small, home.OperationNamed(o), request)
				got = strings.ReplaceAll(got, `"dir":"`+l.String()+`"`, `"dir":"mem:"`)
				if got != want {
					r.Fatalf("%s %+v within %s is\n%s\nand not\n%s", o, request, l, got, want)
				}
			}
		}
	})
}

func memHome(t *testing.T) *home.Home {
	t.Helper()
	return must[*home.Home](t)(home.Open(context.Background(), "mem:", &home.Options{Settings: settings(t, env{"HOME": t.TempDir()})}))
}

func partRequests(op string) (all []any) {
	switch op {
	case "sessions.list":
		for _, r := range []home.ListRequest{{Limit: -1}, {Limit: 2}, {Tags: []string{"b"}}, {Project: "forge"}, {Links: true}, {Sort: "tokens"}} {
			all = append(all, &r)
		}
	case "search.find":
		for _, query := range []string{"heron", "falcon", "cliff*", "herons", "xylophon", "heron OR cliffs", "tag:b heron", "project:forge falcon"} {
			all = append(all, &home.FindRequest{Query: query})
		}
	case "search.stats":
		all = append(all, &home.StatsRequest{})
	case "sessions.suggest":
		all = append(all, &home.SuggestRequest{}, &home.SuggestRequest{Begin: "0"})
	case "sessions.filter_values":
		for _, filter := range []string{"tag", "project", "agent", "model", "file"} {
			all = append(all, &home.FilterValuesRequest{Filter: filter})
		}
	case "sessions.short":
		all = append(all, &home.SessionNamesRequest{All: true})
	default:
		all = append(all, &home.Nothing{})
	}
	return all
}

// What is created in a limited home is inside of it, or refused for the field that is wrong;
// and nothing leaves it.
func TestNothingCrossesALimit(t *testing.T) {
	t.Parallel()
	h, _ := keptHome(t)
	ctx := t.Context()
	part := func(l home.Limit) *home.Home { return must[*home.Home](t)(h.Limited(l)) }
	tagged, about, keyed := part(home.Limit{Tag: "share"}), part(home.Limit{Project: "forge"}), part(home.Limit{Key: "tg:"})
	if part(home.Limit{Tag: "share"}) != tagged || part(home.Limit{}) != h {
		t.Error("the same limit is another view")
	}

	id, _ := begin(t, tagged, "one", "two")
	forked := must[*home.ForkResult](t)(tagged.Sessions.Fork(ctx, home.ForkRequest{Session: id})).Session
	own := must[*home.CreateResult](t)(tagged.Sessions.Create(ctx, home.CreateRequest{Tags: []string{"share/x", "y"}})).Session
	for _, id := range []string{id, forked, own} {
		if !slices.Contains(withTag(t, h, "share"), id) {
			t.Errorf("%s is not inside", id)
		}
	}
	_, err := tagged.Sessions.Create(ctx, home.CreateRequest{Key: "tg:1"})
	wantField(t, err, "key")
	for _, r := range []home.TagRequest{{Session: id, Remove: []string{"share"}}, {Session: own, Remove: []string{"share/x"}}} {
		_, err = tagged.Sessions.Tag(ctx, r)
		wantKind(t, err, home.KindInvalid)
	}
	must[*home.TagResult](t)(tagged.Sessions.Tag(ctx, home.TagRequest{Session: own, Add: []string{"share/z"}, Remove: []string{"share/x"}}))
	_, err = tagged.Entries.Append(ctx, home.AppendRequest{
		Session: id, Entry: []byte(`{"type":"custom","custom":{"custom_type":"coppice.tags","data":{"tags":["else"]}}}`),
	})
	wantKind(t, err, home.KindInvalid)

	_, err = about.Sessions.Create(ctx, home.CreateRequest{CWD: "/home/x/ledger"})
	wantField(t, err, "cwd")
	there := must[*home.CreateResult](t)(about.Sessions.Create(ctx, home.CreateRequest{CWD: "/home/x/forge"})).Session
	must[*home.SessionInfo](t)(about.Sessions.Get(ctx, home.SessionRequest{Session: there}))

	for _, key := range []string{"", "mail:1", "tg"} {
		_, err = keyed.Sessions.Create(ctx, home.CreateRequest{Key: key})
		wantField(t, err, "key")
	}
	chat := must[*home.CreateResult](t)(keyed.Sessions.Create(ctx, home.CreateRequest{Key: "tg:1"})).Session
	if must[*home.ResolveResult](t)(keyed.Sessions.Resolve(ctx, home.SessionRequest{Session: "tg:1"})).Session != chat {
		t.Error("the key means another session")
	}
	_, err = keyed.Sessions.Create(ctx, home.CreateRequest{Key: "tg:1"})
	wantKind(t, err, home.KindExists)
	_, err = keyed.Sessions.Fork(ctx, home.ForkRequest{Session: chat})
	wantField(t, err, "key")
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var wrong *home.FieldError
	if !errors.As(err, &wrong) || wrong.Field != field {
		t.Errorf("the error is not about %s: %v", field, err)
	}
}

// Another process takes the tag away. From then on the session is gone: for the next
// operation, for one who follows it, and for what is open.
func TestTagTakenAwayElsewhere(t *testing.T) {
	t.Parallel()
	house := newHouseInFiles(t)
	part := must[*home.Home](t)(house.Limited(home.Limit{Tag: "share"}))
	ctx := t.Context()
	elsewhere := house.open(&home.Options{Create: true})
	id, _ := begin(t, elsewhere, "heron")
	if _, err := part.Sessions.Get(ctx, home.SessionRequest{Session: id}); home.KindOf(err) != home.KindNotFound {
		t.Fatalf("it is there before it has the tag: %v", err)
	}
	image := session.Message(session.RoleUser, session.Image("image/png", strings.Repeat("QUJD", 20_000)))
	must[*home.AppendResult](t)(elsewhere.Entries.Append(ctx, home.AppendRequest{Session: id, Message: image.Message}))
	must[*home.TagResult](t)(elsewhere.Sessions.Tag(ctx, home.TagRequest{Session: id, Add: []string{"share"}}))
	must[*home.SessionInfo](t)(part.Sessions.Get(ctx, home.SessionRequest{Session: id}))
	ref := store.RefOf(bytes.Repeat([]byte("ABC"), 20_000))
	must[[]byte](t)(part.Store().Blobs().Get(ctx, ref))
	log := must[store.Log](t)(part.Store().Open(ctx, id))
	defer log.Close()
	followed := make(chan error, 1)
	first, told := make(chan struct{}), sync.Once{}
	go func() {
		_, err := part.Entries.Follow(ctx, home.FollowRequest{Session: id, Last: 1}, func(a home.Arrival) error {
			if a.Entry.Message != nil {
				return errors.New("it was told what was said afterwards")
			}
			told.Do(func() { close(first) })
			return nil
		})
		followed <- err
	}()
	select {
	case <-first:
	case err := <-followed:
		t.Fatal(err)
	}
	must[*home.TagResult](t)(elsewhere.Sessions.Tag(ctx, home.TagRequest{Session: id, Remove: []string{"share"}}))
	say(t, elsewhere, id, "falcon")

	if err := <-followed; !errors.Is(err, session.ErrNotExist) {
		t.Errorf("following it ended with %v", err)
	}
	_, err := part.Sessions.Get(ctx, home.SessionRequest{Session: id})
	wantKind(t, err, home.KindNotFound)
	if list := must[*home.ListResult](t)(part.Sessions.List(ctx, home.ListRequest{})); len(list.Sessions) > 0 {
		t.Errorf("it is listed: %+v", list)
	}
	if found := must[*home.FindResult](t)(part.Search.Find(ctx, home.FindRequest{Query: "heron"})); len(found.Hits) > 0 {
		t.Errorf("it is found: %+v", found)
	}
	if _, err := part.Store().Blobs().Get(ctx, ref); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("its blob can be read: %v", err)
	}
	if _, err := log.Append(ctx, 0, []byte("{}")); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("it can be written to: %v", err)
	}
	for _, err := range log.Forward(ctx, 0) {
		if !errors.Is(err, store.ErrNotExist) {
			t.Errorf("it can be read: %v", err)
		}
		break
	}
}

// Who may write lines as they like cannot reach what is outside by what the lines say.
func TestLinesCannotReachOutsideOfALimit(t *testing.T) {
	t.Parallel()
	h, _ := keptHome(t)
	ctx := t.Context()
	part := must[*home.Home](t)(h.Limited(home.Limit{Tag: "share"}))
	outside, _ := begin(t, h, "falcon")
	secret := session.Message(session.RoleUser, session.Image("image/png", strings.Repeat("QUJD", 20_000)))
	must[*home.AppendResult](t)(h.Entries.Append(ctx, home.AppendRequest{Session: outside, Message: secret.Message}))
	must[*home.CreateResult](t)(h.Sessions.Create(ctx, home.CreateRequest{Key: "mail:1"}))
	ref := string(store.RefOf(bytes.Repeat([]byte("ABC"), 20_000)))
	never := string(store.RefOf([]byte("never")))
	inside, _ := begin(t, part, "heron")

	// A blob that is outside is one that does not exist.
	var texts []string
	for _, ref := range []string{ref, never} {
		if _, err := part.Store().Blobs().Get(ctx, store.Ref(ref)); !errors.Is(err, store.ErrNotExist) {
			t.Errorf("%s can be read: %v", ref, err)
		}
		image := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Image("image/png", "")}}
		image.Content[0].Image.Source.Blob = store.Ref(ref)
		_, err := part.Entries.Append(ctx, home.AppendRequest{Session: inside, Message: image})
		if err == nil {
			t.Fatal("an entry refers to a blob that is outside")
		}
		texts = append(texts, strings.ReplaceAll(err.Error(), ref, "REF"))
	}
	if texts[0] != texts[1] {
		t.Errorf("the errors differ: %q", texts)
	}
	say(t, part, inside, "an image may be called "+ref) // which is only text
	if _, err := part.Store().Blobs().Get(ctx, store.Ref(ref)); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("whoever can name it can read it: %v", err)
	}

	taken, _ := session.KeyID("mail:1")
	free, _ := session.KeyID("mail:2")
	for what, try := range map[string][2]string{
		"the id of a key":           {taken, `{"type":"session","version":3,"id":"` + taken + `","timestamp":"2026-01-01T00:00:00Z"}`},
		"the id of a key not taken": {free, `{"type":"session","version":3,"id":"` + free + `","timestamp":"2026-01-01T00:00:00Z"}`},
		"another's id":              {session.NewID(), `{"type":"session","version":3,"id":"` + outside + `","timestamp":"2026-01-01T00:00:00Z"}`},
		"no header":                 {session.NewID(), `{}`},
	} {
		if _, err := part.Store().Create(ctx, try[0], store.Lines([]byte(try[1]))); !errors.Is(err, session.ErrInvalid) || errors.Is(err, store.ErrExist) {
			t.Errorf("%s: %v", what, err)
		}
	}

	// A session that claims to continue one outside does not bring it in, nor does one that
	// claims to be continued by it.
	for _, h := range []session.Header{{ParentSession: outside, Relation: session.RelationContinuation}, {}} {
		h.ID = session.NewID()
		next := must[*session.Session](t)(session.Create(ctx, part.Store(), h, nil))
		if h.Relation == "" {
			must[string](t)(next.AppendEntry(session.Custom(session.CustomContinuedTo, map[string]any{"session": outside, "of": h.ID})))
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := part.Store().Open(ctx, outside); !errors.Is(err, store.ErrNotExist) {
			t.Errorf("it can be opened: %v", err)
		}
	}
	for _, err := range []error{
		part.Store().Remove(ctx, outside), errorOf(part.Store().Trash().Empty(ctx, time.Now())), errorOf(part.Store().Blobs().Collect(ctx, store.Ref(ref))),
	} {
		if err == nil {
			t.Error("it can be removed")
		}
	}
	if _, ok := store.As[store.Mender](part.Store()); ok {
		t.Error("there is a way around the limit")
	}
	if _, ok := store.As[store.Directory](part.Store()); ok {
		t.Error("it says where the files are")
	}
}

// What was removed stays as it was: a line that is added to it could name what is outside.
func TestTrashOfALimitIsSealed(t *testing.T) {
	t.Parallel()
	h, _ := keptHome(t)
	ctx := t.Context()
	part := must[*home.Home](t)(h.Limited(home.Limit{Tag: "share"}))
	inside, _ := begin(t, part, "heron")
	if err := part.Store().Remove(ctx, inside); err != nil {
		t.Fatal(err)
	}
	id := must[[]store.Trashed](t)(part.Store().Trash().List(ctx))[0].ID
	sealed := must[store.Store](t)(part.Store().Trash().Read())
	defer sealed.Close()
	log := must[store.Log](t)(sealed.Open(ctx, id))
	defer log.Close()
	end := must[store.Pos](t)(log.End(ctx))
	_, _, started := log.Start(ctx, end, []byte("{}"))
	for what, err := range map[string]error{
		"append": errorOf(log.Append(ctx, end, []byte("{}"))), "start": started,
		"create": errorOf(sealed.Create(ctx, "x", store.Lines([]byte("{}")))),
		"copy":   errorOf(sealed.CreateCopy(ctx, "x", store.Lines([]byte("{}")), log)),
		"remove": sealed.Remove(ctx, id), "remove at": sealed.RemoveAt(ctx, id, end),
	} {
		if !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if now := must[store.Pos](t)(log.End(ctx)); now != end {
		t.Errorf("it has grown from %d to %d bytes", end, now)
	}
}

func errorOf[T any](_ T, err error) error { return err }

// A conversation of several sessions is inside as a whole, wherever its tag is, and so is
// what was removed of it.
func TestLimitHoldsForWholeConversations(t *testing.T) {
	t.Parallel()
	h, dir := keptHome(t)
	links := longTalk(t, h, dir)
	part := must[*home.Home](t)(h.Limited(home.Limit{Tag: "share"}))
	must[*home.TagResult](t)(h.Sessions.Tag(t.Context(), home.TagRequest{Session: links[0], Add: []string{"share"}}))
	want := must[*home.SessionInfo](t)(h.Sessions.Get(t.Context(), home.SessionRequest{Session: links[1]}))
	got := must[*home.SessionInfo](t)(part.Sessions.Get(t.Context(), home.SessionRequest{Session: links[1]}))
	if got.Links != want.Links || got.Messages != want.Messages || len(got.Missing) > 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
	must[*home.RemoveResult](t)(part.Sessions.Remove(t.Context(), home.RemoveRequest{Session: links[0]}))
	back := must[*home.RestoreResult](t)(part.Upkeep.Restore(t.Context(), home.RestoreRequest{Session: links[0]}))
	if len(back.With) != want.Links-1 {
		t.Errorf("%d of %d sessions come back", len(back.With)+1, want.Links)
	}
	// It goes on inside.
	for range 4 {
		say(t, part, links[0], "more")
	}
	if now := must[*home.SessionInfo](t)(part.Sessions.Get(t.Context(), home.SessionRequest{Session: links[0]})); now.Messages != want.Messages+4 {
		t.Errorf("%+v", now)
	}
}

// A log that only claims to belong together with another one does not bring it into a limit:
// both must say so.
func TestAClaimBringsNothingIntoALimit(t *testing.T) {
	t.Parallel()
	for name, claim := range map[string]func(outside, lost string) (session.Header, session.Entry){
		"it continues a session": func(outside, lost string) (session.Header, session.Entry) {
			return session.Header{ID: session.NewID(), ParentSession: outside, Relation: session.RelationContinuation, Continuation: 1}, session.Name("mine")
		},
		"it continues a lost session that another was continued to": func(outside, lost string) (session.Header, session.Entry) {
			return session.Header{ID: session.NewID(), ParentSession: lost, Relation: session.RelationContinuation, Continuation: 2}, session.Name("mine")
		},
		"a session continues it": func(outside, lost string) (session.Header, session.Entry) {
			id := session.NewID()
			return session.Header{ID: id}, session.Custom(session.CustomContinuedTo, map[string]any{"of": id, "session": outside})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := keptHome(t)
			part := must[*home.Home](t)(h.Limited(home.Limit{Tag: "share"}))
			outside, _ := begin(t, h, "falcon")
			add := func(s *session.Session, entries ...session.Entry) {
				for _, e := range entries {
					must[string](t)(s.AppendEntry(e))
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			lost := session.NewID()
			add(must[*session.Session](t)(session.Open(t.Context(), h.Store(), outside, nil)),
				session.Custom(session.CustomContinuedTo, map[string]any{"of": outside, "session": lost}))
			header, said := claim(outside, lost)
			add(must[*session.Session](t)(session.Create(t.Context(), h.Store(), header, nil)), said, session.Tags("share"))
			if list := must[*home.ListResult](t)(part.Sessions.List(t.Context(), home.ListRequest{})); len(list.Sessions) != 1 {
				t.Fatalf("the limit has %d sessions, not the one that was tagged", len(list.Sessions))
			}
			if _, err := part.Store().Open(t.Context(), outside); home.KindOf(err) != home.KindNotFound {
				t.Errorf("the other log: %v", err)
			}
			if got, err := part.Sessions.Get(t.Context(), home.SessionRequest{Session: outside}); err == nil && got.Messages > 0 {
				t.Errorf("the other session: %+v", got)
			}
			if found := must[*home.FindResult](t)(part.Search.Find(t.Context(), home.FindRequest{Query: "falcon"})); len(found.Hits) > 0 {
				t.Errorf("found %+v", found.Hits)
			}
		})
	}
}

// What is about more than the sessions inside is refused, and the error names no session.
func TestLimitedHomeRefusesWhatIsAboutMore(t *testing.T) {
	t.Parallel()
	h, _ := keptHome(t)
	part := must[*home.Home](t)(h.Limited(home.Limit{Tag: "share"}))
	id, _ := begin(t, part, "heron")
	outside, _ := begin(t, h, "falcon")
	refused := 0
	for _, o := range home.Operations() {
		if o.Access < home.Admin && o.Route != "" && !o.Reads {
			continue
		}
		refused++
		for _, request := range append(everyRequest(o, outside), requests(o, id, outside)...) {
			result, err := o.Call(t.Context(), part, request, strings.NewReader(""), nil)
			if home.KindOf(err) != home.KindInvalid || result != nil || strings.Contains(err.Error(), id) || strings.Contains(err.Error(), outside) {
				t.Errorf("%s answers %v, %v", o.Name, result, err)
			}
		}
	}
	if refused < 10 {
		t.Errorf("only %d operations are refused", refused)
	}
	if _, err := part.Chat(t.Context(), home.ChatRequest{Session: id}, home.ChatHands{}); err == nil {
		t.Error("a chat has tools that reach everything")
	}
	for _, r := range []home.ChatRequest{{Session: id, Tools: []string{home.AllTools}}, {Session: id, Servers: []string{"x: true"}}, {Session: id, Context: []string{"/etc/hosts"}}} {
		if _, err := part.Turns.Prompt(t.Context(), home.PromptRequest{TurnOptions: home.TurnOptions{ChatRequest: r}, Text: "hello"}, nil); err == nil {
			t.Errorf("a turn may have %+v", r)
		}
	}
}
