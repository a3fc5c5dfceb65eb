package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/store"
)

// document is what the server says about itself, as another program reads it.
func (s *served) document() *openapi3.T {
	s.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(s.ask("GET", "/openapi.json", "").body)
	if err != nil {
		s.Fatal(err)
	}
	if err := doc.Validate(s.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		s.Fatal(err)
	}
	return doc
}

// misdescribed says what an answer has that the document does not, or nil.
func misdescribed(doc *openapi3.T, op *home.Operation, a answer) error {
	method, path, _ := strings.Cut(op.Route, " ")
	item := doc.Paths.Find(path)
	if item == nil || item.GetOperation(method) == nil {
		return fmt.Errorf("the document has no %s", op.Route)
	}
	described := item.GetOperation(method).Responses.Status(a.status)
	if described == nil {
		return fmt.Errorf("the document has no answer %d", a.status)
	}
	if a.status == http.StatusNotModified {
		return nil // it has no body
	}
	kind := a.header.Get("Content-Type")
	media := described.Value.Content.Get(kind)
	if media == nil {
		return fmt.Errorf("the document has no answer %d of the type %s", a.status, kind)
	}
	var pieces [][]byte
	switch {
	case op.Name == "transfer.export" && a.status == http.StatusOK: // it is a file
	case kind == "application/x-ndjson":
		pieces = bytes.Split(bytes.TrimSpace(a.body), []byte("\n"))
	case strings.HasSuffix(kind, "json"):
		pieces = [][]byte{a.body}
	}
	for _, piece := range pieces {
		var value any
		if err := json.Unmarshal(piece, &value); err != nil {
			return fmt.Errorf("%w in %s", err, piece)
		}
		if err := media.Schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
			return fmt.Errorf("%w in %s", err, piece)
		}
	}
	return nil
}

const (
	picture    = `{"message": {"role": "user", "content": [{"type": "image", "image": {"source": {"type": "base64", "media_type": "image/gif", "data": "R0lGODlhAQABAAAAACw="}}}]}}`
	transcript = `{"type":"user","uuid":"7f6c1a52-6f0e-4c63-9a25-1d6f3a1c0b11","sessionId":"0b0d6a1e-0a55-4a38-8e05-9d6a0f3b1c22","timestamp":"2026-01-01T10:00:00.000Z","cwd":"/x","version":"2.1.0","message":{"role":"user","content":"Do otters snore?"}}`
)

