package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// leased keeps a lease until it is released. If the server has ended it, again takes a new one,
// unless that is nil: then the next request that needs it fails.
func (s *Store) leased(id string, again func(context.Context) (string, error)) (release func()) {
	going, stop := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(s.tick)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-going.Done():
				return
			}
			err := s.ask(going, &query{op: "keep", args: request{Lease: id}, repeat: true})
			if !errors.Is(err, errGone) && !errors.Is(err, errOver) {
				continue
			}
			if again == nil {
				return
			}
			if next, err := again(going); err == nil { // else the next tick tries
				id = next
			}
		}
	}()
	return sync.OnceFunc(func() {
		stop()
		<-done
		ctx, cancel := context.WithTimeout(context.Background(), s.patience)
		defer cancel()
		_ = s.ask(ctx, &query{op: "release", args: request{Lease: id}, repeat: true}) // otherwise the server does so later
	})
}

// converse calls f with the questions of a server's operation, and sends its answers.
func (s *Store) converse(ctx context.Context, what string, q *query, f func([]byte) ([]byte, error)) error {
	name := q.args.Name
	release := func() {}
	defer func() { release() }()
	for begun := false; ; begun = true {
		var r result
		var question []byte
		into := s.into(&question)
		q.each = func(f frame) error {
			if f.kind == kindJSON {
				return f.result(&r)
			}
			return into(f)
		}
		err := s.run(ctx, what, q)
		if err != nil && begun {
			return s.unsure(what, name, err)
		}
		if err != nil || r.Lease == "" {
			return s.fail(what, name, err)
		}
		if !begun {
			release = s.leased(r.Lease, nil)
		}
		if !r.None && question == nil {
			question = []byte{}
		}
		answer, err := f(question)
		if err != nil {
			return err
		}
		q = &query{op: "reply", args: request{Lease: r.Lease}, data: pieces(answer)}
	}
}

// Trash implements store.Store.
func (s *Store) Trash() store.Trash { return trash{s} }

type trash struct{ *Store }

func (t trash) trashed(all []result) (list []store.Trashed) {
	for i := range all {
		if all[i].Trashed != nil {
			list = append(list, *all[i].Trashed)
		}
	}
	return list
}

// List implements store.Trash.
func (t trash) List(ctx context.Context) ([]store.Trashed, error) {
	all, err := t.results(ctx, "list trash", &query{op: "trash"})
	return t.trashed(all), err
}

// Add implements store.Trash.
func (t trash) Add(ctx context.Context, id string, lines iter.Seq2[[]byte, error]) error {
	const op = "add to trash"
	if err := t.ready(ctx, op, id); err != nil {
		return err
	}
	return t.write(ctx, op, &query{op: "trash-add", args: request{Name: id}, stream: func(w io.Writer) error {
		return t.send(w, op, id, lines)
	}})
}

// Take implements store.Trash.
func (t trash) Take(ctx context.Context, id string, end store.Pos) error {
	if err := t.ready(ctx, "remove", id); err != nil {
		return err
	}
	return t.write(ctx, "remove", &query{op: "trash-take", args: request{Name: id, At: end}})
}

// Restore implements store.Trash.
func (t trash) Restore(ctx context.Context, id string) error {
	if err := t.admit(ctx, "restore", id); err != nil {
		return err
	}
	return t.write(ctx, "restore", &query{op: "trash-restore", args: request{Name: id}})
}

// Empty implements store.Trash. It can be repeated.
func (t trash) Empty(ctx context.Context, before time.Time) ([]store.Trashed, error) {
	all, err := t.results(ctx, "empty trash", &query{op: "trash-empty", args: request{Before: &before}})
	return t.trashed(all), err
}

// Read implements store.Trash.
func (t trash) Read() (store.Store, error) {
	if err := t.ready(context.Background(), "read trash", ""); err != nil {
		return nil, err
	}
	s := &Store{connection: t.connection, view: true, limits: t.limits, logs: make(map[*log]struct{})}
	s.ctx, s.cancel = context.WithCancelCause(t.ctx)
	return s, nil
}

