package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
)

const (
	// chunkSize is how much of a file read by lines is kept together.
	chunkSize = 4 << 20
	// roomSize is how much room there is for a chunk and what is read beyond it.
	roomSize = chunkSize + 2*readSize
	// documentChunk is the same for files read at once. A program rewrites such a file
	// when it changes, mostly at the end: with small chunks, the unchanged part is kept
	// once.
	documentChunk = 256 << 10
	// maxChunk is the longest chunk: it ends within a line only if it must.
	maxChunk = 64 << 20
)

// chunk is a piece of a source that is kept.
type chunk struct {
	from int64  // in the source
	raw  []byte // as it is in the source
	kept []byte // the kept bytes, if they are known and differ; as long as raw
	sum  string // SHA-256 of raw, in hex
	size int64  // of raw, also when that is gone

	keptSum string // SHA-256 of the kept bytes

	packed   []byte        // raw, compressed; nil if it is in a blob
	ref      store.Ref     // the blob, once it is in one
	ready    chan struct{} // closed when sum and packed are there
	assigned bool          // a session has it
}

func (c *chunk) end() int64 { return c.from + c.size }

// keeper cuts the source into chunks and compresses them.
type keeper struct {
	known  map[string]store.Ref // the blobs of chunks that are kept already, by their sums
	intact func(store.Ref) bool // whether a blob exists and is undamaged
	before map[int64]Kept       // what is kept already, by where it begins
	buf    []byte
	from   int64 // where buf begins, in the source
	sealed int64 // the end of the last chunk
	chunks []*chunk
	jobs   chan *chunk // nil until a chunk is worth another goroutine
	done   sync.WaitGroup
	spare  sync.Pool // of *[]byte
	guard  *clean.Guard
}

// newKeeper begins to keep a source from a position. Parts of it may be kept already.
// What the guard knows is never kept.
func newKeeper(from int64, kept []Kept, guard *clean.Guard, intact func(store.Ref) bool) *keeper {
	k := &keeper{
		guard: guard, intact: intact, from: from, sealed: from,
		known: make(map[string]store.Ref), before: make(map[int64]Kept),
	}
	for _, c := range kept {
		k.known[c.Sum], k.before[c.From] = c.Blob, c
	}
	return k
}

// part implements tap.
func (k *keeper) part(pos int64, b []byte) {
	end := k.from + int64(len(k.buf))
	if pos+int64(len(b)) <= end {
		return // read a second time
	}
	if pos < end {
		b = b[end-pos:]
	}
	if n := len(k.buf) + len(b); n > cap(k.buf) && n > readSize { // small files need less
		k.buf = append(k.buffer(), k.buf...)
	}
	k.buf = append(k.buf, b...)
	for cut := k.cut(); cut > 0; cut = k.cut() {
		rest := append(k.buffer(), k.buf[cut:]...)
		k.seal(k.buf[:cut])
		k.buf = rest
	}
}

// line implements tap. A long line is a chunk, so that it need not be copied.
func (k *keeper) line(pos int64, b []byte) {
	if _, ok := k.before[k.from]; ok || pos != k.from+int64(len(k.buf)) {
		for piece := range slices.Chunk(b, readSize) {
			k.part(pos, piece)
			pos += int64(len(piece))
		}
		return
	}
	if len(k.buf) > 0 {
		k.seal(k.buf)
		k.buf = nil
	}
	for piece := range slices.Chunk(b, maxChunk) {
		k.seal(piece)
	}
}

// cut returns where the next chunk ends, or 0 if that is not known yet. If what was
// read begins with a kept chunk, the chunks end at the same places, so that only the
// new part of a grown file is kept.
func (k *keeper) cut() int {
	if c, ok := k.before[k.from]; ok {
		if int64(len(k.buf)) < c.Len && len(k.buf) < maxChunk {
			return 0
		}
		if int64(len(k.buf)) >= c.Len && sumOf(k.buf[:c.Len]) == c.Sum {
			return int(c.Len)
		}
	}
	if len(k.buf) < chunkSize {
		return 0
	}
	cut := bytes.LastIndexByte(k.buf, '\n') + 1
	if cut == 0 && len(k.buf) > maxChunk {
		cut = len(k.buf)
	}
	return cut
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (k *keeper) buffer() []byte {
	if b, ok := k.spare.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, roomSize)
}