// requests are good requests for each operation, in an order in which they work. S is a
// session with a branch, E an entry of it, R an entry that was imported; T is in the trash.
var requests = []struct{ operation, path, body string }{
	{"transfer.import", "/v1/import?format=claude-code", transcript + "\n"},
	{"sessions.list", "/v1/sessions?all=true&limit=2&tags=animals", ""},
	{"sessions.list", "/v1/sessions", ""},
	{"sessions.shelf", "/v1/shelf?limit=2&cost=true&total=true&now=2026-03-14T10:00:00%2B01:00", ""},
	{"sessions.create", "/v1/sessions", `{"title": "Eels", "key": "eels", "cwd": "/eels"}`},
	{"sessions.get", "/v1/sessions/S", ""},
	{"sessions.card", "/v1/sessions/S/card", ""},
	{"sessions.resolve", "/v1/sessions/last/name", ""},
	{"sessions.fork", "/v1/sessions/S/fork", `{"at": "E"}`},
	{"sessions.rename", "/v1/sessions/S/name", `{"name": "Sea otters"}`},
	{"sessions.pin", "/v1/sessions/S/pin", `{"pinned": true}`},
	{"sessions.tag", "/v1/sessions/S/tags", `{"add": ["sea"], "remove": ["animals"]}`},
	{"sessions.rate", "/v1/sessions/S/rating", `{"rating": "good", "note": "otters"}`},
	{"sessions.suggest_tags", "/v1/sessions/S/tags/suggested", ""},
	{"sessions.auto_tag", "/v1/tags/auto", `{"sessions": ["S"]}`},
	{"sessions.tags", "/v1/tags", ""},
	{"sessions.archive", "/v1/archive", `{"session": "T"}`},
	{"sessions.unarchive", "/v1/sessions/T/unarchive", `{}`},
	{"sessions.overview", "/v1/overview", ""},
	{"sessions.suggest", "/v1/suggest/sessions?words=otters", ""},
	{"sessions.filter_values", "/v1/suggest/filters/tag", ""},
	{"sessions.short", "/v1/names/sessions", `{"sessions": ["S"]}`},
	{"sessions.distinct", "/v1/names/distinct", `{"sessions": ["S", "last"]}`},
	{"entries.append", "/v1/sessions/S/entries", hello},
	{"entries.append", "/v1/sessions/S/entries", picture},
	{"entries.note", "/v1/sessions/S/notes", `{"text": "They sleep in rafts.", "by": "a keeper"}`},
	{"entries.path", "/v1/sessions/S/entries?all=true", ""},
	{"entries.raw", "/v1/sessions/claude-code:0b0d6a1e-0a55-4a38-8e05-9d6a0f3b1c22/entries/leaf/raw", ""},
	{"entries.label", "/v1/sessions/S/entries/E/label", `{"label": "here"}`},
	{"entries.context", "/v1/sessions/S/context", `{"window": {"tokens": 1000}}`},
	{"entries.images", "/v1/images?session=S", ""},
	{"entries.image", "/v1/sessions/S/images/1", ""},
	{"entries.label", "/v1/sessions/S/entries/leaf/label", `{"label": "there"}`},
	{"entries.branch", "/v1/sessions/S/branch", `{"entry": "E", "summary": "It was about otters."}`},
	{"entries.tree", "/v1/sessions/S/tree", ""},
	{"entries.picture", "/v1/sessions/S/picture?points=3", ""},
	{"entries.rows", "/v1/sessions/S/rows?at=E&from=-1&count=10&limit=100", ""},
	{"entries.seek", "/v1/sessions/S/seek?text=OTTERS&back=true&from=-1", ""},
	{"entries.outline", "/v1/sessions/S/outline?limit=10", ""},
	{"entries.map", "/v1/sessions/S/map?fold=0", ""},
	{"entries.compare", "/v1/sessions/S/compare?a=E&b=there", ""},
	{"entries.merge", "/v1/sessions/S/merge", `{"from": "there", "summary": "They float."}`},
	{"entries.compact", "/v1/sessions/S/compact", `{"summary": "Otters sleep.", "keep_tokens": 1}`},
	{"entries.revert", "/v1/sessions/S/revert", `{}`},
	{"entries.suggest", "/v1/sessions/S/suggest", ""},
	{"entries.short", "/v1/names/entries", `{"sessions": ["S"], "entries": ["E"]}`},
	{"search.find", "/v1/search?query=otters&limit=3", ""},
	{"search.find", "/v1/search?query=nothing-of-the-kind", ""},
	{"search.stats", "/v1/stats", ""},
	{"transfer.export", "/v1/sessions/S/export?format=md", ""},
	{"transfer.export", "/v1/sessions/S/export?format=jsonl", ""},
	{"transfer.export", "/v1/sessions/S/export?format=json", ""},
	{"turns.prompt", "/v1/turns", `{"session": "S", "text": "say hello"}`},
	{"turns.watch", "/v1/sessions/S/turn/events", ""},
	{"turns.resume", "/v1/sessions/S/turn/resume", `{"again": true}`},
	{"turns.status", "/v1/sessions/S/turn", ""},
	{"turns.cancel", "/v1/sessions/S/turn/cancel", `{}`},
	{"turns.take_back", "/v1/sessions/S/turn/take_back", `{}`},
	{"turns.running", "/v1/turns", ""},
	{"entries.why", "/v1/sessions/S/requests", ""},
	{"sessions.remove", "/v1/sessions/T", ""},
	{"upkeep.trash", "/v1/trash", ""},
	{"upkeep.distinct_removals", "/v1/names/removals", `{"sessions": ["T"]}`},
	{"upkeep.restore", "/v1/trash/T/restore", `{}`},
	{"upkeep.empty_trash", "/v1/trash/empty", `{"all": true}`},
	{"upkeep.check", "/v1/upkeep/check", `{}`},
	{"upkeep.repair", "/v1/sessions/S/repair", `{"dry_run": true}`},
	{"upkeep.redact", "/v1/upkeep/redact", `{"value": "otters sleep"}`},
	{"upkeep.retain", "/v1/upkeep/retain", `{"older_than": "1000h", "dry_run": true}`},
	{"upkeep.tidy", "/v1/upkeep/tidy", `{"blobs": true}`},
	{"upkeep.index_status", "/v1/upkeep/index", ""},
	{"upkeep.rebuild_index", "/v1/upkeep/index", `{}`},
	{"upkeep.quarantine", "/v1/upkeep/quarantine", ""},
	{"upkeep.unfinished", "/v1/upkeep/unfinished", ""},
}

