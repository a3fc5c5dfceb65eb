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

// LoadOrRecover loads the session file at a path and, if that is beyond reading,
// takes its place as well as it can: with the backup beside it (path + ".bak"),
// which is copied over the file after the file was moved to quarantine; or else
// with a recovery session: see Recover. The session then has another id, and the
// unreadable file stays where it is.
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

// Recover returns what takes the place of a session that is beyond reading, as
// Open's error, the cause, says. If the store has a backup of it, the session is
// restored from there. Otherwise a recovery session goes on in its place: it names
// the other as its ParentSession, has the Relation recovery, and begins with a
// message that says what happened. There is one: whoever recovers the session
// again, after a restart or in another process, gets the same.
func Recover(ctx context.Context, st store.Store, name string, cause error, o *Options) (*Session, error) {
	backups, ok := st.(interface {
		RestoreBackup(ctx context.Context, name string) error
	})
	if !ok {
		return standIn(ctx, st, name, cause, o)
	}
	err := backups.RestoreBackup(ctx, name)
	if err == nil {
		var s *Session
		if s, err = Open(ctx, st, name, o); err == nil {
			return s, nil
		}
	}
	if errors.Is(err, ErrNotExist) || errors.Is(err, ErrCorrupt) { // no backup, or one that is no better
		return standIn(ctx, st, name, cause, o)
	}
	return nil, err
}

// standIn returns the recovery session of a session.
func standIn(ctx context.Context, st store.Store, name string, cause error, o *Options) (*Session, error) {
	id, err := FindRecovery(ctx, st, name)
	if err != nil {
		return nil, err
	}
	if id == "" {
		id = recoveryID(name)
		notice := fmt.Sprintf("This is a recovery session. The original session %q could not be read: %v", name, cause)
		s, err := createWith(ctx, st, Header{ID: id, ParentSession: name, Relation: RelationRecovery}, o,
			Entry{Type: TypeMessage, Message: &MessageEntry{Role: RoleSystem, Content: []Content{Text(notice)}}})
		if !errors.Is(err, ErrExist) { // somebody was faster
			return s, err
		}
	}
	s, err := Open(ctx, st, id, o)
	if errors.Is(err, ErrCorrupt) {
		return Recover(ctx, st, id, err, o)
	}
	return s, err
}

// recoveryID is the id of a recovery session. It follows from that of the other,
// so that of several who recover it at once one makes it.
func recoveryID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "recovery-" + hex.EncodeToString(sum[:16])
}

// FindRecovery returns the id of the recovery session that goes on in the place of
// a session, or "" if there is none: see Recover.
func FindRecovery(ctx context.Context, st store.Store, name string) (string, error) {
	if id := recoveryID(name); recovers(ctx, st, id, name) {
		return id, nil
	}
	stats, err := listStats(ctx, st) // older ones have any id
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

// recovers reports whether a session can be read and is the recovery session of
// another.
func recovers(ctx context.Context, st store.Store, id, of string) bool {
	log, err := st.Open(ctx, id)
	if err != nil {
		return false
	}
	defer log.Close()
	h, err := readHeader(ctx, log)
	return err == nil && h != nil && h.Relation == RelationRecovery && h.ParentSession == of
}
