package home_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// A world is a home that has sessions inside of each limit and outside of all, which have as
// much in common as they can: words, titles, entries, responses, the beginnings of ids. The
// same sessions are the same bytes in every world.
type world struct {
	*testing.T
	*home.Home
	at    time.Time
	added int // how many entries add has added
	limit home.Limit
}

var limits = []home.Limit{{Tag: "share"}, {Project: "forge"}, {Key: "tg:"}}

const (
	bigInside  = "The picture of a heron, which is long enough for a blob. "
	bigOutside = "The picture of a falcon, which nobody else may look at. "
)

func sid(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-0000000000%02x", n) }

// newWorld makes a world. Without outside it has only what is inside of the limit.
func newWorld(t *testing.T, l home.Limit, outside bool) *world {
	h, _ := keptHome(t)
	w := &world{T: t, Home: h, limit: l}
	for n := range 4 {
		w.make(n, true, fmt.Sprintf("Heron %d", n%2), fmt.Sprintf("The heron %d waits in the shallow water beside the reeds.", n))
	}
	if outside {
		for n := range 5 {
			w.make(n, false, fmt.Sprintf("Heron %d", n%2), fmt.Sprintf("The falcon %d and the heron quarrel about the zanzibar treaty.", n))
		}
		w.link()
	}
	must[*home.RemoveResult](t)(w.Sessions.Remove(t.Context(), home.RemoveRequest{Session: w.id(3, true), Link: true}))
	if outside {
		must[*home.RemoveResult](t)(w.Sessions.Remove(t.Context(), home.RemoveRequest{Session: w.id(4, false), Link: true}))
	}
	return w
}

// id is the id of the nth session inside or outside: the ids are neighbours.
func (w *world) id(n int, inside bool) string {
	if inside && w.limit.Key != "" {
		return must[string](w.T)(session.KeyID(fmt.Sprintf("tg:%d", n)))
	}
	if inside {
		return sid(0x10 + 2*n)
	}
	return sid(0x11 + 2*n)
}

// options makes the ids and times of a session's entries.
func (w *world) options(seed string) *session.Options {
	w.at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	n := 0
	return &session.Options{
		BlobThreshold: 100,
		Now:           func() time.Time { w.at = w.at.Add(time.Minute); return w.at },
		NewID: func(session.EntryType) string {
			n++
			return fmt.Sprintf("%s-%02d", seed, n)
		},
	}
}

// make makes a session with a title, a blob, usage, a label and a branch.
func (w *world) make(n int, inside bool, title, text string) {
	w.Helper()
	h := session.Header{ID: w.id(n, inside), CreatedAt: time.Date(2026, 3, 1, 11, n, 0, 0, time.UTC)}
	tags := []string{"birds"}
	big := bigInside
	switch {
	case !inside:
		h.CWD, big, tags = fmt.Sprintf("/home/x/forge-%d", n), bigOutside, []string{"birds", "shared", "secret/x"}
	case w.limit.Project != "":
		h.CWD = "/home/x/forge"
	case w.limit.Key != "":
		h.Key = fmt.Sprintf("tg:%d", n)
	default:
		tags = append(tags, "share/near")
	}
	s := must[*session.Session](w.T)(session.Create(w.Context(), w.Store(), h, w.options(fmt.Sprintf("%v%d", inside, n))))
	said := must[string](w.T)(s.AppendEntry(session.Message(session.RoleUser, session.Text(text))))
	answer := session.Message(session.RoleAssistant, session.Text("Quite so."))
	answer.Message.Provider, answer.Message.Model = "anthropic", "claude-sonnet-4-5"
	answer.Message.ResponseID, answer.Message.Usage = fmt.Sprintf("response-%d", n), &session.Usage{Input: 100, Output: 10}
	for _, e := range []session.Entry{
		answer,
		session.Message(session.RoleUser, session.Image("image/png", base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(big), 10)))),
		session.Name(title), session.Label(said, fmt.Sprintf("label-%v-%d", inside, n)), session.Tags(tags...),
	} {
		must[string](w.T)(s.AppendEntry(e))
	}
	if err := s.Close(); err != nil {
		w.Fatal(err)
	}
}

// add adds an entry to a session, and returns its id.
func (w *world) add(name string) string {
	w.Helper()
	w.added++
	s := must[*session.Session](w.T)(session.Open(w.Context(), w.Store(), name, w.options(fmt.Sprintf("added%d", w.added))))
	defer s.Close()
	return must[string](w.T)(s.AppendEntry(session.Message(session.RoleUser, session.Text("It still waits."))))
}

