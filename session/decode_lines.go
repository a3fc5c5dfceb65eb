package session

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/internal/budget"
	"github.com/coppice-dev/coppice/store"
)

// batchBytes is how many bytes of lines are decoded at a time. What is not more than
// that is decoded where it is read, the rest by goroutines, as many as there are
// processors.
const batchBytes = 128 << 10

// lineDecoder decodes lines, many of them on other goroutines while the caller
// reads more. Its zero value is ready to use. After adding lines, call finish, which
// waits for the goroutines.
type lineDecoder struct {
	now     *lineBatch      // is being filled
	made    []*lineBatch    // all of them, in the order of their lines
	full    chan *lineBatch // to be decoded; nil before the first
	buffers chan []byte     // of batches that were decoded
	inUse   int             // how many buffers there are
	done    sync.WaitGroup
}

// lineBatch is some lines, one after the other in one piece of memory, and then
// what became of them. A line that is not an entry after all has none, but an error:
// opening looks only at a line's first bytes.
type lineBatch struct {
	data    []byte
	lines   []cachedAt
	damaged []damagedLine
}

type damagedLine struct {
	pos   store.Pos
	cause error
}

// add takes a line and does not keep it.
func (l *lineDecoder) add(pos store.Pos, line []byte) {
	if l.now != nil && len(l.now.data)+len(line) > batchBytes {
		l.passBatch()
	}
	if l.now == nil {
		l.now = &lineBatch{data: l.buffer()}
		if n := len(l.made); n > 0 { // as many as last time, and a few
			l.now.lines = make([]cachedAt, 0, len(l.made[n-1].lines)+8)
		}
		l.made = append(l.made, l.now)
	}
	l.now.lines = append(l.now.lines, cachedAt{pos: pos, cached: cached{bytes: len(line)}})
	if len(line) <= batchBytes {
		l.now.data = append(l.now.data, line...)
		return
	}
	d := newDecoder() // to copy it would cost as much memory again
	defer d.free()
	l.now.decode(d, len(l.now.lines)-1, line)
}

// buffer returns memory for a batch. There is enough for the caller to continue while
// each worker has one batch and another is waiting for it.
func (l *lineDecoder) buffer() []byte {
	switch {
	case l.inUse == 0: // there may be only one line
		l.inUse++
		if spare, ok := spareBuffers.Get().(*[]byte); ok {
			return *spare
		}
		return nil
	case l.inUse <= 2*runtime.GOMAXPROCS(0):
		l.inUse++
		return make([]byte, 0, batchBytes)
	}
	return <-l.buffers
}

// spareBuffers are those of decoders that are done: who reads a whole session a few
// hundred entries at a time need not make new ones each time.
var spareBuffers sync.Pool

// passBatch passes the batch to the workers, and starts them if it is the first.
func (l *lineDecoder) passBatch() {
	if l.full == nil {
		workers := runtime.GOMAXPROCS(0)
		l.full, l.buffers = make(chan *lineBatch, workers), make(chan []byte, 2*workers+1)
		for range workers {
			l.done.Go(l.work)
		}
	}
	l.full <- l.now
	l.now = nil
}

func (l *lineDecoder) work() {
	d := decoder{shared: &sharedMemory{}, words: commonWords}
	for b := range l.full {
		buffer := b.data[:0]
		b.decodeAll(&d)
		l.buffers <- buffer
	}
}

// finish decodes what was not passed on, and returns the lines in the order in
// which they were added.
func (l *lineDecoder) finish() []*lineBatch {
	switch {
	case l.full != nil:
		if l.now != nil {
			l.passBatch()
		}
		close(l.full)
		l.done.Wait()
		spare := <-l.buffers
		spareBuffers.Put(&spare)
	case l.now != nil:
		d := newDecoder()
		defer d.free()
		spare := l.now.data[:0]
		l.now.decodeAll(d)
		spareBuffers.Put(&spare)
	}
	return l.made
}

// decodeAll decodes the lines of a batch and gives up their bytes.
func (b *lineBatch) decodeAll(d *decoder) {
	from := 0
	for i := range b.lines {
		if size := b.lines[i].bytes; size <= batchBytes {
			b.decode(d, i, b.data[from:from+size])
			from += size
		}
	}
	b.data = nil
}

func (b *lineBatch) decode(d *decoder, i int, line []byte) {
	e, err := d.entry(line)
	if err != nil {
		b.damaged = append(b.damaged, damagedLine{b.lines[i].pos, err})
		return
	}
	b.lines[i].entry = e
}

// sharedMemory is memory for the entries of many lines that are decoded one after
// the other, and are likely to be dropped together: keeping one of them keeps some of
// its neighbours too, but no more than fit here.
type sharedMemory struct {
	texts    arena
	messages []messageLine // those that were not taken yet
}

const (
	roomMessages = 32
	// A line or a text that is longer has its own memory.
	maxSharedLine = 4 << 10
	maxSharedText = 1 << 10
)

// newRoom returns the memory for the message of a line.
func (d *decoder) newRoom(line int) *messageLine {
	if d.shared == nil || line > maxSharedLine {
		return &messageLine{}
	}
	if len(d.shared.messages) == 0 {
		d.shared.messages = make([]messageLine, roomMessages)
	}
	room := &d.shared.messages[0]
	d.shared.messages = d.shared.messages[1:]
	return room
}

// keep returns a text as a string that does not share the line's memory.
func (d *decoder) keep(text []byte) string {
	if d.shared == nil || len(text) > maxSharedText {
		return string(text)
	}
	return d.shared.texts.keep(text)
}

// decodeMissing reads and decodes the entries of nodes that were not found.
func (s *Session) decodeMissing(ctx context.Context, nodes []node, found []cached) error {
	skip := func(i int) bool { return nodes[i].kind == kindGap || found[i].entry != nil }
	all := func(int, []byte) bool { return true }
	return s.decodeLines(ctx, nodes, skip, all, func(i int, e cached) { found[i] = e })
}

// decodeLines reads the lines of nodes that are sorted by position, except those to be skipped, and
// decodes those that are wanted. For a line that is not an entry after all it writes a warning.
func (s *Session) decodeLines(ctx context.Context, nodes []node, skip func(i int) bool, isWanted func(i int, line []byte) bool, put func(i int, e cached)) error {
	var lines lineDecoder
	read := make([]int32, 0, len(nodes)) // the nodes whose lines were added
	err := s.eachLine(ctx, nodes, skip, func(i int, line store.Line) error {
		if isWanted(i, line.Data) {
			if err := holdLine(ctx, line); err != nil {
				return err
			}
			lines.add(nodes[i].pos, line.Data)
			read = append(read, int32(i))
		}
		return nil
	})
	var damaged []damagedLine
	for _, b := range lines.finish() {
		damaged = append(damaged, b.damaged...)
		for i := range b.lines {
			put(int(read[i]), b.lines[i].cached)
		}
		read = read[len(b.lines):]
	}
	slices.SortFunc(damaged, func(a, b damagedLine) int { return cmp.Compare(a.pos, b.pos) })
	for _, line := range damaged {
		s.opts.Logger.Warn("damaged entry", "session", s.name, "offset", int64(line.pos), "cause", line.cause)
	}
	return err
}

// decodedWeight is about how many times the memory of its line a decoded entry takes.
const decodedWeight = 2

// holdLine counts a line that is going to be decoded.
func holdLine(ctx context.Context, line store.Line) error {
	return budget.Hold(ctx, decodedWeight*int64(len(line.Data)))
}
