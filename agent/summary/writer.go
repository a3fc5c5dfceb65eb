package summary

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/internal/gate"
	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/digest"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// writer asks a model for one summary.
type writer struct {
	ctx       context.Context
	model     provider.Model
	info      provider.Info
	o         Options
	counter   window.Counter
	task      digest.Task // Turns and Previous change from piece to piece
	window    int
	answer    int    // how many tokens an answer may have, thinking included
	limit     int    // how many tokens a piece may have, once the provider found one too large
	announced string // the entry that announced the requests, or ""
	sum       Summary
}

const (
	// thinkingRoom is what an answer may have beyond the summary, for models that think
	// first. Their thinking counts as a part of the answer.
	thinkingRoom = 8192
	// minRoom is how many tokens of the conversation must at least fit into a request.
	minRoom = 128
)

func newWriter(ctx context.Context, model provider.Model, kind digest.Kind, o Options) *writer {
	w := &writer{ctx: ctx, model: model, info: model.Info(), o: o, counter: o.Counter}
	if w.window = w.info.Window; w.window <= 0 {
		w.window = window.DefaultWindow // if it is too large, the provider says so, and smaller pieces are tried
	}
	if w.o.Files == nil {
		w.o.Files = KnownFiles
	}
	if w.counter == nil {
		w.counter = window.Estimate(w.info.Provider, w.info.Model)
	}
	most := o.MaxTokens
	if most <= 0 {
		most = min(defaultMaxTokens, w.window/8)
	}
	if w.info.MaxOutput > 0 {
		most = min(most, w.info.MaxOutput)
	}
	w.o.MaxTokens = most
	// Models do not count well, and the files get what is left, so we ask for less.
	w.task = digest.Task{Kind: kind, MaxTokens: most - most/4, Instructions: strings.TrimSpace(o.Instructions)}
	w.answer = max(most, min(most+thinkingRoom, w.window/4))
	if w.info.MaxOutput > 0 {
		w.answer = min(w.answer, w.info.MaxOutput)
	}
	return w
}

// failed returns the costs of a summary that could not be written.
func (w *writer) failed(err error) (*Summary, error) {
	return &Summary{Log: w.sum.Log, Requests: w.sum.Requests}, fmt.Errorf("writing a %s: %w", w.task.Kind, err)
}

// write returns a summary of entries, with the files.
func (w *writer) write(entries []session.Entry) (string, error) {
	s := serialise(entries, w.o.Files)
	if len(s.units) == 0 {
		return "", ErrNothing
	}
	w.sum.Files, w.task.Previous = s.files, s.previous
	if w.counter.CountText(s.previous) > w.window/4 { // another program's: it is too long to be updated
		s.units = append([][]digest.Turn{{{Who: digest.Note, Text: s.previous}}}, s.units...)
		w.task.Previous = ""
	}
	w.task.Current, _ = window.Shorten(w.task.Current, w.window/8, w.counter.CountText)
	for left := s.units; len(left) > 0; {
		room := w.tokensThatFit()
		if room < minRoom {
			return "", fmt.Errorf("a window of %d tokens is too small for a summary of %d tokens: %w", w.window, w.o.MaxTokens, session.ErrInvalid)
		}
		turns, rest := w.piece(left, room)
		task := w.task
		task.Turns, task.More = turns, len(rest) > 0
		text, err := w.ask(&task)
		switch {
		case err == nil:
			w.task.Previous, left = text, rest
		case errors.Is(err, provider.ErrOverflow) && w.halve(turns):
			// Nothing was read, so the same turns come again, in smaller pieces.
		default:
			return "", err
		}
	}
	text := w.task.Previous
	if !s.files.isEmpty() {
		text += s.files.text(w.o.MaxTokens-w.counter.CountText(text), w.counter.CountText)
	}
	return text, nil
}

// tokensThatFit returns how many tokens of the conversation fit into the next request. Counts may
// be estimates, so a tenth stays free.
func (w *writer) tokensThatFit() int {
	w.task.More = true // this makes the text longest
	free := w.window - w.answer - w.counter.CountText(w.task.Overhead())
	if room := free - free/10; w.limit == 0 || room < w.limit {
		return room
	}
	return w.limit
}

// halve makes the pieces smaller than one that the provider found too large. It reports
// whether that can help.
func (w *writer) halve(turns []digest.Turn) bool {
	w.limit = w.counter.CountText(digest.Text(turns)) / 2
	return w.limit >= minRoom
}

// unlimited is how many bytes fit if the provider sets no limit.
const unlimited = -1

// bytes returns how many bytes of JSON fit into the next request.
func (w *writer) bytes() int {
	if w.info.MaxBytes <= 0 {
		return unlimited
	}
	return max(0, w.info.MaxBytes*9/10-len(rawjson.Quote(w.task.Overhead())))
}