// Blobs implements store.Store.
func (s *Store) Blobs() store.Blobs { return blobs{s} }

type blobs struct{ *Store }

// Hold implements store.Blobs.
func (b blobs) Hold(ctx context.Context) (func(), error) {
	hold := func(ctx context.Context) (string, error) {
		var r result
		err := b.read(ctx, "protect blobs", &query{op: "hold", each: one(&r)})
		return r.Lease, err
	}
	id, err := hold(ctx)
	if err != nil {
		return nil, err
	}
	return b.leased(id, hold), nil
}

// Put implements store.Blobs.
func (b blobs) Put(ctx context.Context, data []byte) (store.Ref, error) {
	if limit := maxBlob(b.limits); int64(len(data)) > limit {
		return "", tooLarge("put blob", limit)
	}
	ref := store.RefOf(data)
	if err := b.read(ctx, "put blob", &query{op: "put", args: request{Name: string(ref)}, data: pieces(data)}); err != nil {
		return "", err
	}
	return ref, nil
}

// Get implements store.Blobs.
func (b blobs) Get(ctx context.Context, ref store.Ref) ([]byte, error) {
	const op = "get blob"
	if _, ok := ref.Hex(); !ok {
		return nil, &store.Error{Op: op, Kind: store.ErrInvalid, Err: fmt.Errorf("malformed reference %.80q", ref)}
	}
	data, err := b.bytes(ctx, op, &query{op: "blob", args: request{Name: string(ref)}})
	if err != nil {
		return nil, err
	}
	if store.RefOf(data) != ref {
		return nil, &store.Error{Op: op, Kind: store.ErrCorrupt, Err: fmt.Errorf("what the server sent is not %s", ref)}
	}
	return data, nil
}

// All implements store.Blobs.
func (b blobs) All(ctx context.Context) iter.Seq2[store.Ref, error] {
	return func(yield func(store.Ref, error) bool) {
		all, err := b.results(ctx, "list blobs", &query{op: "blobs"})
		if err != nil {
			yield("", err)
			return
		}
		for i := range all {
			if !yield(all[i].Ref, nil) {
				return
			}
		}
	}
}

// Unreferenced implements store.Blobs.
func (b blobs) Unreferenced(ctx context.Context) ([]store.Part, error) {
	all, err := b.results(ctx, "look for references", &query{op: "unreferenced"})
	return parts(b).listed(all), err
}

// Collect implements store.Blobs. It can be repeated.
func (b blobs) Collect(ctx context.Context, refs ...store.Ref) (*store.Collected, error) {
	q := &query{op: "collect"}
	for _, ref := range refs {
		q.data = append(q.data, []byte(ref))
	}
	all, err := b.results(ctx, "remove blobs", q)
	done := &store.Collected{Named: make(map[store.Ref][]store.Part)}
	for _, r := range all {
		if r.Part == nil {
			done.Deleted = append(done.Deleted, r.Ref)
		} else {
			done.Named[r.Ref] = append(done.Named[r.Ref], parts(b).part(r.Part))
		}
	}
	return done, err
}

// Notes implements store.Store.
func (s *Store) Notes(room string) store.Notes { return notes{s, room} }

type notes struct {
	*Store
	room string
}

