package storetest_test

import (
	"context"
	"iter"

	"github.com/coppice-dev/coppice/store"
)

type (
	createFunc func(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error)
	appendFunc func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error)
	readFunc   func(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error]
	putFunc    func(ctx context.Context, data []byte) (store.Ref, error)
	getFunc    func(ctx context.Context, ref store.Ref) ([]byte, error)
	allFunc    func(ctx context.Context) iter.Seq2[store.Ref, error]
)

// parts is a memory store whose parts can be exchanged.
type parts struct {
	store.Store
	create createFunc

	createCopy func(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error)

	open    func(context.Context, string) (store.Log, error)
	list    func(context.Context) iter.Seq2[store.Stat, error]
	remove  func(context.Context, string) error
	blobs   store.Blobs
	batch   func() store.Batch
	trash   store.Trash
	notes   func(room string) store.Notes
	parts   store.Parts
	wrapLog func(name string, log store.Log) store.Log
}

// wrap returns a store that is right except for what change does to it.
func wrap(change func(*parts)) store.Store {
	s := newMemory()
	p := &parts{
		Store: s, create: s.Create, open: s.Open, list: s.List, remove: s.Remove, blobs: s.Blobs(),
		createCopy: s.CreateCopy, batch: s.Batch, trash: s.Trash(), notes: s.Notes, parts: s.Parts(),
		wrapLog: func(_ string, log store.Log) store.Log { return hook(log) },
	}
	change(p)
	return p
}

func (p *parts) Create(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) (store.Log, error) {
	return p.wrapped(name)(p.create(ctx, name, lines))
}

func (p *parts) Open(ctx context.Context, name string) (store.Log, error) {
	return p.wrapped(name)(p.open(ctx, name))
}

func (p *parts) wrapped(name string) func(store.Log, error) (store.Log, error) {
	return func(log store.Log, err error) (store.Log, error) {
		if err != nil {
			return nil, err
		}
		return p.wrapLog(name, log), nil
	}
}

func (p *parts) List(ctx context.Context) iter.Seq2[store.Stat, error] { return p.list(ctx) }
func (p *parts) Remove(ctx context.Context, name string) error         { return p.remove(ctx, name) }
func (p *parts) Blobs() store.Blobs                                    { return p.blobs }
func (p *parts) Batch() store.Batch                                    { return p.batch() }
func (p *parts) Trash() store.Trash                                    { return p.trash }
func (p *parts) Notes(room string) store.Notes                         { return p.notes(room) }
func (p *parts) Parts() store.Parts                                    { return p.parts }

func (p *parts) CreateCopy(ctx context.Context, name string, lines iter.Seq2[[]byte, error], of store.Log) (store.Log, error) {
	return p.wrapped(name)(p.createCopy(ctx, name, lines, of))
}

type changeFunc = func(ctx context.Context, name string, change func([]byte) ([]byte, error)) error

// hookedNotes are notes whose Change can be exchanged.
type hookedNotes struct {
	store.Notes
	change changeFunc
}

func (n *hookedNotes) Change(ctx context.Context, name string, change func([]byte) ([]byte, error)) error {
	return n.change(ctx, name, change)
}

func breakNotes(change func(*hookedNotes)) func(*parts) {
	return func(p *parts) {
		p.notes = func(room string) store.Notes {
			n := &hookedNotes{Notes: p.Store.Notes(room)}
			change(n)
			return n
		}
	}
}

// hooked is a log whose methods can be exchanged.
type hooked struct {
	store.Log
	append                   appendFunc
	forward, backward, watch readFunc
	flush                    func(context.Context) error
	pin                      func(context.Context) (func(), error)
	close                    func() error
}

func hook(log store.Log) *hooked {
	return &hooked{log, log.Append, log.Forward, log.Backward, log.Watch, log.Flush, log.Pin, log.Close}
}

// eachLog applies a change to every log of a store.
func eachLog(change func(*hooked)) func(*parts) {
	return func(p *parts) {
		p.wrapLog = func(_ string, log store.Log) store.Log {
			l := hook(log)
			change(l)
			return l
		}
	}
}

func (l *hooked) Append(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, error) {
	return l.append(ctx, at, lines...)
}

func (l *hooked) Forward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.forward(ctx, from)
}

func (l *hooked) Backward(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.backward(ctx, from)
}

func (l *hooked) Watch(ctx context.Context, from store.Pos) iter.Seq2[store.Line, error] {
	return l.watch(ctx, from)
}

func (l *hooked) Flush(ctx context.Context) error { return l.flush(ctx) }

func (l *hooked) Pin(ctx context.Context) (func(), error) { return l.pin(ctx) }

func (l *hooked) Close() error { return l.close() }

// hookedBlobs are blobs whose methods can be exchanged.
type hookedBlobs struct {
	store.Blobs
	put     putFunc
	get     getFunc
	all     allFunc
	hold    holdFunc
	collect collectFunc
}

type (
	holdFunc    = func(ctx context.Context) (func(), error)
	collectFunc = func(ctx context.Context, refs ...store.Ref) (*store.Collected, error)
)

func breakBlobs(change func(*hookedBlobs)) func(*parts) {
	return func(p *parts) {
		b := &hookedBlobs{p.blobs, p.blobs.Put, p.blobs.Get, p.blobs.All, p.blobs.Hold, p.blobs.Collect}
		change(b)
		p.blobs = b
	}
}

func (b *hookedBlobs) Put(ctx context.Context, data []byte) (store.Ref, error) {
	return b.put(ctx, data)
}

func (b *hookedBlobs) Get(ctx context.Context, ref store.Ref) ([]byte, error) {
	return b.get(ctx, ref)
}

func (b *hookedBlobs) Hold(ctx context.Context) (func(), error) { return b.hold(ctx) }

func (b *hookedBlobs) Collect(ctx context.Context, refs ...store.Ref) (*store.Collected, error) {
	return b.collect(ctx, refs...)
}

func (b *hookedBlobs) All(ctx context.Context) iter.Seq2[store.Ref, error] { return b.all(ctx) }

// starting is a log whose Start can be exchanged.
type starting struct {
	*hooked
	start func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error)
}

func (l *starting) Start(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
	return l.start(ctx, at, lines...)
}

// starts gives every log a Start that is right, for change to break.
func starts(change func(*starting)) func(*parts) {
	return func(p *parts) {
		p.wrapLog = func(_ string, log store.Log) store.Log {
			l := &starting{hooked: hook(log)}
			l.start = func(ctx context.Context, at store.Pos, lines ...[]byte) (store.Pos, func() error, error) {
				return log.Start(ctx, at, lines...)
			}
			change(l)
			return l
		}
	}
}
