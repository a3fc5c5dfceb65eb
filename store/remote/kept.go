package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/store"
)

// leased takes a lease and renews it until it is released. If the server has ended it, it takes
// another one.
func (s *Store) leased(ctx context.Context, take func(ctx context.Context) (string, error)) (release func(), err error) {
	id, err := take(ctx)
	if err != nil {
		return nil, err
	}
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
			// The name is enough to renew it: a pin outlives the handle of its log.
			err := s.ask(going, &query{op: "hold", args: request{Lease: id}, repeat: true})
			if errors.Is(err, errGone) {
				if next, err := take(going); err == nil { // else the next tick tries
					id = next
				}
			}
		}
	}()
	return sync.OnceFunc(func() {
		stop()
		<-done
		ctx, cancel := context.WithTimeout(context.Background(), s.patience)
		defer cancel()
		_ = s.ask(ctx, &query{op: "release", args: request{Lease: id}, repeat: true}) // otherwise the server does so later
	}), nil
}

// Blobs implements store.Store.
func (s *Store) Blobs() store.Blobs { return blobs{s} }

type blobs struct{ *Store }

// Hold implements store.Blobs.
func (b blobs) Hold(ctx context.Context) (func(), error) {
	return b.leased(ctx, func(ctx context.Context) (string, error) {
		var r result
		err := b.read(ctx, "protect blobs", &query{op: "hold", each: one(&r)})
		return r.Lease, err
	})
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
	return n.change(ctx, "write note", request{Name: name}, data)
}

// WriteHint implements store.Notes. It writes the note for good: the network costs more than the disk.
func (n notes) WriteHint(ctx context.Context, name string, data []byte) error {
	return n.Write(ctx, name, data)
}

// Remove implements store.Notes.
func (n notes) Remove(ctx context.Context, name string) error {
	return n.change(ctx, "remove note", request{Name: name, Gone: true}, nil)
}

// change is not repeated: another client may have written the note in between.
func (n notes) change(ctx context.Context, op string, args request, data []byte) error {
	if err := n.admit(ctx, op, args.Name); err != nil {
		return err
	}
	if limit := maxBlob(n.limits); int64(len(data)) > limit {
		return tooLarge(op, limit)
	}
	args.Room = n.room
	return n.write(ctx, op, &query{op: "note-change", args: args, data: pieces(data)})
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
		err = n.change(ctx, "change note", request{Name: name, Was: &was}, data)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}
