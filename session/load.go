package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/coppice-dev/coppice/internal/budget"
	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// load reads the header, and as much of the log's end as it takes to know the leaf.
func (s *Session) load(ctx context.Context) error {
	h, err := readHeader(ctx, s.log)
	if err != nil {
		return err
	}
	end, err := s.log.End(ctx)
	if err != nil {
		return err
	}
	s.tree = &tree{end: end}
	var t *tree
	if h == nil {
		err = errNeedAll
	} else {
		t, err = loadTail(ctx, s.log, end, tailLeaf, nil)
	}
	if errors.Is(err, errNeedAll) {
		t, err = s.loadAll(ctx)
	}
	if err != nil {
		return err
	}
	if h == nil {
		h = t.header
	}
	if h == nil {
		h, err = s.inventHeader(t)
		if err != nil {
			return err
		}
	}
	s.tree, s.header = t, *h
	if h.ID != s.name {
		s.strange, s.header.ID = h.ID, s.name
	}
	return s.header.CheckVersion(s.name)
}

// readHeader returns the header if it is where it should be, and nil if not.
func readHeader(ctx context.Context, log store.Log) (*Header, error) {
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return nil, err
		}
		head, ok := rawjson.ScanHead(line.Data)
		if !ok || string(head.Type) != string(TypeSession) {
			return nil, nil
		}
		h, err := decodeHeader(bytes.Clone(line.Data))
		if err != nil {
			return nil, nil // the same as missing: the caller then reads the whole log
		}
		return h, nil
	}
	return nil, nil
}

// FindHeader returns the header of a log, wherever damage put it, or nil if it has
// none.
func FindHeader(ctx context.Context, log store.Log) (*Header, error) {
	h, _, err := findHeaderLine(ctx, log)
	return h, err
}

// findHeaderLine returns the header of a log and where it is, or nil and noLine.
func findHeaderLine(ctx context.Context, log store.Log) (*Header, store.Pos, error) {
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return nil, noLine, err
		}
		if isHeader(line.Data) {
			if h, err := decodeHeader(bytes.Clone(line.Data)); err == nil {
				return h, line.Pos, nil
			}
		}
	}
	return nil, noLine, nil
}

// inventHeader returns a replacement for a missing header. A log without a single entry
// is not a session.
func (s *Session) inventHeader(t *tree) (*Header, error) {
	if len(t.nodes) == 0 {
		size := int64(t.end)
		if stat, err := s.store.Stat(s.context(), s.name); err == nil { // a torn line is no line, but it takes space
			size = max(size, stat.Size)
		}
		return nil, &Error{
			Op: "open", Name: s.name, Kind: ErrCorrupt,
			Err:  fmt.Errorf("no header and no entry in %d bytes", size),
			Hint: "repair it to bring back a backup, or recover it to start a new session and leave the file alone",
		}
	}
	t.report(ProblemHeader, "", 0, "the header is missing")
	h := &Header{Type: TypeSession, ID: s.name, Version: Version}
	if e, err := s.entryAt(s.context(), &t.nodes[0]); err == nil {
		h.CreatedAt = e.Timestamp
	}
	return h, nil
}

// CheckVersion returns ErrInvalid if the header has a newer format version, or something that
// is not a version. Such a log must not be read.
func (h *Header) CheckVersion(name string) error {
	version := strconv.Itoa(h.Version)
	// A number that we could not have written. If there is also one that we could have
	// written, this is a repeated member, which does not count.
	odd, _, _ := h.Extra.take("version")
	if h.Version == 0 && rawjson.Kind(odd) == 'n' {
		version = string(odd)
	} else if h.Version <= Version {
		return nil
	}
	return &Error{
		Op: "open", Name: name, Kind: ErrInvalid,
		Err:  fmt.Errorf("the session has format version %s, this program reads up to %d", version, Version),
		Hint: "use a newer program; the file was not changed",
	}
}

// loadAll reads the whole log, up to the end that we know.
func (s *Session) loadAll(ctx context.Context) (*tree, error) {
	end := s.tree.end
	if end == 0 {
		var err error
		if end, err = s.log.End(ctx); err != nil {
			return nil, err
		}
	}
	t, err := loadTree(ctx, s.log, end, s.detail)
	if err != nil {
		return nil, err
	}
	for _, p := range t.problems {
		s.opts.Logger.Warn("problem in session", "session", s.name, "problem", p.String())
	}
	return t, nil
}

// nodeWeight is about how many bytes a node takes, with the values that are computed from it to
// draw a tree.
const nodeWeight = 512

// loadWhole reads the whole log, if the tree does not have all of it yet. It is called with mu held
// for writing.
func (s *Session) loadWhole(ctx context.Context) error {
	if s.tree.isWhole() {
		return nil
	}
	t, err := s.loadAll(ctx)
	if err == nil {
		err = budget.Hold(ctx, nodeWeight*int64(len(t.nodes)))
	}
	if err != nil {
		return err
	}
	t.leaf = s.tree.leaf // our own, which may differ from the log's after a conflict
	t.leaf, _ = t.leafAfter(t.leaf)
	s.tree = t
	return nil
}

// withWhole calls f with the complete tree and mu held: for reading if the tree was
// complete already, for writing if it had to be read.
func (s *Session) withWhole(f func(t *tree) error) error {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return s.errClosed("read")
	}
	if s.tree.isWhole() {
		defer s.mu.RUnlock()
		return f(s.tree)
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.errClosed("read")
	}
	if err := s.loadWhole(s.context()); err != nil {
		return err
	}
	return f(s.tree)
}
