package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/html"
	"github.com/coppice-dev/coppice/session"
)

// pageRow is a row as the page shows it. It has no entry: the HTML has what is shown of it.
type pageRow struct {
	home.Row
	Entry pageEntry `json:"entry"`
	HTML  string    `json:"html"` // "" if there is nothing to show
	Work  *pageWork `json:"work,omitempty"`
	// Draft says that it is an answer that was not complete when it was written, and may still be
	// arriving; Queued, that the model has not heard it.
	Draft  bool `json:"draft,omitempty"`
	Queued bool `json:"queued,omitempty"`
}

// pageEntry has the other facts about an entry that the page needs.
type pageEntry struct {
	ID    string    `json:"id"`
	Time  time.Time `json:"time,omitzero"`
	Role  string    `json:"role,omitempty"`
	Note  string    `json:"note,omitempty"`  // whose note it is
	Facts []string  `json:"facts,omitempty"` // such as its model, in words
}

// forPage answers an operation's request in the form that the page needs.
func (s *Server) forPage(op *described, answer func(ctx context.Context, h *home.Home, request any) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noteOperation(r.Context(), op.Name)
		read, err := s.read(op, w, r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		ctx, cancel := s.limited(r, op)
		defer cancel()
		result, err := answer(ctx, s.o.Home, read)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		text, err := json.Marshal(result)
		if err == nil {
			err = reservationOf(ctx).reserve(ctx, int64(len(text)))
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", plainJSON)
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(text) // the caller may be gone
	})
}

// pictureForPage answers as entries.picture does, with the picture as HTML. Its links are addresses
// of the page, without the path that a proxy may have it below.
func pictureForPage(ctx context.Context, h *home.Home, request any) (any, error) {
	r := *request.(*home.PictureRequest)
	r.Points = -1 // the picture says itself how many it has room for
	result, err := h.Entries.Picture(ctx, r)
	if err != nil {
		return nil, err
	}
	at := "/s/" + url.PathEscape(result.Session) + "/e/"
	return map[string]string{"html": html.Picture(&result.Picture, func(entry string) string { return at + url.PathEscape(entry) })}, nil
}

type pageRowsResult struct {
	home.RowsResult
	Rows []pageRow `json:"rows"`
}

// maxPageRows is how many rows the page may ask for at once.
const maxPageRows = 500

// rowsForPage answers as entries.rows does, with HTML instead of entries.
func rowsForPage(ctx context.Context, h *home.Home, request any) (any, error) {
	r := *request.(*home.RowsRequest)
	r.Count = min(cmp.Or(r.Count, 50), maxPageRows)
	if r.At != "" || r.From < 0 { // find out where that is
		first := r
		first.Count, first.Limit = 1, 1
		at, err := h.Entries.Rows(ctx, first)
		if err != nil {
			return nil, err
		}
		r.At, r.Leaf, r.From = "", at.Leaf, at.From
	}
	around := r
	around.From = max(r.From-html.Reach, 0)
	around.Count = r.From + r.Count + html.Reach - around.From
	result, err := h.Entries.Rows(ctx, around)
	if err != nil {
		return nil, err
	}
	entries, notes := make([]session.Entry, len(result.Rows)), make([]string, len(result.Rows))
	for i := range result.Rows {
		entries[i] = result.Rows[i].Entry
		if text, ok := entries[i].NoteText(); ok { // the page says whose it is, and needs no quotation
			said := *entries[i].Message
			said.Content = []session.Content{session.Text(text)}
			by, _ := entries[i].NoteBy()
			entries[i].Message, notes[i] = &said, render.OneLine(by, 0)
		}
	}
	cards, failed := html.Cards(entries), failedCalls(result.Rows)
	page := &pageRowsResult{RowsResult: *result, Rows: []pageRow{}}
	page.RowsResult.From, page.RowsResult.Rows = min(r.From, result.Total), nil
	for i, row := range result.Rows {
		if row.Index < r.From || row.Index >= r.From+r.Count {
			continue
		}
		e := row.Entry
		shown := pageRow{Row: row, Entry: pageEntry{ID: e.ID, Time: e.Timestamp.UTC(), Note: notes[i]}, HTML: cards[i]}
		if e.Message != nil {
			shown.Entry.Role, shown.Entry.Facts = e.Message.Role, render.MessageFacts(e.Message)
			shown.Draft, shown.Queued = e.Message.StopReason == session.StopDraft, e.Message.StopReason == session.StopQueued
			shown.Work = workOf(e.Message, failed)
		}
		page.Rows = append(page.Rows, shown)
	}
	return page, nil
}