// Read implements store.Notes.
func (n notes) Read(ctx context.Context, name string) ([]byte, error) {
	if err := n.admit(ctx, "read note", name); err != nil {
		return nil, err
	}
	data, err := n.bytes(ctx, "read note", &query{op: "note", args: request{Room: n.room, Name: name}})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// List implements store.Notes.
func (n notes) List(ctx context.Context) ([]store.Note, error) {
	all, err := n.results(ctx, "list notes", &query{op: "notes", args: request{Room: n.room}})
	var list []store.Note
	for i := range all {
		if all[i].Note != nil {
			list = append(list, *all[i].Note)
		}
	}
	return list, err
}

// Write implements store.Notes.
func (n notes) Write(ctx context.Context, name string, data []byte) error {
	return n.put(ctx, name, data, false)
}

// WriteHint implements store.Notes.
func (n notes) WriteHint(ctx context.Context, name string, data []byte) error {
	return n.put(ctx, name, data, true)
}

// put is not repeated: another client may have written the note in between.
func (n notes) put(ctx context.Context, name string, data []byte, hint bool) error {
	if err := n.admit(ctx, "write note", name); err != nil {
		return err
	}
	if limit := maxBlob(n.limits); int64(len(data)) > limit {
		return tooLarge("write note", limit)
	}
	return n.write(ctx, "write note", &query{op: "note-write", args: request{Room: n.room, Name: name, Hint: hint}, data: pieces(data)})
}

// Change implements store.Notes. It begins again when another client has changed the note.
func (n notes) Change(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	for {
		old, err := n.Read(ctx, name)
		if err != nil && !errors.Is(err, store.ErrNotExist) {
			return err
		}
		was := contentOf(old) // before change, which may write into it
		data, err := change(old)
		if err != nil {
			return err
		}
		if limit := maxBlob(n.limits); int64(len(data)) > limit {
			return tooLarge("change note", limit)
		}
		err = n.write(ctx, "change note", &query{op: "note-change", args: request{Room: n.room, Name: name, Was: was}, data: pieces(data)})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// Remove implements store.Notes.
func (n notes) Remove(ctx context.Context, name string) error {
	if err := n.admit(ctx, "remove note", name); err != nil {
		return err
	}
	return n.write(ctx, "remove note", &query{op: "note-remove", args: request{Room: n.room, Name: name}})
}

// Parts implements store.Store.
func (s *Store) Parts() store.Parts { return parts{s} }

type parts struct{ *Store }

// Where implements store.Parts.
func (p parts) Where(kind store.PartKind, name string) string {
	return p.url + "/" + placeOf(kind, name)
}

func (p parts) part(got *part) store.Part {
	return store.Part{Kind: got.Kind, Name: got.Name, Place: p.url + "/" + got.Place, Size: got.Size, Modified: got.Modified}
}

// sent returns a part in the form that the server gets.
func (p parts) sent(given store.Part) *part {
	place := given.Place
	if prefix := p.url + "/"; len(place) > len(prefix) && place[:len(prefix)] == prefix {
		place = place[len(prefix):]
	}
	return &part{Kind: given.Kind, Name: given.Name, Place: place, Size: given.Size, Modified: given.Modified}
}

func (p parts) listed(all []result) (list []store.Part) {
	for i := range all {
		if all[i].Part != nil {
			list = append(list, p.part(all[i].Part))
		}
	}
	return list
}

// All implements store.Parts.
func (p parts) All(ctx context.Context) iter.Seq2[store.Part, error] {
	return func(yield func(store.Part, error) bool) {
		all, err := p.results(ctx, "list", &query{op: "parts"})
		if err != nil {
			yield(store.Part{}, err)
			return
		}
		for _, part := range p.listed(all) {
			if !yield(part, nil) {
				return
			}
		}
	}
}

// Copies implements store.Parts.
func (p parts) Copies(ctx context.Context, name string) ([]store.Part, error) {
	all, err := p.results(ctx, "list copies", &query{op: "copies", args: request{Name: name}})
	return p.listed(all), err
}

// Open implements store.Parts.
func (p parts) Open(ctx context.Context, part store.Part) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	began := make(chan error, 1)
	q := &query{op: "part", args: request{Name: part.Name, Part: p.sent(part)}, each: func(f frame) error {
		if f.kind != kindData {
			return malformed("bytes")
		}
		select {
		case began <- nil:
		default:
		}
		_, err := w.Write(f.payload)
		return err
	}}
	go func() {
		defer cancel()
		err := p.fail("read", part.Name, p.run(ctx, "read", q))
		select {
		case began <- err:
		default:
		}
		if err == nil {
			err = io.EOF
		}
		_ = w.CloseWithError(err)
	}()
	if err := <-began; err != nil {
		return nil, err
	}
	return reading{r, cancel}, nil
}

// reading is a part being read.
type reading struct {
	*io.PipeReader
	cancel func()
}

func (r reading) Close() error {
	r.cancel()
	return r.PipeReader.Close()
}

// Lines implements store.Parts.
func (p parts) Lines(ctx context.Context, part store.Part) iter.Seq2[store.Line, error] {
	return func(yield func(store.Line, error) bool) {
		err := p.run(ctx, "read", &query{op: "part-lines", args: request{Name: part.Name, Part: p.sent(part)}, each: func(f frame) error {
			if f.kind != kindLine {
				return malformed("a line")
			}
			if !yield(parseLine(f.payload), nil) {
				return errStop
			}
			return nil
		}})
		if err != nil && err != errStop {
			yield(store.Line{}, p.fail("read", part.Name, err))
		}
	}
}

// Edit implements store.Parts.
func (p parts) Edit(ctx context.Context, part store.Part, edit func(line []byte) ([]byte, error)) error {
	return p.converse(ctx, "edit", &query{op: "part-edit", args: request{Name: part.Name, Part: p.sent(part)}}, edit)
}

// Remove implements store.Parts.
func (p parts) Remove(ctx context.Context, part store.Part) error {
	return p.write(ctx, "remove", &query{op: "part-remove", args: request{Name: part.Name, Part: p.sent(part)}})
}

// Batch implements store.Store.
func (s *Store) Batch() store.Batch { return &batch{store: s} }

// batch is a batch of the server, which begins with the first log.
type batch struct {
	store   *Store
	lease   string
	release func()
	names   []string
	err     error // why its content is unknown
}

func (b *batch) Len() int { return len(b.names) }

func (b *batch) Discard() {
	if b.release != nil {
		b.release()
	}
	*b = batch{store: b.store}
}

func (b *batch) Add(ctx context.Context, name string, lines iter.Seq2[[]byte, error]) error {
	const op = "create"
	if err := b.store.admit(ctx, op, name); err != nil || b.err != nil {
		return errors.Join(err, b.err)
	}
	if b.lease == "" {
		var r result
		if err := b.store.read(ctx, op, &query{op: "batch", each: one(&r)}); err != nil {
			return err
		}
		b.lease, b.release = r.Lease, b.store.leased(r.Lease, nil)
	}
	err := b.store.run(ctx, op, &query{op: "batch-add", args: request{Name: name, Lease: b.lease}, stream: func(w io.Writer) error {
		return b.store.send(w, op, name, lines)
	}})
	unanswered, isLost := err.(*lost)
	if err = b.store.fail(op, name, err); err != nil {
		if isLost && unanswered.sent {
			b.err = err
		}
		return err
	}
	b.names = append(b.names, name)
	return nil
}

// Commit implements store.Batch. If the answer is lost, the outcome of every log is unknown.
func (b *batch) Commit(ctx context.Context) map[string]error {
	const op = "create"
	defer b.Discard()
	errs := make(map[string]error)
	if len(b.names) == 0 {
		return errs
	}
	err := b.err
	if err == nil {
		err = b.store.run(ctx, op, &query{op: "batch-commit", args: request{Lease: b.lease}, each: func(f frame) error {
			var r result
			if err := f.result(&r); err != nil || r.Error == nil {
				return malformed("an error")
			}
			errs[r.Name] = r.Error.err()
			return nil
		}})
	}
	for _, name := range b.names {
		if err != nil && errs[name] == nil {
			errs[name] = b.store.unsure(op, name, err)
		}
	}
	return errs
}
