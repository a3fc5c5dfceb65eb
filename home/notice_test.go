package home_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
)

// A server sends notices as JSON: each says which it is, and an error what it means.
func TestNoticesAreSentAsJSON(t *testing.T) {
	t.Parallel()
	broken := &session.Error{Op: "open", Name: "a", Kind: session.ErrCorrupt, Hint: "repair it"}
	data := func(err error) *home.ErrorInfo {
		info := home.Describe(err)
		return &info
	}
	for want, n := range map[string]home.Notice{
		`{"notice":"index_elsewhere","error":{"kind":"corrupt","message":"open \"a\": ` + session.ErrCorrupt.Error() + `","hint":"repair it"},"path":"/x"}`:                            {Kind: home.IndexElsewhere, Path: "/x", Error: data(broken)},
		`{"notice":"index_behind","error":{"kind":"error","message":"no room"}}`:                                                                                                       {Kind: home.IndexBehind, Error: data(errors.New("no room"))},
		`{"notice":"session_unread","error":{"kind":"error","message":"no room"},"session":"a"}`:                                                                                       {Kind: home.SessionUnread, Session: "a", Error: data(errors.New("no room"))},
		`{"notice":"line_skipped","session":"a","offset":7}`:                                                                                                                           {Kind: home.LineSkipped, Session: "a", Offset: 7},
		`{"notice":"session_trashed","session":"a","active":"2026-03-14T12:00:00Z","max":3}`:                                                                                           {Kind: home.SessionTrashed, Session: "a", Active: time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC), Max: 3},
		`{"notice":"session_missing","session":"a"}`:                                                                                                                                   {Kind: home.SessionMissing, Session: "a"},
		`{"notice":"continued_elsewhere","missing":"a","session":"b"}`:                                                                                                                 {Kind: home.ContinuedElsewhere, Missing: "a", Session: "b"},
		`{"notice":"secret_removed","finding":{"kind":"jwt","start":1,"end":2,"preview":"eyJ…"}}`:                                                                                      {Kind: home.SecretRemoved, Finding: &redact.Finding{Kind: "jwt", Start: 1, End: 2, Preview: "eyJ…"}},
		`{"notice":"redaction_finished","receipt":{"time":"0001-01-01T00:00:00Z","kinds":null,"sessions":null,"copies":null,"blobs":null,"removed":null,"left":null,"searched":null}}`: {Kind: home.RedactionFinished, Receipt: &clean.Receipt{}},
	} {
		got, err := json.Marshal(n)
		if err != nil || string(got) != want || !json.Valid(got) {
			t.Errorf("%s: %v\n got %s\nwant %s", n.Kind, err, got, want)
		}
	}
}

// The hint stands beside the message, not in it, however the error was passed on.
func TestDescribeTakesTheHintOutOfTheMessage(t *testing.T) {
	t.Parallel()
	cause := &session.Error{Op: "read", Name: "a", Err: errors.New("it (retry) is locked"), Hint: "retry"}
	plain := `read "a": it (retry) is locked`
	for i, c := range []struct {
		err           error
		message, hint string
	}{
		{cause, plain, "retry"},
		{fmt.Errorf("export: %w", cause), "export: " + plain, "retry"},
		{errors.Join(cause), plain, "retry"},
		{errors.Join(errors.New("first"), fmt.Errorf("then: %w", cause)), "first; then: " + plain, "retry"},
		{errors.New("plain (retry)"), "plain (retry)", ""},
	} {
		if got := home.Describe(c.err); got.Message != c.message || got.Hint != c.hint || got.Kind == "" {
			t.Errorf("%d: %+v", i, got)
		}
	}
}

func TestStatsTakeATimeZoneByName(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.say(session.Header{}, "hello")
	var r home.StatsRequest
	if err := json.Unmarshal([]byte(`{"time_zone":"Asia/Kolkata"}`), &r); err != nil {
		t.Fatal(err)
	}
	india, err := h.Search.Stats(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	utc, err := h.Search.Stats(t.Context(), home.StatsRequest{TimeZone: "UTC"})
	if err != nil || india.Messages != 1 || utc.Messages != 1 || india.Hours == utc.Hours {
		t.Errorf("%v, %v, %v", india, utc, err)
	}
	if _, err := h.Search.Stats(t.Context(), home.StatsRequest{TimeZone: "Nowhere/Land"}); !errors.Is(err, session.ErrInvalid) {
		t.Error(err)
	}
}
