package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/coppice-dev/coppice/home"
)

// operation returns the handler of an operation.
func (s *Server) operation(op *described) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		noteOperation(r.Context(), op.Name)
		g := GrantOf(r.Context())
		if g.Access < op.Access {
			s.fail(w, r, forbidden(g, op.Access))
			return
		}
		request, err := s.read(op, w, r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.answer(w, r, op, request)
	})
}

// idempotencyKey is the header with the name of a request. In an operation it is the field once.
const idempotencyKey = "Idempotency-Key"

// read returns the request of an operation: the path, the query and the body of an HTTP
// request are the members of one JSON object.
func (s *Server) read(op *described, w http.ResponseWriter, r *http.Request) (any, error) {
	beside := make(map[string]any) // the members from the path and the query
	var body []byte
	var err error
	if op.inBody {
		body, err = readJSON(w, r, min(s.o.Limits.Body, op.maxBody()))
	} else {
		err = op.readQuery(r.URL.Query(), beside)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range op.inPath {
		beside[name] = r.PathValue(name)
	}
	if key := r.Header.Get(idempotencyKey); key != "" && op.Access > home.Read {
		if op.properties["once"] == nil {
			p := wrongField(idempotencyKey, "%s does not take one: asked twice, it is done twice", op.Name)
			p.Hint = "leave it out, and look at what was done before you ask again"
			return nil, p
		}
		beside["once"] = key
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" && op.isResumable() {
		if beside["after"], err = valueOf(op.properties["after"].Type, last); err != nil {
			return nil, wrongField("after", "%q is not %s", last, err)
		}
		delete(beside, "last") // a caller that reconnects uses the same address, and has had these entries
	}
	if err := op.validate(body, beside); err != nil {
		return nil, err
	}
	text, err := joined(body, beside)
	if err != nil {
		return nil, err
	}
	request := reflect.New(op.Request).Interface()
	if err := home.Decode(text, request); err != nil {
		return nil, err
	}
	return request, op.Receive(request)
}

// joined returns a JSON object with the members of a body, which may be empty, and then those
// beside it, which count if there are both.
func joined(body []byte, beside map[string]any) ([]byte, error) {
	text, err := json.Marshal(beside)
	if err != nil || len(body) == 0 {
		return text, err
	}
	members := bytes.TrimSpace(body[1 : len(body)-1])
	switch {
	case len(members) == 0:
		return text, nil
	case len(beside) == 0:
		return body, nil
	}
	return slices.Concat([]byte("{"), members, []byte(","), text[1:]), nil
}

// maxBody is how large a request may be: decoded, it takes many times as much memory. Only an
// append and turns carry content, such as images.
func (d *described) maxBody() int64 {
	if d.Name == "entries.append" || strings.HasPrefix(d.Name, "turns.") {
		return math.MaxInt64
	}
	return 1 << 20
}

// readJSON returns a body, which is a JSON object or empty.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "" && strings.TrimSpace(kind) != "application/json" {
		return nil, problemf(http.StatusUnsupportedMediaType, home.KindInvalid, "the body is %s; send application/json", kind)
	}
	body, err := reservationOf(r.Context()).readBody(w, r, limit)
	if err != nil {
		return nil, err
	}
	if err := reservationOf(r.Context()).reserve(r.Context(), values(body)*valueWeight); err != nil {
		return nil, err
	}
	if !utf8.Valid(body) { // encoding/json would silently replace other bytes
		return nil, problemf(http.StatusBadRequest, home.KindInvalid, "the body is not UTF-8")
	}
	return bytes.TrimSpace(body), nil
}

