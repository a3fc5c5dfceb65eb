package storetest_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"iter"
	"path"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// broken are stores that break the contract in one way each, under the check
// that must notice and a word on what is wrong.
var broken = map[string]func(*parts){
	"Names/Refused any name":                breakNames,
	"Create/HoldsItsLines loses the first":  breakCreate(dropFirst),
	"Create/OneBuffer keeps the buffer":     breakCreate(keepBuffers),
	"Create/FromAnotherLog locks":           breakCreateLocks,
	"Create/Exists replaces":                breakCreateReplaces,
	"Create/FailsMidway keeps the half":     breakCreate(untilError),
	"Create/NotExist plain error":           breakOpenError,
	"List/EachOnce twice":                   breakListTwice,
	"List/Cancelled silently short":         breakListShort,
	"List/RemoveMeanwhile locks":            breakListLocks,
	"Remove/Gone forgets":                   breakRemoveForgets,
	"Remove/OpenHandle accepts appends":     breakRemoveAccepts,
	"Remove/OldHandleNewLog goes by name":   breakByName,
	"Close/Log stays open":                  eachLog(func(l *hooked) { l.close = func() error { return nil } }),
	"Append/ReturnsEnd doubles":             breakAppend(doubles),
	"Append/ReturnsEnd wrong end":           breakAppend(wrongEnd),
	"Append/WrongPosition unchecked":        breakAppend(anywhere),
	"Append/NoLines unchecked":              breakAppend(nothingUnchecked),
	"Append/StaleHandle merges":             breakAppend(anywhere),
	"Append/Newline splits":                 breakAppend(splits),
	"Append/Newline writes the good":        breakAppend(writesTheGood),
	"Append/TooLarge wrong error":           breakAppend(hidesCause),
	"Append/Cancelled regardless":           breakAppend(regardless),
	"Bytes/Exact trims":                     breakAppend(edits(func(b []byte) []byte { return bytes.TrimRight(b, "\r") })),
	"Bytes/Exact mends":                     breakAppend(edits(func(b []byte) []byte { return bytes.ToValidUTF8(b, []byte("?")) })),
	"Bytes/Sizes cuts":                      breakAppend(edits(func(b []byte) []byte { return b[:min(len(b), 64<<10)] })),
	"Bytes/EmptyLines drops":                breakAppend(dropsEmpty),
	"Concurrent/OneWins check then act":     breakAppend(checkThenAct),
	"Concurrent/RetryManyHandles tears":     breakAppend(tears),
	"Read/EveryPosition wrong order":        eachLog(func(l *hooked) { l.backward = byPosition(l.Log.Backward) }),
	"Read/EveryPosition one too many":       eachLog(func(l *hooked) { l.backward = alwaysFromEnd(l.Log) }),
	"Read/BadPosition from the beginning":   eachLog(func(l *hooked) { l.forward = clamped(l.Log.Forward) }),
	"Read/OwnBytes shares":                  eachLog(func(l *hooked) { l.forward = sharing(l.Log.Forward) }),
	"Read/AppendMeanwhile old end":          eachLog(func(l *hooked) { l.forward = byPosition(l.Log.Forward) }),
	"Read/AppendMeanwhile locks":            breakReadLocks,
	"Read/Interrupted silently short":       eachLog(func(l *hooked) { l.forward = silent(l.Log.Forward) }),
	"Watch/SeesAppends never wakes":         eachLog(func(l *hooked) { l.watch = sleeping(l.Log) }),
	"Watch/Cancel with an error":            eachLog(func(l *hooked) { l.watch = loud(l.Log.Watch) }),
	"Watch/Deadline with an error":          eachLog(func(l *hooked) { l.watch = loud(l.Log.Watch) }),
	"Watch/Removed without an error":        eachLog(func(l *hooked) { l.watch = silent(l.Log.Watch) }),
	"Watch/Recreated follows the name":      following,
	"Flush/ChangesNothing appends":          eachLog(func(l *hooked) { l.flush = flushAppends(l.Log) }),
	"Flush/Cancelled regardless":            eachLog(func(l *hooked) { l.flush = func(context.Context) error { return nil } }),
	"Flush/Concurrent locks":                eachLog(func(l *hooked) { l.flush = flushOnce(l.Log) }),
	"Close/Log flushes all the same":        eachLog(func(l *hooked) { l.flush = func(context.Context) error { return nil } }),
	"Start/CommitsInAnyOrder in order only": starts(inOrderOnly),
	"Start/StaleHandle unchecked":           starts(startsAnywhere),
	"Start/AsCancelled regardless":          starts(startsRegardless),
	"Start/Pipeline does not write":         starts(losesStarted),
	"Start/AsWrongPosition unchecked":       starts(startsAnywhere),
	"Blobs/PutGet drops the empty":          breakBlobs(func(b *hookedBlobs) { b.put = dropEmpty(b.Blobs.Put) }),
	"Blobs/Malformed not checked":           breakBlobs(func(b *hookedBlobs) { b.get = anyRef(b.Blobs.Get) }),
	"Blobs/All twice":                       breakBlobs(func(b *hookedBlobs) { b.all = twice(b.Blobs.All) }),
	"Blobs/OwnBytes shares":                 breakBlobs(func(b *hookedBlobs) { b.get = cached(b.Blobs.Get) }),
	"Blobs/Hold one at a time":              breakBlobs(func(b *hookedBlobs) { b.hold = oneAtATime() }),
	"Collect/WaitsForHolds does not":        breakBlobs(func(b *hookedBlobs) { b.hold = holdsNothing }),
	"Collect/BesideWriters does not wait":   breakBlobs(func(b *hookedBlobs) { b.hold = holdsNothing }),
	"Collect/HoldWithinHold waits in line":  breakBlobs(waitsInLine),
	"Collect/Unreferenced all that it has":  breakBlobs(func(b *hookedBlobs) { b.collect = collectsAll(b) }),
	"Copy/OfReplaced does not ask":          unaskedCopy,
	"Copy/ReplacedMeanwhile asks first":     copyAskedFirst,
	"Copy/Pin keeps nobody out":             eachLog(func(l *hooked) { l.pin = func(context.Context) (func(), error) { return func() {}, nil } }),
	"Batch/Commit at once":                  func(p *parts) { p.batch = func() store.Batch { return &eagerBatch{p: p} } },
	"Trash/Restore forgets the log":         func(p *parts) { p.trash = emptyTrash{p.Store.Trash()} },
	"Notes/ChangeAtOnce loses one":          breakNotes(func(n *hookedNotes) { n.change = losesChange(n.Notes) }),
	"Notes/ChangeFails writes":              breakNotes(func(n *hookedNotes) { n.change = changesRegardless(n.Notes) }),
	"Notes/RoomNames are paths":             func(p *parts) { p.notes = func(room string) store.Notes { return p.Store.Notes(path.Base(room)) } },
	"Notes/Rooms mixes them":                func(p *parts) { p.notes = func(string) store.Notes { return p.Store.Notes("") } },
	"Parts/Edit leaves the copies":          func(p *parts) { p.parts = lazyParts{p.Store.Parts()} },
	"Parts/All without the trash":           func(p *parts) { p.parts = forgetfulParts{p.Store.Parts()} },
}

