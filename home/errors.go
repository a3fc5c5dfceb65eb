package home

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/vfs"
)

// Kind says in a word what went wrong. KindOf is the one table from errors to what a face
// reports: the command line turns kinds into exit codes, and the server into status codes.
type Kind string

// The kinds. Faces promise them to their users, so they are never renamed.
const (
	KindError       Kind = "error"       // none of the others
	KindInvalid     Kind = "invalid"     // the request makes no sense; sending it again will not help
	KindPartial     Kind = "partial"     // some of it was done
	KindNotFound    Kind = "not_found"   // there is no such session, entry or home
	KindExists      Kind = "exists"      // it is there already, and was left alone
	KindTooLarge    Kind = "too_large"   // a limit of the home was met; nothing was written
	KindLocked      Kind = "locked"      // another writer holds it; try again later
	KindCorrupt     Kind = "corrupt"     // bytes that cannot be read
	KindConflict    Kind = "conflict"    // another writer came first; look and try again
	KindInterrupted Kind = "interrupted" // the caller no longer waits for the answer
	KindForbidden   Kind = "forbidden"   // the caller, or this program, may not do this
	KindNoSpace     Kind = "no_space"    // the disk is full; try again when there is room
	KindUnknown     Kind = "unknown"     // it may have been done or not; look before you try again

	KindUnauthorized Kind = "unauthorized" // the server wants a token that it knows

	KindDenied      Kind = "denied"      // the model's provider wants a key, or another one
	KindLimited     Kind = "limited"     // the provider wants fewer requests; ask again later
	KindOverflow    Kind = "overflow"    // the conversation is too long for the model
	KindUnavailable Kind = "unavailable" // the provider or the server did not answer, or not to the end; ask again
	KindRefused     Kind = "refused"     // the provider rejects the request
)

// ErrPartial means that some of several things were done and others were not.
var ErrPartial = errors.New("not everything could be done")

// ErrIncomplete means that content of a conversation is missing. A reader gets the rest
// first; an export that should be able to restore the conversation writes no file.
var ErrIncomplete = errors.New("content is missing")

// ErrRemoved means that a conversation was removed while a chat had it open.
var ErrRemoved = errors.New("this conversation was removed")

// KindOf returns the kind of an error. If an error matches several kinds, the first one here
// counts: a conflict in a damaged session is a conflict.
func KindOf(err error) Kind {
	var query *index.QueryError
	var answer *provider.Error
	sent, isSent := errors.AsType[*ErrorInfo](err)
	switch {
	case err == nil:
		return ""
	case isSent:
		return sent.Kind
	case errors.Is(err, session.ErrUnknown): // whatever caused it: most kinds mean that nothing was written
		return KindUnknown
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return KindInterrupted
	case errors.Is(err, store.ErrUnauthorized):
		return KindUnauthorized
	case errors.Is(err, errForbidden):
		return KindForbidden
	case errors.Is(err, ErrPartial), errors.Is(err, ErrIncomplete):
		return KindPartial
	case errors.As(err, &query):
		return KindInvalid
	case errors.Is(err, provider.ErrDenied):
		return KindDenied
	case errors.Is(err, provider.ErrLimited):
		return KindLimited
	case errors.Is(err, provider.ErrOverflow):
		return KindOverflow
	case errors.Is(err, provider.ErrUnavailable), errors.Is(err, provider.ErrBroken), errors.Is(err, store.ErrUnavailable):
		return KindUnavailable
	case errors.As(err, &answer):
		return KindRefused
	case errors.Is(err, session.ErrConflict), errors.Is(err, session.ErrReplaced):
		return KindConflict
	case errors.Is(err, session.ErrLocked):
		return KindLocked
	case errors.Is(err, session.ErrCorrupt):
		return KindCorrupt
	case errors.Is(err, session.ErrNotExist), errors.Is(err, ErrRemoved):
		return KindNotFound
	case errors.Is(err, session.ErrInvalid), errors.Is(err, errors.ErrUnsupported):
		return KindInvalid
	case errors.Is(err, session.ErrExist):
		return KindExists
	case errors.Is(err, session.ErrTooLarge):
		return KindTooLarge
	case vfs.NoSpace(err):
		return KindNoSpace
	case errors.Is(err, fs.ErrPermission):
		return KindForbidden
	}
	return KindError
}

