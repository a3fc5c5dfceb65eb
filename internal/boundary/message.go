package boundary

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// In Penguin, and so in package conversation, a session that continues another says so in a
// message. In our logs that is an entry of its own, which no model is sent: see
// session.TypeContinues. This file has the one form and the other.

// The metadata of such a message.
const (
	transitionType      = "session_transition" // of session.MetaType
	metaPrevious        = "previous_session"
	metaOriginal        = "original_session"
	metaOriginalCreated = "original_created_at"
	metaEarlierMessages = "earlier_messages"
	metaEarlierTokens   = "earlier_tokens"   // of messages that were counted
	metaEarlierEstimate = "earlier_estimate" // of messages that were not
)

// IsMarker reports whether an entry is a message that says which session this one continues.
func IsMarker(e *session.Entry) bool {
	return e.Message != nil && e.Message.Role == session.RoleSystem && e.Message.Metadata[session.MetaType] == transitionType
}

// MarkerMessage returns a marker as such a message.
func MarkerMessage(marker *session.Entry) session.Entry {
	c := marker.Continues
	metadata := map[string]any{
		session.MetaType: transitionType, metaPrevious: c.Session, metaOriginal: c.Original,
		metaEarlierMessages: c.Messages, metaEarlierTokens: c.Tokens, metaEarlierEstimate: c.Estimated,
	}
	if !c.Created.IsZero() {
		metadata[metaOriginalCreated] = c.Created.UTC().Format(time.RFC3339Nano)
	}
	return session.Entry{
		Type: session.TypeMessage, ID: marker.ID, ParentID: marker.ParentID, Timestamp: marker.Timestamp,
		Message: &session.MessageEntry{
			Role: session.RoleSystem, Category: window.System.String(), Metadata: metadata,
			Content: []session.Content{session.Text(fmt.Sprintf("Continuing from session %s", c.Session))},
		},
	}
}

// MarkerIn returns what such a message says, as a marker.
func MarkerIn(e *session.Entry) *session.ContinuesEntry {
	d := e.Message.Metadata
	c := &session.ContinuesEntry{Messages: number(d[metaEarlierMessages]), Tokens: number(d[metaEarlierTokens]), Estimated: number(d[metaEarlierEstimate])}
	c.Session, _ = d[metaPrevious].(string)
	c.Original, _ = d[metaOriginal].(string)
	if text, ok := d[metaOriginalCreated].(string); ok {
		c.Created, _ = time.Parse(time.RFC3339Nano, text) // without a time, the origin has none
	}
	return c
}

// number reads a number that may have gone through JSON.
func number(v any) int {
	switch v := v.(type) {
	case int:
		return v
	case float64:
		return int(v)
	case json.Number:
		n, _ := v.Int64()
		return int(n)
	}
	return 0
}