// whole implements tap.
func (k *keeper) whole(b []byte) {
	if k.sealed > 0 {
		return
	}
	// As a whole, because a secret may be where two chunks meet.
	for kept := k.guard.Raw(b); len(b) > 0; {
		n := min(len(b), documentChunk)
		k.sealAs(b[:n:n], kept[:n:n])
		b, kept = b[n:], kept[n:]
	}
}

// piece takes bytes that are not part of a file, and returns where they are.
func (k *keeper) piece(b []byte) int64 {
	b = k.guard.Raw(b)
	at := k.from + int64(len(k.buf))
	k.buf = append(k.buf, b...)
	if len(k.buf) >= documentChunk {
		k.seal(k.buf)
		k.buf = nil
	}
	return at
}

// seal turns the next bytes into a chunk.
func (k *keeper) seal(raw []byte) { k.sealAs(raw, nil) }

func (k *keeper) sealAs(raw, kept []byte) {
	c := &chunk{from: k.from, raw: raw, kept: kept, size: int64(len(raw)), ready: make(chan struct{})}
	k.from += c.size
	k.sealed = k.from
	k.chunks = append(k.chunks, c)
	if k.jobs == nil && c.size < readSize {
		enc := packers.Get().(*zstd.Encoder)
		k.pack(c, enc)
		packers.Put(enc)
		return
	}
	if k.jobs == nil {
		k.jobs = make(chan *chunk, 1) // one is enough to keep them busy, and each takes megabytes
		// Compressing takes about as long as all the rest together.
		for range max(1, min(runtime.GOMAXPROCS(0)/2, maxPackers)) {
			k.done.Go(func() {
				enc := packers.Get().(*zstd.Encoder)
				defer packers.Put(enc)
				for c := range k.jobs {
					k.pack(c, enc)
				}
			})
		}
	}
	k.jobs <- c
}

// maxPackers bounds the memory: each packer holds a chunk and its compressed bytes.
const maxPackers = 3

// finish seals what is left, up to a position, without waiting.
func (k *keeper) finish(upTo int64) {
	if n := min(int64(len(k.buf)), upTo-k.from); n > 0 {
		k.seal(k.buf[:n])
	}
	k.buf = nil
	if k.jobs != nil {
		close(k.jobs)
	}
}

// pack compresses a chunk.
func (k *keeper) pack(c *chunk, enc *zstd.Encoder) {
	// The sum of the source shows whether it is known, even if secrets were removed
	// from the kept bytes.
	raw := c.raw
	c.sum = sumOf(raw)
	if c.kept == nil {
		c.kept = k.guard.Raw(raw)
	}
	if c.keptSum = c.sum; len(raw) > 0 && &c.kept[0] != &raw[0] {
		c.keptSum = sumOf(c.kept)
	}
	if c.ref = k.known[c.sum]; c.ref == "" || !k.intact(c.ref) {
		c.ref = ""
		c.packed = enc.EncodeAll(c.kept, make([]byte, 0, len(raw)/4))
	}
	c.raw, c.kept = nil, nil
	if cap(raw) == roomSize && len(raw) < roomSize { // otherwise it may be a line that is still in use
		k.spare.Put(&raw)
	}
	close(c.ready)
}

// packers are encoders for reuse: making one costs more than packing a small file.
var packers = sync.Pool{New: func() any { return newPacker() }}

func newPacker() *zstd.Encoder {
	enc, _ := zstd.NewWriter(nil, // these options are valid, so there is no error
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	return enc
}
