package ipc

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/coppice-dev/coppice/home"
)

// The tagged protocol: an object with "type", whose other members depend on it. Names and
// shapes are those of docs/ipc.md, and never change.
type (
	sessionCreate struct {
		Title *string `json:"title"`
	}
	sessionLoad struct {
		SessionID string `json:"session_id"`
	}
	sessionList struct {
		Limit *int `json:"limit"`
	}
	sessionDelete struct {
		SessionID string `json:"session_id"`
	}
	sessionExport struct {
		SessionID *string `json:"session_id"`
		Format    string  `json:"format"`
	}

	sessionCreated struct {
		Type      string `json:"type"`
		SessionID string `json:"session_id"`
	}
	sessionSaved struct {
		Type    string `json:"type"`
		Success bool   `json:"success"`
	}
	sessionLoaded struct {
		Type         string `json:"type"`
		SessionID    string `json:"session_id"`
		MessageCount int    `json:"message_count"`
	}
	sessionListResult struct {
		Type     string        `json:"type"`
		Sessions []sessionInfo `json:"sessions"`
	}
	sessionInfo struct {
		SessionID    string  `json:"session_id"`
		Title        *string `json:"title"` // null if it has none
		CreatedAt    string  `json:"created_at"`
		UpdatedAt    string  `json:"updated_at"`
		MessageCount int     `json:"message_count"`
		TotalTokens  int64   `json:"total_tokens"`
	}
	sessionDeleted struct {
		Type    string `json:"type"`
		Success bool   `json:"success"`
	}
	sessionExported struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}

	// taggedError says why a request was not done.
	taggedError struct {
		Type    string    `json:"type"`
		Request string    `json:"request,omitempty"` // the type of the request
		Kind    home.Kind `json:"kind"`
		Message string    `json:"message"`
		Field   string    `json:"field,omitempty"`
		Hint    string    `json:"hint,omitempty"`
	}
)

// taggedState is what the tagged protocol remembers about a connection.
type taggedState struct {
	session string           // the current session, or "" if there is none yet
	chat    home.ChatRequest // how queries are answered
	turn    *runningQuery    // the query under way, or nil
}

// taggedRequests are the requests by their types. Each returns the answer.
var taggedRequests = map[string]func(c *conn, ctx context.Context, line []byte) (any, error){
	"initialize":     (*conn).initialize,
	"query":          (*conn).query,
	"tool_approve":   (*conn).toolApprove,
	"session_create": (*conn).sessionCreate,
	"session_save":   (*conn).sessionSave,
	"session_load":   (*conn).sessionLoad,
	"session_list":   (*conn).sessionList,
	"session_delete": (*conn).sessionDelete,
	"session_export": (*conn).sessionExport,
}

// answerTagged answers a message of the tagged protocol before the next line is read: without
// ids, a client matches answers to requests by their order.
func (c *conn) answerTagged(kind json.RawMessage, line []byte) {
	var name string
	if json.Unmarshal(kind, &name) != nil {
		c.reportBadLine(invalid("type", "type must be a string"), 0)
		return
	}
	request := taggedRequests[name]
	if request == nil {
		c.write(taggedFailure(name, invalid("type", "unknown request type %q", name)))
		return
	}
	ctx := home.WithNotify(c.ctx, c.server.notify)
	ctx = home.WithProgress(ctx, func(string, int64, int64) {})
	answer, err := c.guarded(name, func() (any, error) { return request(c, ctx, line) })
	switch {
	case err != nil:
		c.write(taggedFailure(name, err))
	case answer != nil:
		c.write(answer)
	}
}

// taggedFields maps fields of requests to the home to their names in the tagged protocol.
var taggedFields = map[string]string{"session": "session_id", "text": "query", "call": "tool_id"}

func taggedFailure(request string, err error) taggedError {
	info := home.DescribeIn(err, taggedField)
	return taggedError{"error", request, info.Kind, info.Message, info.Field, info.Hint}
}

func taggedField(field string) string {
	if own, ok := taggedFields[field]; ok {
		return own
	}
	return field
}

// read reads the members of a request. Members that it does not have are ignored, so that a
// newer client can talk to an older server.
func read(line []byte, into any) error {
	return home.Misread(line, into, json.Unmarshal(line, into))
}

func (c *conn) currentSession() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tagged.session
}

// setCurrentSession makes a session the current one.
func (c *conn) setCurrentSession(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tagged.session = session
}