// readQuery adds the parameters of an address, as values of the types of their fields.
func (d *described) readQuery(query url.Values, members map[string]any) error {
	for name, values := range query {
		schema := d.properties[name]
		if schema == nil {
			return wrongField(name, "the parameter is unknown; GET /openapi.json lists the parameters")
		}
		if schema.Type == huma.TypeArray {
			list := make([]any, len(values))
			for i, v := range values {
				list[i] = v
			}
			members[name] = list
			continue
		}
		if len(values) > 1 {
			return wrongField(name, "it is given %d times", len(values))
		}
		value, err := valueOf(schema.Type, values[0])
		if err != nil {
			return wrongField(name, "%q is not %s", values[0], err)
		}
		members[name] = value
	}
	return nil
}

func valueOf(kind, text string) (any, error) {
	switch kind {
	case huma.TypeBoolean:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, errors.New("true or false")
		}
		return b, nil
	case huma.TypeInteger:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, errors.New("a whole number")
		}
		return n, nil
	case huma.TypeObject:
		return nil, errors.New("something that fits into an address")
	}
	return text, nil
}

// validate checks a request against its schema. It reports every field that is wrong.
func (d *described) validate(body []byte, beside map[string]any) error {
	members := make(map[string]any)
	if len(body) > 0 {
		if body[0] != '{' {
			return problemf(http.StatusBadRequest, home.KindInvalid, "the body is not a JSON object")
		}
		if err := json.Unmarshal(body, &members); err != nil {
			return problemf(http.StatusBadRequest, home.KindInvalid, "the body is not a JSON object: %v", err)
		}
	}
	for name, value := range beside {
		if given, ok := members[name]; ok && given != value {
			return wrongField(name, "the body has another value than the address")
		}
		members[name] = value
	}
	for _, name := range d.schema.Required {
		if _, ok := members[name]; !ok {
			return wrongField(name, "it is missing")
		}
	}
	var result huma.ValidateResult
	huma.Validate(d.registry, d.schema, huma.NewPathBuffer(make([]byte, 0, 128), 0), huma.ModeWriteToServer, members, &result)
	if len(result.Errors) == 0 {
		return nil
	}
	p := problemf(http.StatusUnprocessableEntity, home.KindInvalid, "the request is not as it should be")
	for _, err := range result.Errors {
		var detail *huma.ErrorDetail
		if errors.As(err, &detail) {
			p.Errors = append(p.Errors, Wrong{Field: detail.Location, Message: detail.Message})
		}
	}
	if len(p.Errors) > 0 {
		p.Field, p.Detail = p.Errors[0].Field, strings.TrimPrefix(p.Errors[0].Field+": "+p.Errors[0].Message, ": ")
	}
	return p
}

func wrongField(name, format string, args ...any) *Problem {
	p := problemf(http.StatusUnprocessableEntity, home.KindInvalid, format, args...)
	p.Field, p.Detail = name, name+": "+p.Detail
	return p
}

// limited returns the context in which an operation runs. It ends with the caller, after a
// time unless it streams, and with the server if the caller only listens. Most callers are
// confined in it.
func (s *Server) limited(r *http.Request, op *described) (context.Context, context.CancelFunc) {
	ctx := r.Context()
	if s.isConfined(GrantOf(ctx)) {
		ctx = home.Confine(ctx)
	}
	if op.Event == nil {
		return context.WithTimeout(ctx, s.o.Limits.Time)
	}
	ctx, cancel := context.WithCancel(ctx)
	// A turn continues without its listeners, and can be resumed after the home was closed.
	if op.Access == home.Read || strings.HasPrefix(op.Name, "turns.") {
		stop := context.AfterFunc(s.stopping, cancel)
		return ctx, func() { stop(); cancel() }
	}
	return ctx, cancel
}

// isConfined reports whether a caller must not reach the machine: see Options.Tools.
func (s *Server) isConfined(g *Grant) bool { return s.o.Tools == 0 || g.Access < s.o.Tools }

// beat is how often a silent stream sends a sign of life, so that neither end, nor anything
// between them, takes the connection for dead.
const beat = 15 * time.Second

// firstBeat is when a stream that has said nothing yet begins. Until then an error can still be
// its status.
const firstBeat = 200 * time.Millisecond
