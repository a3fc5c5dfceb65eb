package transcript

import (
	"context"
	"encoding/json"
)

// Resumer is a Sink that remembers where a reader stopped, for formats whose files only
// grow. A reader that can resume asks for it with a type assertion.
type Resumer interface {
	Sink
	// Saved returns what an earlier reading of the file left: the position and
	// the number of lines before it, and the reader's state. State is nil if the
	// file is to be read from its beginning.
	Saved() (pos, lines int64, state json.RawMessage)
	// Save stores that for the next reading. Bytes after the position are not kept now:
	// they will be read again.
	Save(pos, lines int64, state json.RawMessage)
}

// keptSpace is where the positions of bytes given to Keep begin, far above those
// of any file.
const keptSpace = 1 << 60

// step is one call of a reader on its way to the writer: the beginning of a
// conversation, or a record.
type step struct {
	begin *Conversation
	rec   *Record
	// How far the file, and the bytes for Keep, must be sealed.
	end, keptEnd int64
}

// parcel is a row of steps that may be written, and the chunks that were sealed
// since the last one.
type parcel struct {
	steps  []step
	chunks []*chunk
}

// sink gets the records when a file is imported. It passes them on
// to a writer, which works at the same time unless write is set.
type sink struct {
	ctx     context.Context
	keeper  *keeper // of the file
	rows    *keeper // of the bytes for Keep
	out     chan *parcel
	write   func(*parcel) error // writes at once, for small files; nil: a goroutine reads from out
	stopped chan struct{}       // closed when the writer has ended; failed is then set
	failed  error

	steps   []step // not passed on yet
	passed  int64  // how much was sealed when steps were passed on last
	current string
	order   order
	tallies map[string]*tally
	clean   func([]byte) []byte // or nil

	saved, save struct {
		pos, lines int64
		state      json.RawMessage
	}
}

var _ Resumer = (*sink)(nil)

func (s *sink) Saved() (pos, lines int64, state json.RawMessage) {
	return s.saved.pos, s.saved.lines, s.saved.state
}

func (s *sink) Save(pos, lines int64, state json.RawMessage) {
	s.save.pos, s.save.lines, s.save.state = pos, lines, state
}

func (s *sink) Begin(c Conversation) error {
	if c.ID == "" {
		return errNoID
	}
	if err := s.addAll(s.order.rest()); err != nil {
		return err
	}
	s.current = c.ID
	return s.add(step{begin: &c})
}

func (s *sink) Add(r Record) error {
	if r.Parent != "" && len(s.order.held) == 0 {
		return s.record(&r)
	}
	return s.addAll(s.order.next(r))
}

func (s *sink) addAll(records []Record) error {
	for i := range records {
		if err := s.record(&records[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *sink) record(r *Record) error {
	st := step{rec: r}
	for _, span := range r.From {
		if span.Pos < keptSpace {
			st.end = max(st.end, span.Pos+span.Len)
		} else {
			st.keptEnd = max(st.keptEnd, span.Pos+span.Len)
		}
	}
	return s.add(st)
}

func (s *sink) Keep(_ string, raw []byte) (Span, error) {
	if s.clean != nil {
		raw = s.clean(raw)
	}
	return Span{Pos: s.rows.piece(raw), Len: int64(len(raw))}, nil
}

func (s *sink) Count(what, became string, n int) { s.tally().count(what, became, n) }

func (s *sink) Problem(p Problem) { s.tally().problem(p) }

func (s *sink) tally() *tally {
	t := s.tallies[s.current]
	if t == nil {
		t = &tally{}
		s.tallies[s.current] = t
	}
	return t
}

// add takes a step, and passes steps on when more of the source was sealed.
func (s *sink) add(st step) error {
	s.steps = append(s.steps, st)
	more := s.keeper.sealed+s.rows.sealed > s.passed
	if more || len(s.steps) >= maxSteps && s.ready(&s.steps[0]) {
		return s.pass()
	}
	return nil
}

// maxSteps is how many steps wait at most when they could be passed on.
const maxSteps = 4096

func (s *sink) ready(st *step) bool {
	return st.end <= s.keeper.sealed && st.keptEnd <= s.rows.sealed
}

// pass gives the writer the steps whose bytes are sealed.
func (s *sink) pass() error {
	s.passed = s.keeper.sealed + s.rows.sealed
	n := 0
	for n < len(s.steps) && s.ready(&s.steps[n]) {
		n++
	}
	p := &parcel{steps: s.steps[:n:n], chunks: append(s.keeper.chunks, s.rows.chunks...)}
	s.steps = append([]step(nil), s.steps[n:]...)
	s.keeper.chunks, s.rows.chunks = nil, nil
	if s.write != nil {
		if s.failed == nil {
			s.failed = s.write(p)
		}
		return s.failed
	}
	select {
	case s.out <- p:
		return nil
	case <-s.stopped:
		return s.failed
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// finish passes on what is left when the reader is done. Bytes that a resumable reader
// has not used yet are not kept.
func (s *sink) finish() error {
	if err := s.addAll(s.order.rest()); err != nil {
		return err
	}
	end := int64(1 << 62)
	if s.save.state != nil {
		end = s.save.pos
	}
	s.keeper.finish(end)
	s.rows.finish(1 << 62)
	s.keeper.sealed, s.rows.sealed = 1<<62, 1<<62
	return s.pass()
}