// names makes the sessions that requests are about, and puts their ids into one.
func (s *served) names() *strings.Replacer {
	s.Helper()
	id, entry := s.talk()
	gone, _ := s.talk()
	return strings.NewReplacer("/S", "/"+id, "=S", "="+id, `"S"`, `"`+id+`"`, "/E/", "/"+entry+"/", "=E&", "="+entry+"&", `"E"`, `"`+entry+`"`, "/T", "/"+gone, `"T"`, `"`+gone+`"`)
}

// onlyFail are the operations that have no good request without a blob, a turn that waits, something
// set aside, or a listener: their errors are looked at here, and what they do elsewhere.
var onlyFail = []string{"entries.blob", "entries.follow", "turns.approve", "turns.steer", "upkeep.readmit"}

// onlyInFiles are the operations that other homes than those in a directory refuse.
var onlyInFiles = []string{"sessions.archive", "sessions.unarchive", "upkeep.repair"}

// TestAnswersAreAsTheDocumentSays asks for every operation of the table, well and badly.
func TestAnswersAreAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	names := s.names()
	doc := s.document()
	asked := slices.Clone(onlyFail)
	_, inFiles := store.As[store.Directory](s.home.Store())
	for _, r := range requests {
		op := home.OperationNamed(r.operation)
		method, _, _ := strings.Cut(op.Route, " ")
		a := s.ask(method, names.Replace(r.path), names.Replace(r.body))
		if refused := !inFiles && slices.Contains(onlyInFiles, op.Name); refused != (a.outcome() == http.StatusUnprocessableEntity) || !refused && a.outcome() != http.StatusOK {
			t.Errorf("%s: %d %s", op.Name, a.status, a.body)
		}
		if err := misdescribed(doc, op, a); err != nil {
			t.Errorf("%s: %v", op.Name, err)
		}
		if tag := a.header.Get("ETag"); tag != "" {
			if err := misdescribed(doc, op, s.ask(method, names.Replace(r.path), "", "If-None-Match: "+tag)); err != nil {
				t.Errorf("%s again: %v", op.Name, err)
			}
		}
		asked = append(asked, op.Name)
	}
	for _, op := range home.Operations() {
		if op.Route == "" {
			continue
		}
		if !slices.Contains(asked, op.Name) {
			t.Errorf("%s has no request here: add one", op.Name)
		}
		method, path, _ := strings.Cut(op.Route, " ")
		path = strings.NewReplacer("{", "no-", "}", "").Replace(path)
		for _, bad := range []struct{ path, body string }{{path + "?unknown=1", `{"unknown": 1}`}, {path + "?session=no", `{"sessions": ["no"], "session": "no"}`}, {path + "?limit=x", "["}} {
			if op.Reads {
				bad.body = "otters\n"
			}
			a := s.ask(method, bad.path, bad.body)
			if err := misdescribed(doc, op, a); err != nil || a.outcome() >= 500 {
				t.Errorf("%s %s: %d %v", method, bad.path, a.status, err)
			}
		}
	}
}
