package vfstest

import (
	"math/rand/v2"
	"slices"
)

// sectorSize is the unit in which a disk writes: a sector is written or not.
const sectorSize = 512

// Loss says how much of the data that was not synced a crash loses.
type Loss int

const (
	// LoseSome loses a random part. It is what CrashClone does by default.
	LoseSome Loss = iota
	// LoseNothing keeps everything, as when only the process died.
	LoseNothing
	// LoseAll keeps nothing that was not synced.
	LoseAll
)

// CrashClone returns the disk as a power cut at this moment could have left
// it. The clone is independent of the original, everything in it is durable,
// and no file is open or locked. The same state and the same random numbers
// give the same clone; rng is not used with LoseNothing and LoseAll and may
// be nil then. At most one loss may be given.
//
// What a crash does with the changes since the last sync:
//
//   - A file keeps what its last Sync saw. Its size may stop after any of the
//     later writes and truncations, or at a sector boundary inside a write
//     that extends it. Truncations up to that point have happened. Each sector of each
//     write before it is applied or lost independently; so are the sectors of later
//     writes, up to the next truncation, that lie inside the size. A lost sector reads
//     as it was before: older content, or NULs if the file was shorter.
//   - The first few creations, renames and removals in a directory have happened,
//     independently of other directories and of the files' content. A rename is one
//     change, even between two directories: it happened in both or in neither, and if
//     not, no later change of either has. SyncDir of one of the two makes it durable in
//     both, with the changes before it.
//   - Removing or renaming a directory happens only if all earlier changes have
//     happened. If it has not happened, then of the later changes only the synced ones
//     have.
func (m *Memory) CrashClone(rng *rand.Rand, loss ...Loss) *Memory {
	c := crash{rng: rng}
	if len(loss) > 0 {
		c.loss = loss[0]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c.twins = make(map[*node]*node)
	return &Memory{root: c.clone(m.root, c.undo(m.pending))}
}

// makeDurable makes the changes of a directory durable: with a rename also the
// other directory's changes up to it, which a crash must not undo alone. The
// caller holds mu.
func (m *Memory) makeDurable(dir *node) {
	if len(m.pending) == 0 {
		return
	}
	dirs, all := []*node{dir}, false
	durable := make([]bool, len(m.pending))
	for i, ch := range slices.Backward(m.pending) {
		if !all && !ch.touches(dirs) {
			continue
		}
		durable[i] = true
		all = all || ch.barrier
		for _, e := range ch.edits {
			if !slices.Contains(dirs, e.dir) {
				dirs = append(dirs, e.dir)
			}
		}
	}
	rest := m.pending[:0]
	for i, ch := range m.pending {
		if !durable[i] {
			rest = append(rest, ch)
		}
	}
	clear(m.pending[len(rest):]) // let go of the nodes
	m.pending = rest
}

func (ch dirChange) touches(dirs []*node) bool {
	return slices.ContainsFunc(ch.edits, func(e edit) bool { return slices.Contains(dirs, e.dir) })
}

// crash decides what survives.
type crash struct {
	rng   *rand.Rand
	loss  Loss
	twins map[*node]*node // of files, which may have several names
}

// pick returns how many of n things, in order, survive.
func (c crash) pick(n int) int {
	switch c.loss {
	case LoseNothing:
		return n
	case LoseAll:
		return 0
	}
	return c.rng.IntN(n + 1)
}

// undo returns the entries, after the crash, of the directories that differ
// from what programs saw.
func (c crash) undo(pending []dirChange) map[*node][]entry {
	if len(pending) == 0 || c.loss == LoseNothing {
		return nil
	}
	tables := make(map[*node][]entry)
	survives := c.survivors(pending)
	for i, ch := range slices.Backward(pending) {
		if survives[i] {
			continue
		}
		for _, e := range slices.Backward(ch.edits) {
			if _, copied := tables[e.dir]; !copied {
				tables[e.dir] = slices.Clone(e.dir.entries)
			}
			tables[e.dir] = bind(tables[e.dir], e.name, e.old)
		}
	}
	return tables
}

// survivors says which changes of directories happened.
func (c crash) survivors(pending []dirChange) []bool {
	left := c.prefixes(pending)
	survives := make([]bool, len(pending))
	lost, stopped := false, false // some change so far; a barrier
	for i, ch := range pending {
		ok := !stopped && (!lost || !ch.barrier)
		for _, e := range ch.edits {
			ok = ok && left[e.dir] > 0
		}
		for _, e := range ch.edits {
			left[e.dir]--
			if !ok {
				left[e.dir] = 0
			}
		}
		survives[i] = ok
		lost = lost || !ok
		stopped = stopped || !ok && ch.barrier
	}
	return survives
}

// prefixes picks for each directory how many of its changes may happen,
// counting a rename inside one directory twice.
func (c crash) prefixes(pending []dirChange) map[*node]int {
	left := make(map[*node]int)
	var order []*node // the random numbers must not depend on the order of a map
	for _, ch := range pending {
		for _, e := range ch.edits {
			if left[e.dir] == 0 {
				order = append(order, e.dir)
			}
			left[e.dir]++
		}
	}
	for _, dir := range order {
		left[dir] = c.pick(left[dir])
	}
	return left
}

// clone copies a tree as the crash leaves it.
func (c crash) clone(n *node, tables map[*node][]entry) *node {
	if twin := c.twins[n]; twin != nil {
		return twin
	}
	twin := &node{mode: n.mode, modified: n.modified}
	if !n.mode.IsDir() {
		twin.content = durableContent(c.survivingContent(&n.content))
		c.twins[n] = twin
		return twin
	}
	entries, changed := tables[n]
	if !changed {
		entries = n.entries
	}
	twin.entries = make([]entry, len(entries))
	for i, e := range entries {
		twin.entries[i] = entry{e.name, c.clone(e.node, tables)}
	}
	return twin
}

// survivingContent returns the bytes of a file after the crash. They may be
// shared with the original, which never changes them.
func (c crash) survivingContent(from *content) []byte {
	if len(from.changes) == 0 || c.loss == LoseAll {
		return from.synced
	}
	done := c.pick(len(from.changes))
	size := c.sizeAfter(from, done)
	kept := c.keptPercent()
	b := slices.Clone(from.synced)
	for i, ch := range from.changes {
		switch {
		case i < done && ch.truncate:
			b = resize(b, ch.off)
		case i < done:
			b = extend(b, ch.off+int64(len(ch.data)))
			c.writeSectors(b, ch, kept)
		case ch.truncate:
			return resize(b, size)
		default:
			b = resize(b, size)
			c.writeSectors(b, ch, kept)
		}
	}
	return resize(b, size)
}

// sizeAfter returns the size after the first changes, or in the middle of the
// next one.
func (c crash) sizeAfter(from *content, done int) int64 {
	size := int64(len(from.synced))
	for _, ch := range from.changes[:done] {
		if ch.truncate {
			size = ch.off
		} else {
			size = max(size, ch.off+int64(len(ch.data)))
		}
	}
	if done == len(from.changes) || from.changes[done].truncate {
		return size
	}
	next := from.changes[done]
	start := max(size, next.off) / sectorSize
	end := (next.off + int64(len(next.data)) - 1) / sectorSize
	if boundaries := end - start; boundaries > 0 {
		if i := c.pick(int(boundaries)); i > 0 {
			size = (start + int64(i)) * sectorSize
		}
	}
	return size
}

func resize(b []byte, size int64) []byte {
	if size < int64(len(b)) {
		return b[:size]
	}
	return extend(b, size)
}

// keptPercent picks how likely a sector survives, so that whole, slightly torn
// and missing writes all occur, of few sectors or many.
func (c crash) keptPercent() int {
	if c.loss == LoseNothing {
		return 100
	}
	return [...]int{0, 50, 90, 100}[c.rng.IntN(4)]
}

// writeSectors writes into b those sectors of a write that survive.
func (c crash) writeSectors(b []byte, ch contentEdit, kept int) {
	end := min(ch.off+int64(len(ch.data)), int64(len(b)))
	for at := ch.off; at < end; {
		next := min((at/sectorSize+1)*sectorSize, end)
		if kept == 100 || kept > 0 && c.rng.IntN(100) < kept {
			copy(b[at:next], ch.data[at-ch.off:])
		}
		at = next
	}
}
