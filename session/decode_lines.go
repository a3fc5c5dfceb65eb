package session

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/store"
)

const (
	// fewLines are decoded where they are read. More are decoded by several
	// goroutines, as many as there are processors.
	fewLines = 512
	// batchBytes is how many bytes of lines are handed over at a time.
	batchBytes = 128 << 10
)

// lineDecoder decodes the lines of nodes.
type lineDecoder struct {
	nodes []node
	found []cached // for each node; each goroutine writes those of its lines

	mu      sync.Mutex
	damaged []damagedLine
}

type damagedLine struct {
	pos   store.Pos
	cause error
}

// decode decodes the line of a node. It leaves out one that is not an entry after
// all: opening looks only at a line's first bytes.
func (l *lineDecoder) decode(d *decoder, i int, data []byte) {
	e, err := d.entry(data)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.damaged = append(l.damaged, damagedLine{l.nodes[i].pos, err})
		return
	}
	l.found[i] = cached{e, len(data)}
}

// decodeMissing reads and decodes the entries of nodes that were not found.
func (s *Session) decodeMissing(ctx context.Context, nodes []node, found []cached, missing int) error {
	l := &lineDecoder{nodes: nodes, found: found}
	skip := func(i int) bool { return nodes[i].kind == kindGap || found[i].entry != nil }
	workers := runtime.GOMAXPROCS(0)
	var err error
	if missing <= fewLines || workers == 1 {
		d := newDecoder()
		defer d.free()
		err = s.eachLine(ctx, nodes, skip, func(i int, line store.Line) error {
			l.decode(d, i, line.Data)
			return nil
		})
	} else {
		err = s.decodeMany(ctx, l, skip, workers)
	}
	slices.SortFunc(l.damaged, func(a, b damagedLine) int { return cmp.Compare(a.pos, b.pos) })
	for _, line := range l.damaged {
		s.opts.Logger.Warn("damaged entry", "session", s.name, "offset", int64(line.pos), "cause", line.cause)
	}
	return err
}

// lineBatch is some lines, one after the other in one piece of memory.
type lineBatch struct {
	data  []byte
	nodes []int // whose lines they are
	ends  []int // where in data
}

// decodeMany reads lines and gives them to workers.
func (s *Session) decodeMany(ctx context.Context, l *lineDecoder, skip func(i int) bool, workers int) error {
	full, empty := make(chan *lineBatch, workers), make(chan *lineBatch, 2*workers)
	for range 2 * workers {
		empty <- &lineBatch{}
	}
	var done sync.WaitGroup
	for range workers {
		done.Go(func() {
			var d decoder
			for b := range full {
				l.decodeBatch(&d, b)
				empty <- b
			}
		})
	}
	var own decoder
	b := <-empty
	err := s.eachLine(ctx, l.nodes, skip, func(i int, line store.Line) error {
		if len(line.Data) > batchBytes { // to copy it would cost as much memory again
			l.decode(&own, i, line.Data)
			return nil
		}
		if len(b.data)+len(line.Data) > batchBytes {
			full <- b
			b = <-empty
		}
		b.add(i, line.Data)
		return nil
	})
	full <- b
	close(full)
	done.Wait()
	return err
}

func (b *lineBatch) add(i int, line []byte) {
	if b.data == nil {
		b.data = make([]byte, 0, batchBytes)
	}
	b.data = append(b.data, line...)
	b.nodes, b.ends = append(b.nodes, i), append(b.ends, len(b.data))
}

// decodeBatch decodes the lines of a batch and empties it.
func (l *lineDecoder) decodeBatch(d *decoder, b *lineBatch) {
	from := 0
	for at, i := range b.nodes {
		l.decode(d, i, b.data[from:b.ends[at]])
		from = b.ends[at]
	}
	b.data, b.nodes, b.ends = b.data[:0], b.nodes[:0], b.ends[:0]
}
