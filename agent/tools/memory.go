package tools

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/coppice-dev/coppice/agent"
)

// maxApproved is how many calls that wait for approval are remembered. A forgotten call runs
// only if there is no link on the way.
const maxApproved = 1000

// memory has the facts that the tools know about files, for each conversation: what the model has
// seen of them, and which files waiting calls name.
type memory struct {
	mu       sync.Mutex
	approved map[waiting]string
	seen     map[file]seenLines
}

// seenLines is what the model has seen of a file: its lines up to a number, or all.
type seenLines struct {
	is  digest
	to  int
	all bool
}

// waiting is a call that was asked about, by the path in it.
type waiting struct{ session, call, path string }

// file is a file of the working directory, or elsewhere by its whole path.
type file struct{ session, name string }

// digest identifies the content of a file.
type digest [sha256.Size]byte

// approve records where the path of a call leads when approval is first requested: a call may
// be checked again after that.
func (m *memory) approve(call agent.Call, p path, full string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.approved == nil || len(m.approved) >= maxApproved {
		m.approved = make(map[waiting]string)
	}
	key := waiting{call.Session, call.ID, p.name}
	if _, asked := m.approved[key]; !asked {
		m.approved[key] = full
	}
}

// isApproved returns an error if the path of a call leads elsewhere than when it was asked
// about. If that is not known, as after a restart, there must be no link on the way.
func (m *memory) isApproved(call agent.Call, p path, at *openedPath) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := waiting{call.Session, call.ID, p.name}
	full, asked := m.approved[key]
	delete(m.approved, key)
	switch {
	case asked && full != at.full:
		return fmt.Errorf("%s led to %s when the call was approved, and now leads to %s: call again if that is right", p, full, at.full)
	case !asked && p.name != at.full:
		return fmt.Errorf("%s leads to %s by a link, and that was not approved: name the file itself", p, at.full)
	}
	return nil
}

// recordSeen records the lines of a file that the model has read; end means that the file has no
// more.
func (m *memory) recordSeen(call agent.Call, at *openedPath, is digest, from, to int, end bool) {
	m.note(call, at, func(s *seenLines) {
		if s.is != is {
			*s = seenLines{is: is}
		}
		if from <= s.to+1 {
			s.to, s.all = max(s.to, to), s.all || end
		}
	})
}

// changed records the content that a call gave a file. An edit leaves unseen what was unseen.
func (m *memory) changed(call agent.Call, at *openedPath, is digest) {
	m.note(call, at, func(s *seenLines) { *s = seenLines{is: is, all: s.all || call.Name == Write} })
}

func (m *memory) note(call agent.Call, at *openedPath, note func(s *seenLines)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil {
		m.seen = make(map[file]seenLines)
	}
	key := file{call.Session, at.full}
	s := m.seen[key]
	note(&s)
	m.seen[key] = s
}

// hasSeen returns an error if the model does not know what is in a file. Before a write, it
// must have seen the whole file.
func (m *memory) hasSeen(call agent.Call, at *openedPath, is digest) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, ok := m.seen[file{call.Session, at.full}]
	switch {
	case !ok:
		return errors.New("it exists and was not read in this conversation since the program started: read it first")
	case was.is != is:
		return errors.New("it has changed since it was read: read it again")
	case call.Name == Write && !was.all:
		return errors.New("it was only read in part, and write replaces all of it: read the rest, or use edit")
	}
	return nil
}

// digest returns the digest of a file. For a file that is too large to be edited, it is made
// from the size and the time.
func (p *openedPath) digest() (is digest, err error) {
	f, err := p.openFile()
	if err != nil {
		return is, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return is, err
	}
	h := sha256.New()
	if info.Size() > maxEdit {
		fmt.Fprint(h, info.Size(), info.ModTime().UnixNano())
	} else if _, err := io.Copy(h, f); err != nil {
		return is, err
	}
	return digest(h.Sum(nil)), nil
}

// unchanged returns an error if a file is no longer what it was; before is nil if there was
// none.
func (p *openedPath) unchanged(before fs.FileInfo, was digest) error {
	now, err := p.look()
	if err == nil && now != nil && before != nil {
		var is digest
		if is, err = p.digest(); is == was {
			return err
		}
	}
	if err == nil && (now != nil || before != nil) {
		err = errors.New("another program changed it in the meantime: read it again")
	}
	return err
}
