package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/budget"
)

// The forms of an answer. A caller chooses with Accept.
const (
	plainJSON   = "application/json"
	lines       = "application/x-ndjson" // one Message on each line
	eventStream = "text/event-stream"    // the same as server-sent events
)

// Message is a piece of a streamed answer. It has one member besides the ID; none means that
// the operation is still running. The last one has the Result, the Error, or both.
type Message struct {
	// ID lets a caller that follows continue after this piece: it is the next request's after,
	// or its Last-Event-ID. A server-sent event has it as its own id instead.
	ID       string         `json:"id,omitempty"`
	Begun    bool           `json:"begun,omitempty"` // what is appended from now on is followed
	Event    any            `json:"event,omitempty"`
	Notice   *home.Notice   `json:"notice,omitempty"`
	Progress *home.Progress `json:"progress,omitempty"`
	Result   any            `json:"result,omitempty"`
	Error    *Problem       `json:"error,omitempty"`
}

// answer performs an operation and answers in the form that the caller wants.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, op *described, request any) {
	ctx, cancel := s.limited(r, op)
	defer cancel()
	accept := r.Header.Get("Accept")
	streamed := strings.Contains(accept, eventStream) || strings.Contains(accept, lines)
	switch {
	case op.Event == nil && !streamed:
		s.answerWhole(ctx, w, r, op, request)
	case isExport(request) && !streamed:
		s.answerBytes(ctx, w, r, op, request)
	default:
		s.answerStream(ctx, w, r, op, request)
	}
}