// unaskedCopy copies whatever became of the log.
func unaskedCopy(p *parts) {
	p.createCopy = func(ctx context.Context, name string, lines iter.Seq2[[]byte, error], _ store.Log) (store.Log, error) {
		return p.Store.Create(ctx, name, lines)
	}
}

// copyAskedFirst asks before the lines are copied.
func copyAskedFirst(p *parts) {
	p.createCopy = func(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error) {
		release, err := of.Pin(ctx)
		if err != nil {
			return nil, err
		}
		release()
		return p.Store.Create(ctx, name, lines)
	}
}

// eagerBatch creates each log as it is added.
type eagerBatch struct {
	p *parts
	n int
}

func (b *eagerBatch) Add(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) error {
	b.n++
	log, err := b.p.Store.Create(ctx, name, lines)
	if err == nil {
		err = log.Close()
	}
	return err
}
func (b *eagerBatch) Len() int                                { return b.n }
func (b *eagerBatch) Commit(context.Context) map[string]error { b.n = 0; return nil }
func (b *eagerBatch) Discard()                                { b.n = 0 }

// emptyTrash keeps no removed logs.
type emptyTrash struct{ store.Trash }

func (emptyTrash) List(context.Context) ([]store.Trashed, error) { return nil, nil }

func losesChange(n store.Notes) changeFunc {
	return func(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
		old, _ := n.Read(ctx, name)
		time.Sleep(time.Millisecond)
		changed, err := change(old)
		if err == nil {
			err = n.Write(ctx, name, changed)
		}
		return err
	}
}

func changesRegardless(n store.Notes) changeFunc {
	return func(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
		old, _ := n.Read(ctx, name)
		changed, err := change(old)
		return errors.Join(err, n.Write(ctx, name, changed))
	}
}

// lazyParts edits only logs and notes.
type lazyParts struct{ store.Parts }

func (p lazyParts) Edit(ctx context.Context, part store.Part, edit func([]byte) ([]byte, error)) error {
	if part.Kind == store.PartCopy {
		return nil
	}
	return p.Parts.Edit(ctx, part, edit)
}

// forgetfulParts does not know what is in the trash.
type forgetfulParts struct{ store.Parts }

func (p forgetfulParts) All(ctx context.Context) iter.Seq2[store.Part, error] {
	return func(yield func(store.Part, error) bool) {
		for part, err := range p.Parts.All(ctx) {
			if part.Kind != store.PartCopy && !yield(part, err) {
				return
			}
		}
	}
}

