package session

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
)

// idIndex finds nodes by their ids: a hash table with open addressing. It stores no ids,
// only where they are in the tree, and no pointers, so the garbage collector has nothing
// to scan, however long the session is.
//
// The ids that we make are increasing. As long as they are, the nodes themselves are the index:
// an id greater than all before it is new, and any other is found by halving. The table is built
// only for a session that has other ids.
type idIndex struct {
	mixed bool // the ids of the nodes are not increasing

	mu    sync.Mutex // guards what follows: even a lookup, under a read lock of the session, may have to build the table
	slots []idSlot   // a power of two, at least a quarter of them free
	known int        // how many nodes, from the first, are in the table
}

type idSlot struct {
	hash uint32
	node int32 // its index plus one; zero means that the slot is free
}

var idSeed = maphash.MakeSeed()

func hashID(id string) uint32 { return uint32(maphash.String(idSeed, id)) }

// find returns the index of the node that has an id.
func (x *idIndex) find(nodes []node, id string) (at int32, ok bool) {
	if !x.mixed {
		i, ok := slices.BinarySearchFunc(nodes, id, func(n node, id string) int { return cmp.Compare(n.id, id) })
		if !ok {
			return none, false
		}
		return int32(i), true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.build(nodes)
	slot := x.slot(nodes, id, hashID(id))
	return slot.node - 1, slot.node != 0
}

// add adds the last of the nodes. If another node has its id, add returns that one's index
// and false, and the caller must drop the new one.
func (x *idIndex) add(nodes []node) (other int32, ok bool) {
	last := len(nodes) - 1
	if !x.mixed && (last == 0 || nodes[last-1].id < nodes[last].id) {
		return none, true
	}
	if other, taken := x.find(nodes[:last], nodes[last].id); taken {
		return other, false
	}
	x.mixed = true
	return none, true
}

// build adds to the table the nodes that are not in it yet.
func (x *idIndex) build(nodes []node) {
	size := max(16, len(x.slots))
	for 4*len(nodes) >= 3*size {
		size *= 2
	}
	if size > len(x.slots) {
		x.resize(size)
	}
	for ; x.known < len(nodes); x.known++ {
		id := nodes[x.known].id
		hash := hashID(id)
		*x.slot(nodes, id, hash) = idSlot{hash, int32(x.known) + 1}
	}
}

// slot returns the slot of an id, or the free one where it belongs.
func (x *idIndex) slot(nodes []node, id string, hash uint32) *idSlot {
	mask := uint32(len(x.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &x.slots[i]
		if s.node == 0 || s.hash == hash && nodes[s.node-1].id == id {
			return s
		}
	}
}

// resize changes the number of slots, which must be a power of two.
func (x *idIndex) resize(slots int) {
	old := x.slots
	x.slots = make([]idSlot, slots)
	mask := uint32(slots - 1)
	for _, s := range old {
		if s.node == 0 {
			continue
		}
		i := s.hash & mask
		for x.slots[i].node != 0 {
			i = (i + 1) & mask
		}
		x.slots[i] = s
	}
}

// arena keeps ids and other short texts, many in one piece of memory. An object for each
// would take more memory than the id, and cost time in every garbage collection.
type arena struct {
	piece strings.Builder // never grows beyond its first capacity: that would move the strings
	next  int             // the size of the next piece
}

const maxPiece = 64 << 10

// keep returns a text as a string in the arena.
func (a *arena) keep(text []byte) string {
	from := a.reserve(len(text))
	a.piece.Write(text)
	return a.piece.String()[from:]
}

// copy returns a copy of a text, so that the original can be freed.
func (a *arena) copy(text string) string {
	from := a.reserve(len(text))
	a.piece.WriteString(text)
	return a.piece.String()[from:]
}

// reserve makes room for a number of bytes and returns where they will begin.
func (a *arena) reserve(size int) int {
	if a.piece.Cap()-a.piece.Len() < size {
		a.next = min(max(512, 2*a.next), maxPiece)
		a.piece.Reset()
		a.piece.Grow(max(a.next, size))
	}
	return a.piece.Len()
}
