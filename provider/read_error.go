package provider

import (
	"strings"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// ReadError returns the error that a provider answered with: its HTTP status, or 0 for
// an error within a stream, and the body. All providers put it into a member "error";
// the names inside differ.
func ReadError(provider string, status int, body []byte) *Error {
	e := &Error{Provider: provider, Status: status}
	if list, ok := rawjson.Elements(body); ok && len(list) > 0 { // Gemini's streams are lists
		body = list[0]
	}
	o := rawjson.MembersOf(body)
	inner := rawjson.MembersOf(o.Get("error"))
	if inner == nil {
		inner = o // some servers have it at the top
	}
	for _, member := range []string{"code", "status", "type"} {
		if code := inner.Str(member); code != "" && code != "error" {
			e.Code = code
			break
		}
	}
	e.Message, e.Param = inner.Str("message"), inner.Str("param")
	if e.Message == "" {
		e.Message = o.Str("error") // Ollama's is a text
	}
	if e.Message == "" && o == nil {
		e.Message = string(body)
	}
	e.Message = strings.Join(strings.Fields(strings.ToValidUTF8(e.Message, "\uFFFD")), " ")
	e.Kind = kindOf(status, inner.Str("type")+" "+e.Code, e.Message)
	return e
}

// overflows are words by which providers and servers say that a conversation is
// too long.
var overflows = []string{
	"context_length_exceeded",             // OpenAI and compatible servers
	"maximum context length",              // OpenAI, vLLM
	"context window",                      // Responses, LM Studio
	"prompt is too long",                  // Anthropic
	"exceed context limit",                // Anthropic, of the prompt and the answer together
	"request_too_large",                   // Anthropic, of bytes
	"exceeds the maximum number of token", // Gemini
	"exceed_context_size",                 // llama.cpp
	"exceeds the available context size",  // llama.cpp
	"exceeds the context length",          // LM Studio, Ollama
	"input is too long",                   // Bedrock
}

// kindOf classifies an error. The words count more than the status: gateways change the
// status, and an error within a stream has none.
func kindOf(status int, codes, message string) error {
	codes = strings.ToLower(codes)
	has := func(text string, words ...string) bool {
		for _, word := range words {
			if strings.Contains(text, word) {
				return true
			}
		}
		return false
	}
	limited := status == 429 || has(codes, "rate_limit", "resource_exhausted", "insufficient_quota", "too_many_requests")
	switch {
	case !limited && (status == 413 || has(codes, overflows...) || has(strings.ToLower(message), overflows...)):
		return ErrOverflow
	case limited:
		return ErrLimited
	case status == 401 || status == 403 || has(codes, "authentication", "permission", "unauthenticated", "invalid_api_key"):
		return ErrDenied
	case status >= 500 || status == 408 || status == 425 ||
		has(codes, "overloaded", "api_error", "server_error", "unavailable", "internal", "timeout", "deadline_exceeded"):
		return ErrUnavailable
	case status >= 400 || has(codes, "invalid", "not_found", "failed_precondition", "unsupported"):
		return session.ErrInvalid
	}
	return ErrUnavailable
}

// Temporary reports whether the same request may be answered later.
func (e *Error) Temporary() bool {
	switch e.Kind {
	case ErrUnavailable, ErrBroken:
		return true
	case ErrLimited:
		return !strings.Contains(strings.ToLower(e.Code), "insufficient_quota") // waiting does not help
	}
	return false
}
