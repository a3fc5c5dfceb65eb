package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/html"
	"github.com/coppice-dev/coppice/session"
)

// maxDrawn is how large what the page wants to have drawn may be.
const maxDrawn = 4 << 20

// draw answers with the HTML of a message that no session has yet: an answer that arrives, a call
// that waits for a decision. So one renderer draws everything that the page shows.
func (s *Server) draw(w http.ResponseWriter, r *http.Request) {
	var given struct {
		Content []session.Content `json:"content"`
		Edits   []render.Edit     `json:"edits"` // instead of a content
	}
	body, err := readJSON(w, r, maxDrawn)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if err := json.Unmarshal(body, &given); err != nil {
		s.fail(w, r, problemf(http.StatusBadRequest, home.KindInvalid, "the body must be an object with the content of a message"))
		return
	}
	drawn := ""
	if len(given.Edits) > 0 {
		drawn = html.Edits(given.Edits)
	} else {
		entry := session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{Role: session.RoleAssistant, Content: given.Content}}
		drawn = html.Cards([]session.Entry{entry})[0]
	}
	if err := reservationOf(r.Context()).reserve(r.Context(), int64(len(drawn))); err != nil {
		s.fail(w, r, err)
		return
	}
	answerJSON(w, map[string]string{"html": drawn})
}

// pageWork says what the calls of a row do, so that the page can fold a run of them into a line.
type pageWork struct {
	Deeds  []render.Deed `json:"deeds,omitempty"`
	Calls  int           `json:"calls,omitempty"`
	Failed int           `json:"failed,omitempty"`
}

// workOf returns nil if a message says something that should not be folded. failed has the ids of
// the calls that failed.
func workOf(m *session.MessageEntry, failed map[string]bool) *pageWork {
	if m == nil || m.Role == session.RoleUser || m.Role == session.RoleSystem || render.StopWords(m) != "" {
		return nil
	}
	work := &pageWork{}
	for i := range m.Content {
		switch c := &m.Content[i]; {
		case c.ToolUse != nil:
			work.Calls++
			work.Deeds = append(work.Deeds, render.Deeds(c.ToolUse)...)
			if failed[c.ToolUse.ID] {
				work.Failed++
			}
		case c.Thinking != nil, c.ToolResult != nil, c.Text != nil && strings.TrimSpace(c.Text.Content) == "":
		default:
			return nil
		}
	}
	return work
}

// failedCalls returns the ids of the calls whose results among some rows are errors.
func failedCalls(rows []home.Row) map[string]bool {
	failed := make(map[string]bool)
	for i := range rows {
		m := rows[i].Entry.Message
		if m == nil {
			continue
		}
		for _, c := range m.Content {
			if c.ToolResult != nil && c.ToolResult.IsError {
				failed[c.ToolResult.ToolUseID] = true
			}
		}
	}
	return failed
}
