package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/coppice-dev/coppice/store"
)

// LoadOrRecover loads the session file at a path. If the file cannot be read, it returns a
// replacement: the session restored from the backup beside the file (path + ".bak"), with
// the unreadable file moved to quarantine; or else a recovery session, which has another id
// and leaves the unreadable file where it is: see Recover.
func LoadOrRecover(path string) (*Session, error) {
	s, err := Load(path)
	if err == nil || !errors.Is(err, ErrCorrupt) {
		return s, err
	}
	cause := err
	d := NewManager(filepath.Dir(path))
	name, err := d.nameOf(path)
	if err != nil {
		return nil, err
	}
	st, err := d.open()
	if err != nil {
		return nil, err
	}
	s, err = Recover(context.Background(), st, name, cause, &d.Options)
	return s.owning(st, err)
}

// Recover returns a replacement for a session that cannot be read; cause is the error of
// Open. If the store has a backup of the session, the session is restored from it.
// Otherwise a recovery session takes its place: it names the other as its ParentSession,
// has the Relation recovery, and begins with a message that says what happened. There is
// only one: recovering the session again, after a restart or in another process, returns
// the same.
func Recover(ctx context.Context, st store.Store, name string, cause error, o *Options) (*Session, error) {
	backups, ok := store.As[store.Mender](st)
	if !ok {
		return openRecovery(ctx, st, name, cause, o)
	}
	err := backups.RestoreBackup(ctx, name)
	if err == nil {
		var s *Session
		if s, err = Open(ctx, st, name, o); err == nil {
			return s, nil
		}
	}
	if errors.Is(err, ErrNotExist) || errors.Is(err, ErrCorrupt) { // no backup, or one that cannot be read either
		return openRecovery(ctx, st, name, cause, o)
	}
	return nil, err
}

// openRecovery returns the recovery session of a session.
func openRecovery(ctx context.Context, st store.Store, name string, cause error, o *Options) (*Session, error) {
	id, err := FindRecovery(ctx, st, name)
	if err != nil {
		return nil, err
	}
	if id == "" {
		id = recoveryID(name)
		notice := fmt.Sprintf("This is a recovery session. The original session %q could not be read: %v", name, cause)
		s, err := createWith(ctx, st, Header{ID: id, ParentSession: name, Relation: RelationRecovery}, o,
			Message(RoleSystem, Text(notice)))
		if !errors.Is(err, ErrExist) { // if it exists by now, another process was faster
			return s, err
		}
	}
	s, err := Open(ctx, st, id, o)
	if errors.Is(err, ErrCorrupt) {
		return Recover(ctx, st, id, err, o)
	}
	return s, err
}

// recoveryID returns the id of a recovery session. It is derived from that of the lost one,
// so that if several programs recover it at once, only one can create the session.
func recoveryID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "recovery-" + hex.EncodeToString(sum[:16])
}

// FindRecovery returns the id of the recovery session that replaces a session, or "" if
// there is none: see Recover.
func FindRecovery(ctx context.Context, st store.Store, name string) (string, error) {
	if id := recoveryID(name); recovers(ctx, st, id, name) {
		return id, nil
	}
	stats, err := listStats(ctx, st) // older versions gave it any id
	if err != nil {
		return "", err
	}
	for i := range stats {
		if recovers(ctx, st, stats[i].Name, name) {
			return stats[i].Name, nil
		}
	}
	return "", nil
}

// recovers reports whether a session can be read and is the recovery session of another.
func recovers(ctx context.Context, st store.Store, id, of string) bool {
	log, err := st.Open(ctx, id)
	if err != nil {
		return false
	}
	defer log.Close()
	h, err := readHeader(ctx, log)
	return err == nil && h != nil && h.Relation == RelationRecovery && h.ParentSession == of
}