// piece returns the turns of the next request, and what is left for later ones. It takes
// whole units as long as they fit. From a unit that does not fit even alone, it takes the
// turns that do, but at least one, without its middle if necessary.
func (w *writer) piece(units [][]digest.Turn, room int) (turns []digest.Turn, rest [][]digest.Turn) {
	bytes := w.bytes()
	fits := func(more []digest.Turn) bool {
		text := digest.Text(more)
		tokens, size := w.counter.CountText(text), 0
		if bytes != unlimited {
			size = len(rawjson.Quote(text))
		}
		if tokens > room || bytes != unlimited && size > bytes {
			return false
		}
		turns, room, bytes = append(turns, more...), room-tokens, bytes-size
		return true
	}
	for i, unit := range units {
		if fits(unit) {
			continue
		}
		if i > 0 {
			return turns, units[i:]
		}
		for k := range unit {
			if fits(unit[k : k+1]) {
				continue
			}
			if k == 0 {
				turns, k = []digest.Turn{w.shortened(unit[0], room, bytes)}, 1
			}
			if k < len(unit) {
				return turns, append([][]digest.Turn{unit[k:]}, units[1:]...)
			}
			return turns, units[1:]
		}
	}
	return turns, nil
}

// shortened leaves out the middle of a turn that does not fit a request.
func (w *writer) shortened(t digest.Turn, room, bytes int) digest.Turn {
	size := func(text string) int {
		all := digest.Text([]digest.Turn{{Who: t.Who, Name: t.Name, Text: text}})
		tokens := w.counter.CountText(all)
		if bytes > 0 {
			tokens = max(tokens, len(rawjson.Quote(all))*room/bytes)
		}
		return tokens
	}
	t.Text, _ = window.Shorten(t.Text, room, size)
	return t
}

// ask sends a request and returns the answer, if it is usable.
func (w *writer) ask(task *digest.Task) (string, error) {
	if err := w.ctx.Err(); err != nil {
		return "", context.Cause(w.ctx)
	}
	if err := w.announce(); err != nil {
		return "", err
	}
	r := task.Request()
	r.MaxTokens = w.answer
	response, err := w.respond(r)
	if err != nil {
		return "", err
	}
	text, err := usable(response)
	if err != nil || task.Kind == digest.Title {
		return text, err
	}
	return w.checked(text)
}

// announce announces the requests, before the first one.
func (w *writer) announce() error {
	if w.o.Announce == nil || w.announced != "" {
		return nil
	}
	w.announced = session.NewID()
	return w.o.Announce(session.Entry{ID: w.announced, Type: session.TypeCustom, Custom: &session.CustomEntry{
		CustomType: session.CustomAsking, Data: map[string]any{"for": string(w.task.Kind), "provider": w.info.Provider, "model": w.info.Model},
	}})
}

// respond asks the model and waits for it, but not longer than the context: a model may not
// notice that the context has ended. It records every attempt.
func (w *writer) respond(r *provider.Request) (*provider.Response, error) {
	var err error
	if r.Encoded, err = w.model.Encode(r); err != nil {
		return nil, err
	}
	var mu sync.Mutex // over is set when respond no longer waits
	over, begun := false, time.Now()
	emit := func(e provider.Event) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if e.Retry != nil {
			w.note(r, begun, &session.MessageEntry{Usage: e.Retry.Usage}, e.Retry.Reason)
			begun = time.Now().Add(e.Retry.After)
		}
		if w.o.Emit != nil {
			w.o.Emit(e)
		}
	}
	type outcome struct {
		response *provider.Response
		err      error
	}
	got, err := gate.Await(w.ctx, func() (outcome, error) {
		response, err := provider.Respond(w.ctx, w.model, r, emit)
		return outcome{response, err}, nil
	})
	if err != nil {
		got.err = context.Cause(w.ctx)
	}
	mu.Lock()
	defer mu.Unlock()
	over = true
	var m *session.MessageEntry
	if got.response != nil {
		m = got.response.Message
	}
	reason := ""
	if got.err != nil {
		reason = got.err.Error()
	}
	w.note(r, begun, m, reason)
	return got.response, got.err
}

// note records a request: its error, if it was not answered, and its cost, if that is known.
func (w *writer) note(r *provider.Request, begun time.Time, m *session.MessageEntry, reason string) {
	w.sum.Requests++
	sum := sha256.Sum256(r.Encoded.Body)
	data := map[string]any{ // see agent.Record
		"for": string(w.task.Kind), "provider": w.info.Provider, "model": w.info.Model, "api": w.info.API, "asked": w.announced, "error": reason,
		"sha256": hex.EncodeToString(sum[:]), "bytes": len(r.Encoded.Body), "ms": max(0, time.Since(begun).Milliseconds()),
	}
	maps.DeleteFunc(data, func(_ string, v any) bool { return v == "" })
	w.sum.Log = append(w.sum.Log, session.Custom(session.CustomRequest, data))
	if m != nil && m.Usage != nil {
		bill := session.NewUsage(cmp.Or(m.Provider, w.info.Provider), cmp.Or(m.Model, w.info.Model), m.ResponseID, *m.Usage)
		w.sum.Log = append(w.sum.Log, session.Entry{Type: session.TypeCustom, Custom: bill})
	}
}
