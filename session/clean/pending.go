package clean

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/coppice-dev/coppice/store"
)

// pendingName is the note, beside the store's other rooms, of the blobs that are
// to be deleted. Between writing a log anew and deleting the blobs that it no
// longer refers to, a crash would leave them with nothing that leads to them.
const pendingName = "redact.pending"

func (s *Sweep) pendingPath() string { return filepath.Join(s.store.Dir(), ".coppice", pendingName) }

// readPending returns what an Apply that was interrupted has left to do.
func (s *Sweep) readPending() ([]store.Ref, error) {
	data, err := os.ReadFile(s.pendingPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var refs []store.Ref
	if err := json.Unmarshal(data, &refs); err != nil {
		return nil, fmt.Errorf("%s: %w", s.pendingPath(), err)
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
	return replaceFile(s.pendingPath(), data)
}

func (s *Sweep) forgetPending() error {
	err := os.Remove(s.pendingPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
