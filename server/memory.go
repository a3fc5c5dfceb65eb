package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/home"
)

// memory is what requests and answers hold in memory at the same time, in bytes. What is passed
// on as it comes, such as an import, does not count.
//
// A body is counted as it arrives, and what it takes is doubled each time, so that nobody can
// reserve much more than they have sent. A request that has to wait keeps what it has. If two
// wait for each other, the first whose time is over gives way.
type memory struct {
	max, share int64 // of all requests, and of those with one token

	mu      sync.Mutex // guards what follows, and held of every caller
	used    int64
	changed chan struct{} // closed when something was given back
}

func newMemory(limit int64) *memory {
	return &memory{max: limit, share: limit / 4, changed: make(chan struct{})}
}

// waitForMemory is how long a request waits, in all, until others have given back what it needs.
// A client of the store hears nothing meanwhile, so it is shorter than the silence that one
// endures.
const waitForMemory = 5 * time.Second

// reservation is the memory that one request holds. It is for one goroutine at a time.
type reservation struct {
	of     *memory
	caller *caller
	size   int64
	waited time.Duration
}

type reservationKey struct{}

// reservationOf returns the reservation of a request.
func reservationOf(ctx context.Context) *reservation {
	return ctx.Value(reservationKey{}).(*reservation)
}

// reserve counts n more bytes, and waits for them if it must.
func (h *reservation) reserve(ctx context.Context, n int64) error {
	if h.size+n > h.of.share {
		return problemf(http.StatusRequestEntityTooLarge, home.KindTooLarge,
			"this would take more than %d bytes of memory, the most that those with one token may have", h.of.share)
	}
	changed, err := h.try(n)
	if err == nil {
		return nil
	}
	began, late := time.Now(), time.NewTimer(waitForMemory-h.waited)
	defer func() { late.Stop(); h.waited += time.Since(began) }()
	for ; err != nil; changed, err = h.try(n) {
		select {
		case <-changed:
		case <-late.C:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// try counts n more bytes, or returns why not and what to wait for.
func (h *reservation) try(n int64) (changed <-chan struct{}, err error) {
	m := h.of
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case h.caller.held+n > m.share:
		return m.changed, tooMany("the requests with this token hold too much memory")
	case m.used+n > m.max:
		p := tooMany("the requests of all callers hold too much memory")
		p.Status = http.StatusServiceUnavailable
		return m.changed, p
	}
	h.size += n
	h.caller.held += n
	m.used += n
	return nil, nil
}

// resize makes the request hold n bytes in all.
func (h *reservation) resize(ctx context.Context, n int64) error {
	if n <= h.size {
		h.release(h.size - n)
		return nil
	}
	return h.reserve(ctx, n-h.size)
}

// end releases everything.
func (h *reservation) end() { h.release(h.size) }

// release gives n bytes back.
func (h *reservation) release(n int64) {
	if n == 0 {
		return
	}
	m := h.of
	m.mu.Lock()
	defer m.mu.Unlock()
	h.caller.held -= n
	m.used -= n
	h.size -= n
	close(m.changed)
	m.changed = make(chan struct{})
}

// firstPiece is how much is counted for a body before anything of it is there.
const firstPiece = 4 << 10

// slowest is how many bytes of a body a caller has to send in a second, on average. One who sends
// a byte now and then wants to keep a connection busy.
const slowest = 1 << 10

// readBody returns the body of a request, which is at most limit bytes long.
func (h *reservation) readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body := http.MaxBytesReader(w, r.Body, limit)
	var all []byte
	for began := time.Now(); ; {
		if len(all) == cap(all) {
			more := int64(max(firstPiece, len(all)))
			if r.ContentLength >= 0 { // it is not longer; one byte more is for its end
				more = max(min(more, r.ContentLength+1-int64(len(all))), 1)
			}
			if err := h.reserve(r.Context(), more); err != nil {
				return nil, err
			}
			grown := make([]byte, len(all), int64(len(all))+more)
			copy(grown, all)
			all = grown
		}
		n, err := body.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		var tooLarge *http.MaxBytesError
		switch {
		case err == io.EOF:
			return all, nil
		case errors.As(err, &tooLarge):
			return nil, problemf(http.StatusRequestEntityTooLarge, home.KindTooLarge, "the body is larger than %d bytes, the most that this operation takes", tooLarge.Limit)
		case err != nil, time.Since(began) > patience+time.Duration(len(all)/slowest)*time.Second:
			return nil, problemf(http.StatusBadRequest, home.KindInvalid, "the body did not arrive whole")
		}
	}
}

// valueWeight is about how many bytes a value takes when it is decoded, beside its text. The
// three bytes of an empty object in a list become a hundred.
const valueWeight = 128

// values returns how many values a JSON text has, or a few more.
func values(text []byte) (n int64) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			quoted = !quoted
		case '\\':
			i++ // it is in a string, or the text is no JSON
		case ',', ':', '{', '[':
			if !quoted {
				n++
			}
		}
	}
	return n
}
