package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"syscall"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/store"
)

// ForkOptions says what Fork copies, and as what. The zero value copies all branches into a
// new session that names this one as the one it was forked from.
type ForkOptions struct {
	// At copies only the path from the root to this entry, with the labels of its entries
	// and the session's present name and tags, whichever branch they are on.
	At string
	// Header is that of the copy. Use it to give a session another id, not to begin a new
	// conversation.
	Header *Header
	// Options are those of the copy.
	Options *Options
}

// Fork copies a session into a new one in the same or another store. Lines are copied
// unchanged, so entries keep their ids, and the session itself does not change. The limits
// of the target store apply: a copy that exceeds one is refused with ErrTooLarge, and
// nothing is copied. Forking a chain (see OpenChain) copies the conversation, with the ids
// that it has there.
func (s *Session) Fork(ctx context.Context, to store.Store, o *ForkOptions) (*Session, error) {
	if o == nil {
		o = &ForkOptions{}
	}
	if err := checkStore("fork", s.name, to); err != nil {
		return nil, err
	}
	h := Header{ParentSession: s.name, Relation: RelationFork, CWD: s.header.CWD}
	if o.Header != nil {
		h = *o.Header
	}
	release, err := s.holdForCopy(ctx, to)
	if err != nil {
		return nil, err
	}
	defer release()
	lines := s.linesToFork
	if o.At != "" {
		if lines, err = s.linesOfPath(ctx, o.At); err != nil {
			return nil, err
		}
	}
	if to != s.store { // check the limits first, before any blob is copied
		for _, err := range limited(to, s.name, lines(ctx, nil)) {
			if err != nil {
				return nil, err
			}
		}
	}
	return create(ctx, to, h, o.Options, lines(ctx, to), s.log)
}

// linesToFork yields the lines of the session for a copy, and puts the blobs that they
// refer to into the target store, if there is one.
func (s *Session) linesToFork(ctx context.Context, to store.Store) iter.Seq2[[]byte, error] {
	if severalIn(s.log) != nil {
		return s.linesOfChain(ctx, to)
	}
	s.mu.RLock()
	end, leaf, logLeaf := s.tree.end, s.tree.leaf, s.tree.logLeaf
	s.mu.RUnlock()
	return func(yield func([]byte, error) bool) {
		for line, err := range s.log.Forward(ctx, 0) {
			if err == nil && line.Next > end {
				break // appended since
			}
			if err == nil && isHeader(line.Data) {
				continue // the new session has its own
			}
			if err == nil && line.Cut {
				err = &Error{Op: "fork", Name: s.name, Offset: int64(line.Pos), At: true, Kind: ErrTooLarge}
			}
			if err == nil {
				err = s.copyBlobs(ctx, to, line)
			}
			if !yield(line.Data, err) {
				return
			}
		}
		if leaf != logLeaf {
			yield(s.leafLine(leaf, logLeaf), nil)
		}
	}
}

// linesOfChain is linesToFork of a chain: its entries, each once.
func (s *Session) linesOfChain(ctx context.Context, to store.Store) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var nodes []node
		leaf, err := "", s.checkCurrent()
		if err == nil {
			err = s.withWhole(func(t *tree) error {
				nodes, leaf = slices.Clone(t.nodes), t.leaf
				return nil
			})
		}
		if err != nil {
			yield(nil, err)
			return
		}
		slices.SortStableFunc(nodes, func(a, b node) int { return cmp.Compare(a.pos, b.pos) })
		s.copyLines(ctx, to, nodes, leaf, nil)(yield)
	}
}

// lineForCopy returns the line of an entry as a copy has it. Only that of a chain differs: there,
// the tree says what the line alone does not.
func (s *Session) lineForCopy(n node, line []byte) []byte {
	if severalIn(s.log) == nil {
		return line
	}
	h, _ := rawjson.ScanHead(line)
	if parent := s.parentOf(n.id); parent != string(h.Parent) {
		line = withParent(line, parent)
	}
	if n.kind != kindCompaction {
		return line
	}
	// The state that a compaction keeps is about its own session.
	e, err := decodeEntry(bytes.Clone(line))
	if err != nil || e.Compaction.State == nil || e.Compaction.State.Kept == nil {
		return line
	}
	e.Compaction.State.Kept = nil
	if again, err := appendEntry(nil, e); err == nil {
		return again
	}
	return line
}

// storedLeaf returns the leaf after the line of an entry.
func (s *Session) storedLeaf(id string) string {
	_ = s.withWhole(func(t *tree) error {
		id, _ = t.leafAfter(id)
		return nil
	})
	return id
}