func (c *conn) sessionCreate(ctx context.Context, line []byte) (any, error) {
	var r sessionCreate
	if err := read(line, &r); err != nil {
		return nil, err
	}
	var create home.CreateRequest
	if r.Title != nil {
		create.Title = *r.Title
	}
	made, err := c.server.home.Sessions.Create(ctx, create)
	if err != nil {
		return nil, err
	}
	c.setCurrentSession(made.Session)
	return sessionCreated{"session_created", made.Session}, nil
}

// sessionSave says whether the current session is saved. Every message is saved as soon as it
// arrives, so it only checks that there is a session.
func (c *conn) sessionSave(ctx context.Context, _ []byte) (any, error) {
	present := c.currentSession()
	if present == "" {
		return sessionSaved{"session_saved", false}, nil
	}
	if _, err := c.server.home.Sessions.Resolve(ctx, home.SessionRequest{Session: present}); err != nil {
		return nil, err
	}
	return sessionSaved{"session_saved", true}, nil
}

func (c *conn) sessionLoad(ctx context.Context, line []byte) (any, error) {
	var r sessionLoad
	if err := read(line, &r); err != nil {
		return nil, err
	}
	info, err := c.server.home.Sessions.Get(ctx, home.SessionRequest{Session: r.SessionID})
	if err != nil {
		return nil, err
	}
	messages, err := c.messages(ctx, info.Name)
	if err != nil {
		return nil, err
	}
	c.setCurrentSession(info.Name)
	return sessionLoaded{"session_loaded", info.Name, messages}, nil
}

// messages counts what a client that loads a session gets to see: other branches do not count.
func (c *conn) messages(ctx context.Context, of string) (int, error) {
	end, err := c.server.home.Entries.Rows(ctx, home.RowsRequest{Session: of, From: -1, Count: 1, Limit: 1})
	if err != nil {
		return 0, err
	}
	return end.Messages, nil
}

func (c *conn) sessionList(ctx context.Context, line []byte) (any, error) {
	var r sessionList
	if err := read(line, &r); err != nil {
		return nil, err
	}
	limit := -1 // all
	if r.Limit != nil && *r.Limit < 0 {
		return nil, invalid("limit", "limit is %d; it must not be negative", *r.Limit)
	} else if r.Limit != nil && *r.Limit > 0 {
		limit = *r.Limit
	}
	list, err := c.server.home.Sessions.List(ctx, home.ListRequest{Limit: limit})
	if err != nil {
		return nil, err
	}
	result := sessionListResult{"session_list_result", make([]sessionInfo, len(list.Sessions))}
	for i := range list.Sessions {
		result.Sessions[i] = infoOf(&list.Sessions[i])
	}
	return result, nil
}

func infoOf(s *home.SessionInfo) sessionInfo {
	info := sessionInfo{
		SessionID: s.Name, CreatedAt: s.Created.Format(time.RFC3339Nano), UpdatedAt: s.Updated.Format(time.RFC3339Nano),
		MessageCount: s.Messages, TotalTokens: s.Tokens,
	}
	if s.Title != "" {
		info.Title = &s.Title
	}
	return info
}

// sessionDelete moves a conversation to the trash. One that is not there needs no more than that.
func (c *conn) sessionDelete(ctx context.Context, line []byte) (any, error) {
	var r sessionDelete
	if err := read(line, &r); err != nil {
		return nil, err
	}
	removed, err := c.server.home.Sessions.Remove(ctx, home.RemoveRequest{Session: r.SessionID})
	if home.KindOf(err) == home.KindNotFound {
		removed, err = &home.RemoveResult{Sessions: []string{r.SessionID}}, nil
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(removed.Sessions, c.tagged.session) {
		c.tagged.session = ""
	}
	return sessionDeleted{"session_deleted", true}, nil
}

func (c *conn) sessionExport(ctx context.Context, line []byte) (any, error) {
	var r sessionExport
	if err := read(line, &r); err != nil {
		return nil, err
	}
	of := c.currentSession()
	if r.SessionID != nil {
		of = *r.SessionID
	}
	if of == "" {
		return nil, invalid("session_id", "no session is loaded: give session_id, or send session_load first")
	}
	if r.Format == "" || r.Format == "markdown" {
		r.Format = home.ExportMarkdown
	}
	var content bytes.Buffer
	_, err := c.server.home.Transfer.Export(ctx, home.ExportRequest{
		OpenRequest: home.OpenRequest{Session: of}, Format: r.Format, Path: "-",
	}, func(piece home.ExportPiece) error {
		content.Write(piece.Data)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sessionExported{"session_exported", content.String()}, nil
}