// answerWhole answers with one JSON document.
func (s *Server) answerWhole(ctx context.Context, w http.ResponseWriter, r *http.Request, op *described, request any) {
	held := reservationOf(ctx)
	before := held.size
	result, err := op.Call(bounded(ctx, op, nil), s.o.Home, request, nil, nil)
	if err != nil {
		p := s.problem(r, err)
		p.Result = result
		s.fail(w, r, p)
		return
	}
	if s.isConfined(GrantOf(ctx)) {
		result = stripPaths(result)
	}
	kind, text := bytesOf(result)
	isBytes := len(text) > 0 && !strings.Contains(r.Header.Get("Accept"), plainJSON)
	if !isBytes {
		text, err = json.Marshal(result)
		text = append(text, '\n')
	}
	if err == nil { // only the text is left in memory, but a caller may take long to receive it
		err = held.resize(ctx, before+int64(len(text)))
	}
	switch {
	case err == nil && isBytes:
		serveBytes(w, r, kind, text)
		return
	case err != nil:
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", plainJSON)
	w.Header().Set("Cache-Control", "no-cache") // it may be cached, but must be revalidated
	if r.Method != http.MethodGet || !isNotModified(w, r, text) {
		_, _ = w.Write(text) // the caller may be gone
	}
}

// bounded returns a context in which what an operation reads counts as memory of its caller. What
// an operation that writes reads may be for others, too.
func bounded(ctx context.Context, op *described, out *stream) context.Context {
	if op.Access > home.Read {
		return ctx
	}
	held := reservationOf(ctx)
	return budget.With(ctx, func(n int64) error {
		if out != nil {
			defer out.silent()()
		}
		// However long a conversation is, it can be read: nothing more is counted when nobody else
		// with the same token has anything left.
		return held.reserve(ctx, min(n, held.of.share-held.size))
	})
}

// isNotModified sets the ETag of an answer. It reports whether the caller has the answer already,
// and then says so in its place.
func isNotModified(w http.ResponseWriter, r *http.Request, text []byte) bool {
	tag := etag(text)
	w.Header().Set("ETag", tag)
	has := matches(r.Header.Get("If-None-Match"), tag)
	if has {
		w.WriteHeader(http.StatusNotModified)
	}
	return has
}

func etag(text []byte) string {
	sum := sha256.Sum256(text)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

func matches(header, tag string) bool {
	for known := range strings.SplitSeq(header, ",") {
		if known = strings.TrimSpace(known); known == "*" || strings.TrimPrefix(known, "W/") == tag {
			return true
		}
	}
	return false
}

// serveBytes answers with bytes, or with the requested range. Bytes from a transcript are
// never shown as a page of this server.
func serveBytes(w http.ResponseWriter, r *http.Request, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	w.Header().Set("ETag", etag(data))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// stripPaths returns a result without paths of this machine.
func stripPaths(result any) any {
	switch r := result.(type) {
	case *home.Overview:
		r.Dir = ""
	case *home.UnarchiveResult:
		for i := range r.Sessions {
			r.Sessions[i].Path = ""
		}
	}
	return result
}

// bytesOf returns the bytes that a result is about, with their type.
func bytesOf(result any) (kind string, data []byte) {
	switch r := result.(type) {
	case *home.ImageResult:
		return r.MediaType, r.Data
	case *home.BlobResult:
		return "application/octet-stream", r.Data
	}
	return "", nil
}

func isExport(request any) bool {
	_, ok := request.(*home.ExportRequest)
	return ok
}

// exportTypes are the types of Coppice's own formats. Those of other programs are bytes.
var exportTypes = map[string]string{
	"":                  "text/markdown; charset=utf-8", // the default
	home.ExportMarkdown: "text/markdown; charset=utf-8",
	home.ExportHTML:     "text/html; charset=utf-8",
	home.ExportJSON:     plainJSON,
	home.ExportJSONL:    lines,
}

// answerBytes answers with the bytes of an export. An error after the first piece cuts the
// connection, so that the caller does not take a part for the whole.
func (s *Server) answerBytes(ctx context.Context, w http.ResponseWriter, r *http.Request, op *described, request any) {
	begun := false
	begin := func() {
		kind := exportTypes[request.(*home.ExportRequest).Format]
		if kind == "" {
			kind = "application/octet-stream"
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:")
		begun = true
	}
	var gone error
	_, err := op.Call(bounded(ctx, op, nil), s.o.Home, request, nil, func(event any) error {
		if !begun {
			begin()
		}
		_, gone = w.Write(event.(home.ExportPiece).Data)
		return gone
	})
	switch {
	case gone != nil && errors.Is(err, gone):
		s.callerLeft(ctx, err)
		panic(http.ErrAbortHandler)
	case err != nil && begun:
		s.o.Log.WarnContext(ctx, "an export was cut off", "request", requestID(ctx), "error", err)
		panic(http.ErrAbortHandler)
	case err != nil:
		s.fail(w, r, err)
	case !begun:
		begin()
	}
}

// answerStream answers with the events that the operation sends while it runs.
func (s *Server) answerStream(ctx context.Context, w http.ResponseWriter, r *http.Request, op *described, request any) {
	var in io.Reader
	if op.Reads {
		in = r.Body
		// A caller that is still sending gets progress reports. That must be enabled before
		// the first beat can write.
		_ = http.NewResponseController(w).EnableFullDuplex()
	}
	out := newStream(w, strings.Contains(r.Header.Get("Accept"), eventStream))
	defer out.end()
	ctx = home.WithNotify(ctx, func(n home.Notice) { _ = out.send("", Message{Notice: s.visibleNotice(n)}) })
	ctx = home.WithProgress(ctx, out.progress)
	if follow, ok := request.(*home.FollowRequest); ok {
		s.follow(ctx, r, out, follow)
		return
	}
	result, err := op.Call(bounded(ctx, op, out), s.o.Home, request, in, func(event any) error {
		return out.send(idOf(event), Message{Event: s.visibleEvent(event, s.isConfined(GrantOf(ctx)))})
	})
	s.finish(r, out, result, err)
}

// idOf returns the id of an event after which a caller can continue later, or "".
func idOf(event any) string {
	if e, ok := event.(home.TurnEvent); ok {
		return strconv.FormatInt(e.Number, 10)
	}
	return ""
}

// finish sends the last piece. An error before the first one is a plain answer. If the operation
// ended because its caller takes no more, nothing is wrong here and nobody is there to answer.
func (s *Server) finish(r *http.Request, out *stream, result any, err error) {
	if gone := out.failure(); gone != nil && errors.Is(err, gone) {
		s.callerLeft(r.Context(), err)
		return
	}
	if err == nil {
		_ = out.send("", Message{Result: result})
		return
	}
	p := s.problem(r, err)
	if out.isUnused() {
		p.Result = result
		s.fail(out.w, r, p)
		return
	}
	_ = out.send("", Message{Result: result, Error: p})
}

// callerLeft notes that a caller no longer takes an answer, which is nobody's error.
func (s *Server) callerLeft(ctx context.Context, why error) {
	s.o.Log.DebugContext(ctx, "the caller left before the end of the answer", "request", requestID(ctx), "error", why)
}

// visibleEvent returns an event as a caller may see it. A confined caller need not know in which
// directory a turn works.
func (s *Server) visibleEvent(event any, confined bool) any {
	t, ok := event.(home.TurnEvent)
	if !ok {
		return event
	}
	if t.Error != nil {
		t.Error = s.plain(t.Error)
	}
	if t.Notice != nil {
		t.Notice = s.visibleNotice(*t.Notice)
	}
	if t.Facts != nil && confined {
		facts := *t.Facts
		facts.Dir, facts.Untrusted, facts.Warnings = "", nil, nil
		t.Facts = &facts
	}
	return t
}

// plain returns an error without paths of the server's files.
func (s *Server) plain(e *home.ErrorInfo) *home.ErrorInfo {
	return &home.ErrorInfo{Kind: e.Kind, Message: s.withoutPaths(e.Message), Field: e.Field, Hint: s.withoutPaths(e.Hint)}
}

// visibleNotice returns a notice as a caller may see it.
func (s *Server) visibleNotice(n home.Notice) *home.Notice {
	n.Path = ""
	if n.Error != nil {
		n.Error = s.plain(n.Error)
	}
	return &n
}

// stream is a streamed answer. Its methods may be called by several goroutines.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	events  bool // as server-sent events

	mu       sync.Mutex // guards what follows, and writing
	begun    bool
	isSilent bool  // nothing begins it but what is sent
	err      error // of writing; nothing is written after it
	reported time.Time
	timer    *time.Timer
}

func newStream(w http.ResponseWriter, events bool) *stream {
	out := &stream{w: w, control: http.NewResponseController(w), events: events}
	out.mu.Lock() // the first beat must find the timer
	defer out.mu.Unlock()
	out.timer = time.AfterFunc(firstBeat, out.heartbeat)
	return out
}

// errOver keeps a late beat from writing to an answer that is over.
var errOver = errors.New("the answer is over")

func (out *stream) end() {
	out.timer.Stop()
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.err == nil {
		out.err = errOver
	}
}

// silent keeps the answer from beginning until the operation goes on, which may be refused.
func (out *stream) silent() (over func()) {
	set := func(to bool) {
		out.mu.Lock()
		defer out.mu.Unlock()
		out.isSilent = to
	}
	set(true)
	return func() { set(false) }
}

// heartbeat says that the operation is still running.
func (out *stream) heartbeat() {
	out.mu.Lock()
	wait := out.isSilent && !out.begun
	out.mu.Unlock()
	if wait {
		out.timer.Reset(firstBeat)
		return
	}
	if out.send("", Message{}) == nil {
		out.timer.Reset(beat)
	}
}

// progress sends how far the operation has come, now and then.
func (out *stream) progress(doing string, done, total int64) {
	out.mu.Lock()
	// Until the first beat an error can still be the status of the answer.
	early := time.Since(out.reported) < time.Second/4 && done < total || !out.begun
	if !early {
		out.reported = time.Now()
	}
	out.mu.Unlock()
	if !early {
		_ = out.send("", Message{Progress: &home.Progress{Doing: doing, Done: done, Total: total}})
	}
}

// isUnused reports whether nothing was sent. If so, nothing will be.
func (out *stream) isUnused() bool {
	out.mu.Lock()
	defer out.mu.Unlock()
	if !out.begun {
		out.err = errOver
	}
	return !out.begun
}

// send sends a piece at once. Its id lets a caller continue after it later.
func (out *stream) send(id string, m Message) error {
	if !out.events {
		m.ID = id
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return out.write(id, m.name(), text)
}

// name is the name of a piece as a server-sent event.
func (m *Message) name() string {
	switch {
	case m.Error != nil:
		return "error"
	case m.Result != nil:
		return "result"
	case m.Notice != nil:
		return "notice"
	case m.Progress != nil:
		return "progress"
	case m.Event != nil:
		return "message"
	case m.Begun:
		return "begin"
	}
	return ""
}

func (out *stream) write(id, name string, text []byte) error {
	out.mu.Lock()
	defer out.mu.Unlock()
	if err := out.start(); err != nil {
		return err
	}
	if out.events && name == "" {
		return out.put([]byte(":\n\n"))
	}
	if !out.events {
		return out.put(append(text, '\n'))
	}
	return out.put(eventHead(id, name), text, []byte("\n\n")) // JSON has no line ends
}

// eventHead is what a server-sent event begins with.
func eventHead(id, name string) []byte {
	head := "event: " + name + "\ndata: "
	if id != "" && !strings.ContainsAny(id, "\r\n\x00") { // programs choose the ids of entries
		head = "id: " + id + "\n" + head
	}
	return []byte(head)
}

// pass sends an arrival, whose text it neither copies nor changes: others are sent the same.
func (out *stream) pass(id string, a *arrival) error {
	out.mu.Lock()
	defer out.mu.Unlock()
	if err := out.start(); err != nil {
		return err
	}
	if out.events {
		return out.put(eventHead(id, a.name), a.text, []byte("\n\n"))
	}
	if id == "" {
		return out.put(a.text, []byte("\n"))
	}
	named, err := json.Marshal(id)
	if err != nil {
		return err
	}
	return out.put(slices.Concat([]byte(`{"id":`), named, []byte(",")), a.text[1:], []byte("\n"))
}

// maxTogether is up to which size the pieces of an answer are written together.
const maxTogether = 16 << 10

// put writes bytes at once. The caller holds the mutex.
func (out *stream) put(pieces ...[]byte) error {
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	if n <= maxTogether {
		pieces = [][]byte{slices.Concat(pieces...)}
	}
	for _, p := range pieces {
		if _, out.err = out.w.Write(p); out.err != nil {
			return out.err
		}
	}
	out.err = out.control.Flush()
	return out.err
}

// start begins the answer, unless it has begun. It returns the error of an earlier write. The
// caller holds the mutex.
func (out *stream) start() error {
	if out.err == nil && !out.begun {
		out.begun = true
		out.begin()
	}
	return out.err
}

// failure returns why nothing more can be written, or nil.
func (out *stream) failure() error {
	out.mu.Lock()
	defer out.mu.Unlock()
	return out.err
}

// cutOff ends the answer to a caller that does not read it, even while it is being written.
func (out *stream) cutOff() {
	w := out.w
	for {
		if c, ok := w.(*countedWriter); ok {
			c.cutOff()
			return
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			_ = out.control.SetWriteDeadline(time.Now())
			return
		}
		w = inner.Unwrap()
	}
}

func (out *stream) begin() {
	kind := lines
	if out.events {
		kind = eventStream
	}
	out.w.Header().Set("Content-Type", kind)
	out.w.Header().Set("Cache-Control", "no-store")
}