// link makes sessions outside that claim to belong to one inside.
func (w *world) link() {
	w.Helper()
	for i, relation := range []string{session.RelationContinuation, session.RelationSubagent, session.RelationFork} {
		h := session.Header{
			ID: sid(0x80 + i), CreatedAt: time.Date(2026, 3, 2, 11, i, 0, 0, time.UTC),
			ParentSession: w.id(0, true), Relation: relation,
		}
		s := must[*session.Session](w.T)(session.Create(w.Context(), w.Store(), h, w.options("true0")))
		must[string](w.T)(s.AppendEntry(session.Message(session.RoleUser, session.Text("The heron 0 waits in the shallow water beside the reeds."))))
		if err := s.Close(); err != nil {
			w.Fatal(err)
		}
	}
}

// limited returns the part of the world that is inside.
func (w *world) limited() *home.Home {
	w.Helper()
	return must[*home.Home](w.T)(w.Limited(w.limit))
}

// fewProbes says that each probe is tried with one limit only: see race_test.go.
var fewProbes bool

// probes are what somebody may try who has heard of what is outside, or guesses it.
func (w *world) probes() []string {
	out := w.id(1, false)
	return []string{
		out, out[:20], out[24:35], sid(0x80), w.id(4, false), "Heron 1", "label-false-1", "false1-01", "zanzibar", "falc*",
		string(store.RefOf(bytes.Repeat([]byte(bigOutside), 10))), "/home/x/forge-1", "forge-1", "shared", "tag:secret/x", "@5", "last", w.id(1, true), "tag", "project",
	}
}

var (
	aTime      = regexp.MustCompile(`20\d\d-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)|20\d{6}T[\dTZ.]*|"(changed|removed|modified)":[^,}]*|"number":\d{10,}`)
	anID       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	aSize      = regexp.MustCompile(`"(was|size)":\d+`)
	someEvents = regexp.MustCompile(`"events":\d+`)
	aScore     = regexp.MustCompile(`("score":\d+\.\d{6})\d*`)
	aShort     = regexp.MustCompile(`[1-9a-f][0-9a-f]{7,11} \(`)
	aTrash     = regexp.MustCompile(`([0-9a-f-]{36}|[0-9a-f]{40})[.~@-]\d{6,}[\d.a-zTZ-]*`)
)

// answer is what an operation answers, as text. New ids and times are left out.
func answer(w *world, h *home.Home, o *home.Operation, request any) string {
	ctx, cancel := context.WithTimeout(w.Context(), 2*time.Minute) // or it hangs
	defer cancel()
	var events []any
	send := func(event any) error {
		if turn, ok := event.(home.TurnEvent); ok && turn.Update != nil {
			return nil // how a text is cut into pieces depends on the time
		}
		events = append(events, event)
		return nil
	}
	if o.Name == "entries.follow" { // it ends with what is said after the first event
		last := ""
		send = func(event any) error {
			events = append(events, event)
			switch a := event.(home.Arrival); {
			case last == "":
				last = w.add(a.Session)
			case a.Entry.ID == last:
				cancel()
			}
			return nil
		}
	}
	result, err := o.Call(ctx, h, request, strings.NewReader(""), send)
	data, jsonErr := json.Marshal([]any{result, events})
	if jsonErr != nil {
		w.Fatal(jsonErr)
	}
	text := string(data)
	if err != nil {
		text += fmt.Sprintf("\n%s: %v", home.KindOf(err), err)
	}
	if filepath.IsAbs(w.Dir()) {
		text = strings.ReplaceAll(text, filepath.Dir(w.Dir()), "DIR")
	}
	text = aTrash.ReplaceAllString(text, "$1 REMOVAL")
	text = aTime.ReplaceAllString(text, "TIME")
	if o.Access == home.Write { // the times that were written have more digits or fewer
		text = aSize.ReplaceAllString(text, "SIZE")
	}
	if strings.HasPrefix(o.Name, "turns.") {
		text = someEvents.ReplaceAllString(text, "EVENTS")
	}
	text = aScore.ReplaceAllString(text, "$1") // it depends on the time, a little
	text = aShort.ReplaceAllString(text, "NEW (")
	return anID.ReplaceAllStringFunc(text, func(id string) string {
		if strings.HasPrefix(id, "0190") {
			return id
		}
		return "NEW"
	})
}