func holdsNothing(context.Context) (func(), error) { return func() {}, nil }

func oneAtATime() holdFunc {
	var mu sync.Mutex
	return func(context.Context) (func(), error) {
		mu.Lock()
		return sync.OnceFunc(mu.Unlock), nil
	}
}

// waitsInLine is what a plain RWMutex does: who waits to delete stops new holds,
// also those within another.
func waitsInLine(b *hookedBlobs) {
	var mu sync.RWMutex
	b.hold = func(context.Context) (func(), error) {
		mu.RLock()
		return sync.OnceFunc(mu.RUnlock), nil
	}
	collect := b.collect
	b.collect = func(ctx context.Context, refs ...store.Ref) (*store.Collected, error) {
		mu.Lock()
		defer mu.Unlock()
		return collect(ctx, refs...)
	}
}

// collectsAll deletes more than it was asked to.
func collectsAll(b *hookedBlobs) collectFunc {
	collect := b.collect
	return func(ctx context.Context, refs ...store.Ref) (*store.Collected, error) {
		var all []store.Ref
		for ref := range b.Blobs.All(ctx) {
			all = append(all, ref)
		}
		return collect(ctx, all...)
	}
}

func breakNames(p *parts) {
	safe := func(name string) string {
		return hex.EncodeToString([]byte(name))[:min(2*len(name), store.MaxName)] + "_"
	}
	p.create = func(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
		return p.Store.Create(ctx, safe(name), lines)
	}
}

func breakCreate(change func(iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error]) func(*parts) {
	return func(p *parts) {
		p.create = func(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
			return p.Store.Create(ctx, name, change(lines))
		}
	}
}

func dropFirst(lines iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		n := 0
		for line, err := range lines {
			if n++; n > 1 && !yield(line, err) {
				return
			}
		}
	}
}

func keepBuffers(lines iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	var kept [][]byte
	for line := range lines {
		kept = append(kept, line)
	}
	return store.Lines(kept...)
}

func untilError(lines iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for line, err := range lines {
			if err != nil || !yield(line, nil) {
				return
			}
		}
	}
}

// breakCreateLocks holds, while the lines come in, the lock that readers need.
func breakCreateLocks(p *parts) {
	var mu sync.Mutex
	p.create = func(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
		mu.Lock()
		defer mu.Unlock()
		return p.Store.Create(ctx, name, lines)
	}
	p.wrapLog = func(_ string, log store.Log) store.Log {
		l := hook(log)
		l.forward = locked(&mu, log.Forward)
		return l
	}
}

func breakCreateReplaces(p *parts) {
	p.create = func(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
		log, err := p.Store.Create(ctx, name, lines)
		if !errors.Is(err, store.ErrExist) {
			return log, err
		}
		p.Store.Remove(ctx, name)
		return p.Store.Create(ctx, name, lines)
	}
}

func breakOpenError(p *parts) {
	p.open = func(ctx context.Context, name string) (store.Log, error) {
		log, err := p.Store.Open(ctx, name)
		if err != nil {
			return nil, errors.New(err.Error())
		}
		return log, nil
	}
}

func breakListTwice(p *parts) { p.list = twice(p.Store.List) }

func breakListShort(p *parts) {
	p.list = func(ctx context.Context) iter.Seq2[store.Stat, error] {
		return func(yield func(store.Stat, error) bool) {
			for stat, err := range p.Store.List(ctx) {
				if err != nil || !yield(stat, nil) {
					return
				}
			}
		}
	}
}

func breakListLocks(p *parts) {
	var mu sync.Mutex
	p.list = func(ctx context.Context) iter.Seq2[store.Stat, error] {
		return func(yield func(store.Stat, error) bool) {
			mu.Lock()
			defer mu.Unlock()
			p.Store.List(ctx)(yield)
		}
	}
	p.remove = func(ctx context.Context, name string) error {
		mu.Lock()
		defer mu.Unlock()
		return p.Store.Remove(ctx, name)
	}
}

func breakRemoveForgets(p *parts) {
	p.remove = func(context.Context, string) error { return nil }
}

// breakRemoveAccepts pretends to append to logs that were removed.
func breakRemoveAccepts(p *parts) {
	eachLog(func(l *hooked) {
		l.append = func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
			end, err := l.Log.Append(ctx, at, lines...)
			if errors.Is(err, store.ErrNotExist) {
				return at, nil
			}
			return end, err
		}
	})(p)
}

// breakByName looks the log up anew for each append.
func breakByName(p *parts) {
	p.wrapLog = func(name string, log store.Log) store.Log {
		l := hook(log)
		l.append = func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
			now, err := p.Store.Open(ctx, name)
			if err != nil {
				return 0, err
			}
			return now.Append(ctx, at, lines...)
		}
		return l
	}
}