// unread is the error of an operation that has written and then cannot read what it is to answer.
// Whatever the reason is, the operation was not refused: asked again, it would be done twice.
func unread(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &session.Error{
		Op: op, Name: name, Kind: session.ErrUnknown, Err: fmt.Errorf("it was written and could not be read back: %v", err),
		Hint: "look whether it is there before you try again",
	}
}

// HintOf returns what the reader of an error can do about it, or "".
func HintOf(err error) string {
	hint := hintIn(err)
	switch {
	case hint != "":
	case vfs.NoDescriptors(err):
		hint = "close other programs, or let this one open more files: ulimit -n 256"
	case vfs.NoSpace(err):
		hint = "make room on the disk of the sessions, and try again"
	case vfs.CannotLock(err):
		hint = "the file system cannot lock files: keep the sessions on another one"
	}
	return hint
}

func hintIn(err error) string {
	switch e := err.(type) {
	case *ErrorInfo:
		return e.Hint
	case *session.Error:
		return e.Hint
	case *provider.Error:
		return e.Hint
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if hint := hintIn(part); hint != "" {
				return hint
			}
		}
	case interface{ Unwrap() error }:
		return hintIn(e.Unwrap())
	}
	return ""
}

// ErrorInfo is an error as data: the form that it has in results, events and notices. In the
// process in which it happened it still wraps the error itself, for errors.Is.
type ErrorInfo struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`         // what went wrong, where and why, on one line
	Field   string `json:"field,omitempty"` // the field of the request that is wrong: see FieldError
	Hint    string `json:"hint,omitempty"`
	// Names are the names of fields in the message, in their order, for faces that have other
	// names for them.
	Names []string `json:"names,omitempty"`

	err error // nil if it came as JSON
}

// Error returns the text of the error, with the hint.
func (e *ErrorInfo) Error() string {
	switch {
	case e.err != nil:
		return e.err.Error()
	case e.Hint != "":
		return e.Message + " (" + e.Hint + ")"
	}
	return e.Message
}

func (e *ErrorInfo) Unwrap() error { return e.err }

// Is makes an error that came as JSON match the sentinel of its kind, such as
// session.ErrNotExist.
func (e *ErrorInfo) Is(target error) bool {
	return e.err == nil && target != nil && sentinels[e.Kind] == target
}

// As makes the error of a field that came as JSON a *FieldError again.
func (e *ErrorInfo) As(target any) bool {
	wrong, ok := target.(**FieldError)
	if ok = ok && e.err == nil && len(e.Names) > 0; ok {
		*wrong = fieldError(e.Field, e.Message, e.Names)
	}
	return ok
}

// fieldError returns the error of a field whose text names fields, in this order.
func fieldError(field, text string, names []string) *FieldError {
	e := &FieldError{Field: field}
	for _, name := range names {
		before, after, ok := cutWord(text, name)
		if !ok {
			break
		}
		e.text += "%s{" + name + "}"
		e.args = append(e.args, before)
		text = after
	}
	e.text += "%s"
	e.args = append(e.args, text)
	return e
}

// cutWord cuts a text around a word of it that is no part of a longer one.
func cutWord(text, word string) (before, after string, ok bool) {
	isPart := func(c byte) bool {
		return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	for at := 0; ; at++ {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return text, "", false
		}
		at += i
		before, after = text[:at], text[at+len(word):]
		if (before == "" || !isPart(before[len(before)-1])) && (after == "" || !isPart(after[0])) {
			return before, after, true
		}
	}
}

// sentinels are the errors that programs look for, by their kinds.
var sentinels = map[Kind]error{
	KindInvalid: session.ErrInvalid, KindPartial: ErrPartial, KindNotFound: session.ErrNotExist, KindExists: session.ErrExist,
	KindTooLarge: session.ErrTooLarge, KindLocked: session.ErrLocked, KindCorrupt: session.ErrCorrupt, KindConflict: session.ErrConflict,
	KindNoSpace: syscall.ENOSPC, KindForbidden: fs.ErrPermission, KindUnauthorized: store.ErrUnauthorized,
}

// described returns an error as data, or nil if there is none.
func described(err error) *ErrorInfo {
	if err == nil {
		return nil
	}
	info := Describe(err)
	info.err = err
	return &info
}

// Describe takes an error apart. The text of an error includes its hint, for programs that
// only print it; Message does not.
func Describe(err error) ErrorInfo {
	if err == nil {
		return ErrorInfo{}
	}
	if info, ok := err.(*ErrorInfo); ok {
		return *info
	}
	info := ErrorInfo{
		Kind: KindOf(err), Hint: HintOf(err),
		Message: strings.ReplaceAll(strings.TrimSpace(messageOf(err)), "\n", "; "),
	}
	if wrong, ok := errors.AsType[*FieldError](err); ok {
		info.Field = wrong.Field
		wrong.Words(func(field string) string {
			info.Names = append(info.Names, field)
			return field
		})
	}
	return info
}

// DescribeIn is Describe in the words of a face: call returns what the face calls a field of the
// request.
func DescribeIn(err error, call func(field string) string) ErrorInfo {
	info := Describe(err)
	if wrong, ok := errors.AsType[*FieldError](err); ok {
		info.Message = strings.Replace(info.Message, wrong.Error(), wrong.Words(call), 1)
	}
	info.Names = slices.Clone(info.Names)
	for i := range info.Names {
		info.Names[i] = call(info.Names[i])
	}
	if info.Field != "" {
		info.Field = call(info.Field)
	}
	return info
}

// messageOf returns the text of an error without the hint that HintOf returns.
func messageOf(err error) string {
	var inner error
	switch e := err.(type) {
	case *ErrorInfo:
		if e.err == nil {
			return e.Message
		}
	case *session.Error:
		plain := *e
		plain.Hint = ""
		return plain.Error()
	case interface{ Unwrap() []error }:
		return joinedMessage(err, e.Unwrap())
	case interface{ Unwrap() error }:
		inner = e.Unwrap()
	}
	if inner != nil {
		// A wrapping error is usually its own words followed by the inner error.
		if before, ok := strings.CutSuffix(err.Error(), inner.Error()); ok {
			return before + messageOf(inner)
		}
	}
	return err.Error()
}

// joinedMessage is messageOf for errors.Join. HintOf returns the hint of the first error that
// has one, so the others keep theirs in the text.
func joinedMessage(err error, parts []error) string {
	texts, plain := make([]string, len(parts)), make([]string, len(parts))
	hinted := false
	for i, part := range parts {
		texts[i] = part.Error()
		if plain[i] = texts[i]; !hinted {
			plain[i] = messageOf(part)
		}
		hinted = hinted || HintOf(part) != ""
	}
	if strings.Join(texts, "\n") != err.Error() {
		return err.Error() // it was joined in some other way
	}
	return strings.Join(plain, "\n")
}

// FieldError means that a field of a request is wrong. It matches session.ErrInvalid.
type FieldError struct {
	Field string // its JSON name; for a field of a field, window.cut_to
	text  string // a format in which the names of fields are in braces
	args  []any
}

// wrong returns a FieldError. The names of fields in the text are in braces.
func wrong(field, text string, args ...any) error { return &FieldError{field, text, args} }

// wrongAs names the field of a request that a lower package refuses.
func wrongAs(field string, err error) error {
	if rest, ok := strings.CutPrefix(err.Error(), field+" "); ok {
		return wrong(field, "{"+field+"} %s", rest)
	}
	return wrong(field, "{"+field+"}: %w", err)
}

// within returns an error about a field of a field as one about the whole request.
func within(parent string, err error) error {
	e, ok := err.(*FieldError)
	if !ok {
		return err
	}
	return wrong(parent+"."+e.Field, strings.ReplaceAll(e.text, "{", "{"+parent+"."), e.args...)
}

// exclude is the error of a request with two fields that exclude each other.
func exclude(one, other string) error {
	return wrong(other, "{"+one+"} and {"+other+"} exclude each other; give one of them")
}

// notNegative returns the error of a field whose value is negative, or nil.
func notNegative[N ~int | ~int64](field string, n N) error {
	if n >= 0 {
		return nil
	}
	return wrong(field, "{"+field+"} is %v; it must not be negative", n)
}

// allOrMore returns the error of a field that says how many, in which -1 means all of them, or
// nil. Any other negative number is a mistake, and must not become everything.
func allOrMore(field string, n int) error {
	if n >= -1 {
		return nil
	}
	return wrong(field, "{"+field+"} is %d; it must be -1, for all of them, or more", n)
}

// Error returns the text of the error, with the JSON names of fields.
func (e *FieldError) Error() string { return e.Words(func(field string) string { return field }) }

// Words returns the text of the error in the words of a face: call returns what the face
// calls a field, such as --keep-tokens for keep_tokens.
func (e *FieldError) Words(call func(field string) string) string {
	var format strings.Builder
	for rest := e.text; rest != ""; {
		before, braced, _ := strings.Cut(rest, "{")
		format.WriteString(before)
		name, after, ok := strings.Cut(braced, "}")
		if ok {
			format.WriteString(strings.ReplaceAll(call(name), "%", "%%"))
		}
		rest = after
	}
	return fmt.Errorf(format.String(), e.args...).Error()
}

// Unwrap returns the error of the lower package that refuses the field, if there is one.
func (e *FieldError) Unwrap() error {
	for _, arg := range e.args {
		if err, ok := arg.(error); ok {
			return err
		}
	}
	return nil
}

// Is makes a FieldError match session.ErrInvalid.
func (e *FieldError) Is(target error) bool { return target == session.ErrInvalid }

// AmbiguousError means that a name matches several sessions or entries. It matches
// session.ErrInvalid.
type AmbiguousError struct {
	What  string   // "session", "entry", …
	Given string   // what was typed
	Found []string // what it may mean: short names, with what each is about
	More  int      // how many others
}

func (e *AmbiguousError) Error() string {
	more := ""
	if e.More > 0 {
		more = fmt.Sprintf(" and %d more", e.More)
	}
	return fmt.Sprintf("%s %q is ambiguous: %s%s; type one of these, or more of the id", e.What, e.Given, strings.Join(e.Found, ", "), more)
}

// Is makes an AmbiguousError match session.ErrInvalid.
func (e *AmbiguousError) Is(target error) bool { return target == session.ErrInvalid }

// TrashedError means that a session is in the trash, from which it can be restored. It
// matches session.ErrNotExist.
type TrashedError struct {
	Session string
}

func (e *TrashedError) Error() string { return "it is in the trash" }

// Is makes a TrashedError match session.ErrNotExist.
func (e *TrashedError) Is(target error) bool { return target == session.ErrNotExist }

// forCaller rewords an error of a session for a caller that does not hold the session. A
// caller of the floor cannot refresh a session after a conflict, only ask again, so the hint
// says that. And if a reason follows, "invalid argument" in front of it is dropped.
func forCaller(op, name string, err error) error {
	if conflict, ok := errors.AsType[*session.ConflictError](err); ok {
		return &session.Error{
			Op: op, Name: name, Kind: session.ErrConflict,
			Err:  fmt.Errorf("another program wrote to it at the same time, and it now ends at entry %s; nothing was changed", conflict.Theirs),
			Hint: "try again",
		}
	}
	e, ok := err.(*session.Error)
	if !ok {
		return err
	}
	plain := *e
	if e.Kind == session.ErrInvalid && e.Err != nil {
		plain.Kind, plain.Err = nil, session.Invalidf("%w", e.Err)
	}
	if e.Op == "update" { // an implementation detail that does not help the caller
		plain.Op = op
	}
	return &plain
}
