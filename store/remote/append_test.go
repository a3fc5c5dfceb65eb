package remote_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/remote"
	"github.com/coppice-dev/coppice/store/storetest"
)

// badLine stands between a client and a server, and does with each append what the test says,
// in order; all others get through.
type badLine struct {
	t testing.TB

	mu      sync.Mutex
	handler *remote.Handler
	plan    []incident
	late    func() // a request that is still on its way
}

func (b *badLine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if path.Base(r.URL.Path) != "append" || len(b.plan) == 0 {
		handler := b.handler
		b.mu.Unlock()
		handler.ServeHTTP(w, r)
		b.mu.Lock()
		return
	}
	do := b.plan[0]
	b.plan = b.plan[1:]
	do(b, w, r)
}

// run does what a request asks for, and returns the answer, which nobody has heard.
func (b *badLine) run(r *http.Request) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	b.handler.ServeHTTP(answer, r)
	return answer
}

// incident is what becomes of a request.
type incident func(b *badLine, w http.ResponseWriter, r *http.Request)

// comesThrough is an append as it should be.
func comesThrough(b *badLine, w http.ResponseWriter, r *http.Request) { b.handler.ServeHTTP(w, r) }

// isLost is a request that does not get to the server.
func isLost(*badLine, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// answerIsLost is a request that is done, and not answered.
func answerIsLost(b *badLine, _ http.ResponseWriter, r *http.Request) {
	b.run(r)
	panic(http.ErrAbortHandler)
}

// onlyTheEnd is a request that is done, and whose second answer is lost.
func onlyTheEnd(b *badLine, w http.ResponseWriter, r *http.Request) {
	data := b.run(r).Body.Bytes()
	_, _ = w.Write(data[:5+int(data[4])]) // the first frame: a kind, a length below 256, and a payload
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// isLate is a request that gets to the server after the next one was sent.
func isLate(b *badLine, _ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		b.t.Error(err)
	}
	late := r.Clone(context.Background())
	late.Body = io.NopCloser(bytes.NewReader(body))
	b.late = func() { b.run(late) }
	panic(http.ErrAbortHandler)
}

// overtaken is a request that the late one comes before.
func overtaken(b *badLine, w http.ResponseWriter, r *http.Request) {
	b.late()
	b.handler.ServeHTTP(w, r)
}

// failOver is a request after which another server takes over, which has only what was there
// before the append.
func failOver(what incident) incident {
	return func(b *badLine, w http.ResponseWriter, r *http.Request) {
		defer func() {
			served := inMemory()
			storetest.MustCreate(b.t, served, "a", num(0)).Close()
			b.handler = remote.NewHandler(served)
			panic(http.ErrAbortHandler)
		}()
		what(b, w, r)
	}
}

// Whatever becomes of the requests and answers of an append, its lines are in the log once, or
// the caller knows that they may not be.
func TestEveryEndOfAnAppend(t *testing.T) {
	t.Parallel()
	type plan = []incident
	for name, test := range map[string]struct {
		plan    plan
		another bool // another program appends first
		want    error
		lines   []string
	}{
		"comes through":                  {plan: plan{comesThrough}, lines: nums(0, 3)},
		"lost":                           {plan: plan{isLost}, lines: nums(0, 3)},
		"lost twice":                     {plan: plan{isLost, isLost}, lines: nums(0, 3)},
		"done, answer lost":              {plan: plan{answerIsLost}, lines: nums(0, 3)},
		"end told":                       {plan: plan{onlyTheEnd}, lines: nums(0, 3)},
		"lost, then done, answer lost":   {plan: plan{isLost, answerIsLost}, lines: nums(0, 3)},
		"lost, then end told":            {plan: plan{isLost, onlyTheEnd}, lines: nums(0, 3)},
		"late, overtakes the second try": {plan: plan{isLate, overtaken}, lines: nums(0, 3)},
		"another's, lost":                {plan: plan{isLost}, another: true, want: store.ErrConflict, lines: []string{num(0), num(7)}},
		"another's, refused":             {plan: plan{comesThrough}, another: true, want: store.ErrConflict, lines: []string{num(0), num(7)}},
		"end told, then gone":            {plan: plan{failOver(onlyTheEnd)}, want: store.ErrUnknown, lines: nums(0, 1)},
		"answer lost, then gone":         {plan: plan{failOver(answerIsLost)}, lines: nums(0, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served := inMemory()
			b := &badLine{t: t, handler: remote.NewHandler(served), plan: test.plan}
			st := open(t, listen(t, b))
			log := storetest.MustCreate(t, st, "a", num(0))
			end := storetest.MustEnd(t, log)
			if test.another {
				storetest.MustAppend(t, storetest.MustOpen(t, served, "a"), num(7))
			}
			_, err := log.Append(t.Context(), end, []byte(num(1)), []byte(num(2)))
			if !errors.Is(err, test.want) || test.want == nil && err != nil {
				t.Errorf("append: %v, want %v", err, test.want)
			}
			if len(b.plan) > 0 {
				t.Errorf("%d requests too few", len(b.plan))
			}
			wantLines(t, storetest.MustOpen(t, st, "a"), test.lines...)
		})
	}
}
