package clean

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
)

// pendingName is the note, beside the store's other rooms, of the blobs that are
// to be deleted. Between writing a log anew and deleting the blobs that it no
// longer refers to, a crash would leave them with nothing that leads to them.
const pendingName = "redact.pending"

func (s *Sweep) notes() *file.Notes { return s.store.Notes("") }

// readPending returns what an Apply that was interrupted has left to do.
func (s *Sweep) readPending() ([]store.Ref, error) {
	data, err := s.notes().Read(pendingName)
	if errors.Is(err, store.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var refs []store.Ref
	if err := json.Unmarshal(data, &refs); err != nil {
		return nil, fmt.Errorf("%s: %w", s.notes().Path(pendingName), err)
	}
	return slices.DeleteFunc(refs, func(ref store.Ref) bool { _, ok := ref.Hex(); return !ok }), nil
}

func (s *Sweep) notePending() error {
	if len(s.pending) == 0 {
		return nil
	}
	data, err := json.Marshal(s.pending)
	if err != nil {
		return err
	}
	return s.notes().Write(pendingName, data)
}

func (s *Sweep) forgetPending() error { return s.notes().Remove(pendingName) }