// parentOf returns the parent of an entry in the tree, or "".
func (s *Session) parentOf(id string) (parent string) {
	_ = s.withWhole(func(t *tree) error {
		if at, ok := t.at(id); ok && t.nodes[at].parent != none {
			parent = t.nodes[t.nodes[at].parent].id
		}
		return nil
	})
	return parent
}

func isHeader(line []byte) bool {
	h, ok := rawjson.ScanHead(line)
	return ok && string(h.Type) == string(TypeSession)
}

// linesOfPath is linesToFork of the path to an entry alone.
func (s *Session) linesOfPath(ctx context.Context, entryID string) (func(context.Context, store.Store) iter.Seq2[[]byte, error], error) {
	nodes, err := s.branchNodes(ctx, entryID)
	if err != nil {
		return nil, err
	}
	remarks, err := s.remarksToCarry(ctx, nodes)
	return func(ctx context.Context, to store.Store) iter.Seq2[[]byte, error] {
		return s.copyLines(ctx, to, nodes, entryID, remarks)
	}, err
}

// branchNodes returns, in the order of the log, the nodes of a path and of the
// branches from which merges on it have taken entries.
func (s *Session) branchNodes(ctx context.Context, leafID string) ([]node, error) {
	var nodes []node
	err := s.withWhole(func(t *tree) error {
		if _, ok := t.at(leafID); !ok {
			return s.errNoEntry("fork", leafID)
		}
		wanted := make(map[int32]bool)
		for todo := []string{leafID}; len(todo) > 0; {
			at, ok := t.at(todo[0])
			todo = todo[1:]
			for ; ok && at != none && !wanted[at]; at = t.nodes[at].parent {
				wanted[at] = true
				if t.nodes[at].kind != kindMerge {
					continue
				}
				if e, err := s.entryAt(ctx, &t.nodes[at]); err == nil {
					todo = append(todo, e.Merge.EntryIDs...)
				}
			}
		}
		for i := range t.nodes {
			if wanted[int32(i)] {
				nodes = append(nodes, t.nodes[i])
			}
		}
		slices.SortStableFunc(nodes, func(a, b node) int { return int(a.pos - b.pos) }) // gaps are last in the tree
		return nil
	})
	return nodes, err
}

// remarksToCarry returns the remarks that a copy of some nodes needs in addition, so that it
// has the session's name and tags and the labels of its entries. These count whatever
// branch they are on, and the copied branch may only have older ones.
func (s *Session) remarksToCarry(ctx context.Context, nodes []node) ([]Entry, error) {
	own := slices.DeleteFunc(slices.Clone(nodes), func(n node) bool { return !n.kind.isRemark() })
	entries, err := s.entriesAt(ctx, own)
	if err != nil {
		return nil, err
	}
	var copied remarks
	for _, e := range entries {
		copied.add(e)
	}
	carry, err := s.headlinesToCarry(&copied)
	if err != nil {
		return nil, err
	}
	labels, err := s.Labels()
	if err != nil {
		return nil, err
	}
	for i := range nodes { // in the order of the log, not of the map
		if id := nodes[i].id; labels[id] != copied.labels[id] {
			carry = append(carry, Entry{Type: TypeLabel, Label: &LabelEntry{TargetID: id, Label: labels[id]}})
		}
	}
	return carry, nil
}

// headlinesToCarry returns the entries that give a copy the session's name and tags, if the
// copy would have different ones.
func (s *Session) headlinesToCarry(copied *remarks) (carry []Entry, _ error) {
	name, err := s.Name()
	if err != nil {
		return nil, err
	}
	if name != copied.name {
		carry = append(carry, Name(name))
	}
	now, err := s.Remarks()
	if err != nil {
		return nil, err
	}
	if !slices.Equal(now.Tags, copied.tags.Sorted()) {
		carry = append(carry, Tags(now.Tags...))
	}
	return carry, nil
}

// remarks collects what entries say about their session.
type remarks struct {
	name   string
	tags   TagSet
	labels map[string]string
}

// add takes in the next entry, or nil for one that cannot be read.
func (r *remarks) add(e *Entry) {
	switch {
	case e == nil:
	case e.SessionInfo != nil:
		r.name = e.SessionInfo.Name
	case e.Custom != nil && e.Custom.CustomType == CustomTags:
		r.tags.Apply(e.Custom)
	case e.Label != nil:
		if r.labels == nil {
			r.labels = make(map[string]string)
		}
		r.labels[e.Label.TargetID] = e.Label.Label
	}
}