// requests returns requests for an operation in which something has the value of a probe:
// the session, or anything else beside a session that is inside.
func requests(o *home.Operation, inside, probe string) []any {
	var all []any
	add := func(fill func(v reflect.Value)) {
		r := reflect.New(o.Request)
		if f := r.Elem().FieldByName("Message"); f.IsValid() && f.Type() == reflect.TypeFor[*session.MessageEntry]() {
			f.Set(reflect.ValueOf(userSays("hello")))
		}
		if f := r.Elem().FieldByName("Summary"); f.IsValid() && f.Kind() == reflect.String {
			f.SetString("in short")
		}
		fill(r.Elem())
		all = append(all, r.Interface())
	}
	set := func(f reflect.Value, text string) {
		switch {
		case f.Kind() == reflect.String:
			f.SetString(text)
		case f.Type() == reflect.TypeFor[[]string]():
			f.Set(reflect.ValueOf([]string{text}))
		}
	}
	for _, f := range reflect.VisibleFields(o.Request) {
		if f.Anonymous || f.Type.Kind() != reflect.String && f.Type != reflect.TypeFor[[]string]() {
			continue
		}
		if _, local := f.Tag.Lookup("here"); local {
			continue
		}
		add(func(v reflect.Value) {
			if named := v.FieldByName("Session"); named.IsValid() {
				set(named, inside)
			}
			set(v.FieldByIndex(f.Index), probe)
		})
	}
	return all
}

// everyRequest is requests without names: none, and each switch alone.
func everyRequest(o *home.Operation, inside string) []any {
	first := reflect.New(o.Request)
	all := []any{first.Interface()}
	for _, f := range reflect.VisibleFields(o.Request) {
		_, local := f.Tag.Lookup("here")
		for _, named := range []bool{false, true} {
			if f.Type.Kind() != reflect.Bool || local {
				continue
			}
			r := reflect.New(o.Request)
			r.Elem().FieldByIndex(f.Index).SetBool(true)
			if s := r.Elem().FieldByName("Session"); named && s.IsValid() && s.Kind() == reflect.String {
				s.SetString(inside)
			}
			all = append(all, r.Interface())
		}
	}
	return all
}

// outsideOf returns everything that a world keeps outside of its limit.
func (w *world) outsideOf() map[string]string {
	w.Helper()
	kept := make(map[string]string)
	inside := func(name string) bool {
		return slices.ContainsFunc([]int{0, 1, 2, 3}, func(n int) bool { return strings.HasPrefix(name, w.id(n, true)) })
	}
	for part, err := range w.Store().Parts().All(w.Context()) {
		if err != nil {
			w.Fatal(err)
		}
		if (part.Kind == store.PartLog || part.Kind == store.PartCopy) && !inside(part.Name) && strings.HasPrefix(part.Name, "01900000-") {
			var text strings.Builder
			for line, err := range w.Store().Parts().Lines(w.Context(), part) {
				if err != nil {
					w.Fatal(err)
				}
				text.Write(line.Data)
			}
			kept[part.Place] = text.String()
		}
	}
	return kept
}

// readingFirst returns every operation: first those that write nothing, and at last those that
// make sessions, which have new ids in each world.
func readingFirst() []*home.Operation {
	rank := func(o *home.Operation) int {
		switch {
		case o.Name == "sessions.create":
			return int(home.Admin) + 2
		case o.Name == "sessions.fork" || o.Name == "turns.prompt":
			return int(home.Admin) + 1
		case o.Access == home.Write:
			return int(home.Admin)
		}
		return int(home.Read)
	}
	return slices.SortedStableFunc(slices.Values(home.Operations()), func(a, b *home.Operation) int { return rank(a) - rank(b) })
}

// Whatever operation somebody with a limited home tries, with whatever they may know of what
// is outside, the answer is the same as in a home that never had it, and nothing outside
// changes. An operation that is new is tried here, too.
func TestOutsideOfALimitDoesNotExist(t *testing.T) {
	t.Parallel()
	for n, l := range limits {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			all, only := newWorld(t, l, true), newWorld(t, l, false)
			before := all.outsideOf()
			if len(before) < 8 {
				t.Fatalf("only %d sessions are outside", len(before))
			}
			h, reference := all.limited(), only.limited()
			for _, o := range readingFirst() {
				tries := everyRequest(o, all.id(0, true))
				for i, probe := range all.probes() {
					if l.Tag != "" && !fewProbes || i%3 == n || i == 0 { // the others of a limit are tried with another one
						tries = append(tries, requests(o, all.id(0, true), probe)...)
					}
				}
				follows := 0
				for _, request := range tries {
					if o.Name == "entries.follow" {
						r := request.(*home.FollowRequest)
						if r.Last = 100; r.Session == "" || r.Session == all.id(1, true) {
							if follows++; follows > 2 {
								continue // each waits for more
							}
						}
					}
					got, want := answer(all, h, o, request), answer(only, reference, o, request)
					if got != want {
						text, _ := json.Marshal(request)
						t.Errorf("%s %s answers\n%.1500s\nand not\n%.1500s", o.Name, text, got, want)
					}
				}
			}
			after := all.outsideOf()
			if len(after) != len(before) {
				t.Errorf("%d sessions are outside, and there were %d", len(after), len(before))
			}
			for place, text := range before {
				if after[place] != text {
					t.Errorf("%s has changed", place)
				}
			}
		})
	}
}
