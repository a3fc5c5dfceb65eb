package tiktoken

import (
	"math"
	"slices"
)

// merger does byte-pair encoding: a piece starts as single bytes, and of all neighbours
// that make a token together, those with the lowest rank are merged first, and among
// equals the leftmost. A queue of all such pairs keeps that below quadratic, however
// long the piece.
//
// A merger is reused for all pieces of a text, to allocate once.
type merger struct {
	parts []part
	queue queue
	steps int // how many pairs were taken from the queue, for the tests
}

// part is where a part of the piece starts; it ends where the next one starts.
type part struct {
	prev, next int32
	pair       uint32 // the rank of this part and the next one together, or none
}

// none is the rank of a pair that is no token.
const none = math.MaxUint32

// merge leaves in m.parts the tokens of a piece: the first starts at 0.
func (m *merger) merge(v *vocabulary, piece string) {
	m.parts, m.queue = slices.Grow(m.parts[:0], len(piece)+1), slices.Grow(m.queue[:0], len(piece))
	for i := range int32(len(piece)) + 1 {
		m.parts = append(m.parts, part{i - 1, i + 1, none})
	}
	for i := range len(piece) - 1 {
		m.rank(v, piece, int32(i))
	}
	for len(m.queue) > 0 {
		m.steps++
		rank, at := m.queue.pop()
		if m.parts[at].pair != rank {
			continue // it was merged with another
		}
		gone := m.parts[at].next
		after := m.parts[gone].next
		m.parts[gone].pair = none
		m.parts[at].next = after
		m.parts[after].prev = at
		m.rank(v, piece, at)
		if at > 0 {
			m.rank(v, piece, m.parts[at].prev)
		}
	}
}

// rank puts the pair of a part and the next one in the queue, if it is a token.
func (m *merger) rank(v *vocabulary, piece string, at int32) {
	m.parts[at].pair = none
	next := m.parts[at].next
	if int(next) == len(piece) {
		return
	}
	if rank, ok := v.id(piece[at:m.parts[next].next]); ok {
		m.parts[at].pair = rank
		m.queue.push(rank, at)
	}
}

// queue is a binary heap of ranks, each with the place of its pair in the lower half, so
// that the least is the leftmost pair of the lowest rank.
type queue []uint64

func (q *queue) push(rank uint32, at int32) {
	*q = append(*q, 0)
	q.rise(len(*q)-1, uint64(rank)<<32|uint64(at))
}

// pop takes the least from the top, lets the lesser children rise down to the bottom, and
// puts the last item in the gap.
func (q *queue) pop() (rank uint32, at int32) {
	heap, last, gap := *q, len(*q)-1, 0
	least := heap[0]
	for child := 1; child < last; child = 2*gap + 1 {
		if child+1 < last && heap[child+1] < heap[child] {
			child++
		}
		heap[gap] = heap[child]
		gap = child
	}
	q.rise(gap, heap[last])
	*q = heap[:last]
	return uint32(least >> 32), int32(least)
}

// rise puts an item in a gap, or above it.
func (q queue) rise(gap int, item uint64) {
	for gap > 0 && q[(gap-1)/2] > item {
		q[gap] = q[(gap-1)/2]
		gap = (gap - 1) / 2
	}
	q[gap] = item
}