// copyLines yields the lines of nodes unchanged, adds remarks, and makes sure that the leaf
// is the given one.
func (s *Session) copyLines(ctx context.Context, to store.Store, nodes []node, leaf string, remarks []Entry) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		leaf := leaf
		errStop := errors.New("enough")
		send := func(line []byte) error {
			if !yield(line, nil) {
				return errStop
			}
			return nil
		}
		isGap := func(i int) bool { return nodes[i].kind == kindGap }
		last := ""
		err := s.sendGaps(nodes, send)
		if err == nil {
			err = s.eachLine(ctx, nodes, isGap, func(i int, line store.Line) error {
				last = nodes[i].id
				if err := s.copyBlobs(ctx, to, line); err != nil {
					return err
				}
				return send(s.lineForCopy(nodes[i], line.Data))
			})
		}
		if err == nil && last != leaf && s.storedLeaf(last) != leaf {
			err = send(s.leafLine(leaf, last))
		}
		for i := 0; i < len(remarks) && err == nil; i++ {
			e := remarks[i]
			err = send(s.looseLine(&e, leaf))
			leaf = e.ID
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}

// sendGaps yields a placeholder for each missing entry, so that the copy's tree is connected
// where the original's is.
func (s *Session) sendGaps(nodes []node, send func([]byte) error) error {
	for i := range nodes {
		if nodes[i].kind != kindGap {
			continue
		}
		e := Entry{Type: TypeCustom, ID: nodes[i].id, Custom: &CustomEntry{
			CustomType: CustomGap, Data: map[string]any{"session": s.name},
		}}
		if err := send(s.looseLine(&e, s.parentOf(nodes[i].id))); err != nil {
			return err
		}
	}
	return nil
}

// leafLine returns a line that moves the leaf.
func (s *Session) leafLine(leaf, from string) []byte {
	return s.looseLine(&Entry{Type: TypeLeaf, Leaf: &LeafEntry{FromID: from}}, leaf)
}

// looseLine encodes an entry without appending it to this session.
func (s *Session) looseLine(e *Entry, parent string) []byte {
	if e.ID == "" {
		e.ID = s.opts.NewID(e.Type)
	}
	e.Timestamp = s.opts.Now().UTC()
	if parent != "" {
		e.ParentID = &parent
	}
	line, _ := appendEntry(nil, e) // nothing in it can fail to encode
	return line
}

// holdForCopy holds the blobs of both stores, so that every blob that a line names is still
// there when the copied line is written. It must come before the first line is read. In a
// read-only store nothing can be held; if another process deletes a blob there at that
// moment, it shows as missing.
func (s *Session) holdForCopy(ctx context.Context, to store.Store) (release func(), err error) {
	target, err := to.Blobs().Hold(ctx)
	if err != nil || to == s.store {
		return target, err
	}
	source, err := s.store.Blobs().Hold(ctx)
	switch {
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return target, nil
	case err != nil:
		target()
		return nil, err
	}
	return func() { source(); target() }, nil
}

// copyBlobs puts the blobs that a line refers to into another store, if there is one.
func (s *Session) copyBlobs(ctx context.Context, to store.Store, line store.Line) error {
	if to == nil || to == s.store || !bytes.Contains(line.Data, []byte(`"blob"`)) {
		return nil
	}
	e, err := decodeEntry(bytes.Clone(line.Data))
	if err != nil {
		return nil // it is copied as it is
	}
	for _, ref := range e.blobs() {
		data, err := s.store.Blobs().Get(ctx, ref)
		if errors.Is(err, ErrNotExist) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrInvalid) {
			continue // missing here and in the copy; both report it
		}
		if err != nil {
			return err
		}
		if _, err := to.Blobs().Put(ctx, data); err != nil {
			return err
		}
	}
	return nil
}

// blobs returns the blobs that an entry refers to.
func (e *Entry) blobs() []store.Ref {
	var refs []store.Ref
	for _, block := range e.blocks() {
		if ref, _ := block.blobRef(); ref != "" {
			refs = append(refs, ref)
		}
	}
	if e.Custom != nil && e.Custom.blob() != "" {
		refs = append(refs, e.Custom.blob())
	}
	return refs
}

// blob returns the blob that a custom entry names in its data, or "".
func (c *CustomEntry) blob() store.Ref {
	ref, _ := c.Data["blob"].(string)
	return store.Ref(ref)
}
