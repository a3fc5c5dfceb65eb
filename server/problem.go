package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/upkeep"
)

// Problem is an error in an HTTP answer (RFC 9457), with the members of home.ErrorInfo.
type Problem struct {
	Type   string    `json:"type"`             // urn:coppice: and the kind
	Title  string    `json:"title"`            // the status in words
	Status int       `json:"status"`           // that of the answer
	Detail string    `json:"detail"`           // what went wrong, where and why
	Kind   home.Kind `json:"kind"`             // what programs should decide by
	Field  string    `json:"field,omitempty"`  // the field of the request that is wrong
	Hint   string    `json:"hint,omitempty"`   // what to do about it
	Names  []string  `json:"names,omitempty"`  // which words of detail are names of fields, in their order
	Errors []Wrong   `json:"errors,omitempty"` // every field that is wrong, if there are several
	Result any       `json:"result,omitempty"` // what was done until then

	retryAfter string
}

// Wrong is a field of a request that is wrong.
type Wrong struct {
	Field   string `json:"field"`
	Message string `json:"message"` // what is wrong with it
}

func (p *Problem) Error() string { return p.Detail }

func problemf(status int, kind home.Kind, format string, args ...any) *Problem {
	return &Problem{Status: status, Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// statuses are the HTTP statuses of the kinds of errors.
var statuses = map[home.Kind]int{
	home.KindInvalid:      http.StatusUnprocessableEntity,
	home.KindPartial:      http.StatusUnprocessableEntity,
	home.KindNotFound:     http.StatusNotFound,
	home.KindExists:       http.StatusConflict,
	home.KindConflict:     http.StatusConflict,
	home.KindLocked:       http.StatusLocked,
	home.KindTooLarge:     http.StatusRequestEntityTooLarge,
	home.KindCorrupt:      http.StatusUnprocessableEntity,
	home.KindInterrupted:  http.StatusServiceUnavailable,
	home.KindOverflow:     http.StatusUnprocessableEntity,
	home.KindDenied:       http.StatusBadGateway, // the model's provider wants a key, not this server
	home.KindRefused:      http.StatusBadGateway,
	home.KindUnavailable:  http.StatusBadGateway,
	home.KindLimited:      http.StatusServiceUnavailable,
	home.KindForbidden:    http.StatusForbidden,
	home.KindUnauthorized: http.StatusUnauthorized,
	home.KindNoSpace:      http.StatusInsufficientStorage,
	home.KindUnknown:      http.StatusInternalServerError, // a status that no program takes as a reason to send the request again
}

// problem turns an error into the part that the caller may know. An unexpected error may
// contain anything, so it goes to the log only.
func (s *Server) problem(r *http.Request, err error) *Problem {
	ctx := r.Context()
	var p *Problem
	if !errors.As(err, &p) {
		info := home.DescribeIn(err, func(field string) string { return fieldIn(r, field) })
		status, known := statuses[info.Kind]
		if pinned := (*upkeep.PinnedError)(nil); errors.As(err, &pinned) {
			status, known = http.StatusConflict, true
		}
		p = &Problem{Status: status, Kind: info.Kind, Detail: s.withoutPaths(info.Message), Field: info.Field, Hint: s.withoutPaths(info.Hint), Names: info.Names}
		if errors.Is(err, fs.ErrPermission) { // the caller sees it too, but only the operator can fix it
			s.o.Log.WarnContext(ctx, "the server lacks a permission", "request", requestID(ctx), "error", err)
		}
		if !known {
			s.o.Log.ErrorContext(ctx, "an operation ended with an unexpected error", "request", requestID(ctx), "error", err)
			p.Status = http.StatusInternalServerError
			p.Detail = "the server could not do this; its log has the reason under request " + requestID(ctx)
			p.Hint = ""
		}
	}
	p.Type, p.Title = "urn:coppice:"+string(p.Kind), http.StatusText(p.Status)
	if p.Status == http.StatusLocked || p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		p.retryAfter = "1"
	}
	return p
}

// fieldIn returns where a request has a field.
func fieldIn(r *http.Request, field string) string {
	if field == "once" && r.Header.Get(idempotencyKey) != "" {
		return idempotencyKey
	}
	return field
}

// withoutPaths removes paths of the server's files from a text.
func (s *Server) withoutPaths(text string) string {
	for _, dir := range s.private() {
		text = strings.ReplaceAll(text, dir, "HOME")
	}
	return text
}

// private lists the directories that callers should not learn about.
func (s *Server) private() []string {
	dirs := []string{s.o.Home.Dir()}
	if dir, err := os.UserHomeDir(); err == nil && len(dir) > 1 {
		dirs = append(dirs, dir)
	}
	return dirs
}

// fail answers a request with an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := s.problem(r, err)
	if p.retryAfter != "" {
		w.Header().Set("Retry-After", p.retryAfter)
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="coppice"`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the caller may be gone
}

func forbidden(g *Grant, needs home.Access) *Problem {
	return problemf(http.StatusForbidden, home.KindForbidden, "this needs a token with %s access, and the token %s has %s", needs, g.Name, g.Access)
}
