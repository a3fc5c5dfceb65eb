package session

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-dev/coppice/internal/budget"
	"github.com/coppice-dev/coppice/store"
)

// heldBlobs puts blobs into a store and protects them: from the first put until release,
// no process deletes any blob of the store. Without that, a collector could run between
// the put and the line that names the blob, and delete the blob as unused. Most appends
// put nothing and take no hold.
type heldBlobs struct {
	store store.Store
	free  func() // ends the hold; nil until there is one
}

// hold begins the hold.
func (h *heldBlobs) hold(ctx context.Context) error {
	if h.free != nil {
		return nil
	}
	free, err := h.store.Blobs().Hold(ctx)
	if err == nil {
		h.free = free
	}
	return err
}

func (h *heldBlobs) put(ctx context.Context, data []byte) (store.Ref, error) {
	if err := h.hold(ctx); err != nil {
		return "", err
	}
	return h.store.Blobs().Put(ctx, data)
}

// release ends the hold. Call it when the lines that name the blobs are appended, or when
// it is certain that they will not be.
func (h *heldBlobs) release() {
	if h.free != nil {
		h.free()
	}
}

// mover moves large content of entries into blobs, in two steps. First it finds out what
// to move, so that the entry can be measured and refused while nothing is written yet;
// then it puts the blobs. It copies what it changes: the caller's entries stay as they
// are.
type mover struct {
	ctx       context.Context
	store     store.Store
	threshold int // negative: nothing moves
	moves     []move
	external  map[int]int64 // by index of the entry, how many of its bytes are or will be in blobs
}

// move is content on its way into a blob.
type move struct {
	data []byte
	name func(store.Ref) // takes the name of the blob
}

// toCome is the reference of a blob that has not been put yet.
var toCome = store.RefOf(nil)

// move replaces large content of an entry with references to blobs that put will fill in.
func (m *mover) move(i int, e *Entry) {
	var size int64
	content := e.content()
	if blocks := m.blocks(content, &size); !sameBlocks(blocks, content) {
		e.setContent(blocks)
	}
	m.kept(e)
	if size == 0 {
		return
	}
	if m.external == nil {
		m.external = make(map[int]int64)
	}
	m.external[i] = size
}

// put stores the content in blobs. When it returns, they are as durable as the store
// promises; the lines that name them come later.
func (m *mover) put(held *heldBlobs) error {
	for _, move := range m.moves {
		ref, err := held.put(m.ctx, move.data)
		if err != nil {
			return err
		}
		move.name(ref)
	}
	return nil
}

// blocks returns the blocks as they will be written, and adds to size the bytes that are in blobs.
func (m *mover) blocks(blocks []Content, size *int64) []Content {
	out := blocks
	for i := range blocks {
		if blocks[i].hasNoBlob() {
			continue
		}
		c, changed := m.block(blocks[i], size)
		if !changed {
			continue
		}
		if &out[0] == &blocks[0] {
			out = slices.Clone(blocks)
		}
		out[i] = c
	}
	return out
}

// hasNoBlob reports whether a block has nothing that could be in a blob. Most do.
func (c *Content) hasNoBlob() bool {
	return c.ToolResult == nil && c.Source() == nil
}

func (m *mover) block(c Content, size *int64) (_ Content, changed bool) {
	if ref, _ := c.blobRef(); ref != "" {
		*size += m.sizeOf(ref, &c) // the caller gave a reference
	}
	if s := c.Source(); s != nil {
		moved := m.source(s, size)
		if moved == s {
			return c, false
		}
		return c.withSource(moved), true
	}
	r := c.ToolResult
	if r == nil {
		return c, false
	}
	parts := m.blocks(r.Parts, size)
	changed = len(parts) > 0 && &parts[0] != &r.Parts[0]
	large := m.threshold >= 0 && len(r.Content) > m.threshold
	if !changed && !large {
		return c, false
	}
	result := *r
	result.Parts = parts
	if large {
		result.Blob, result.Content, result.Size = toCome, "", int64(len(r.Content))
		m.moves = append(m.moves, move{[]byte(r.Content), func(ref store.Ref) { result.Blob = ref }})
		*size += result.Size
	}
	c.ToolResult = &result
	return c, true
}

// source returns s itself if it stays in the line. It moves only base64 that decodes and
// encodes to exactly the same text, because readers must get back every byte.
func (m *mover) source(s *Source, size *int64) *Source {
	if s.Type != "base64" {
		return s
	}
	data, ok := m.large(s.Data)
	if !ok {
		return s
	}
	moved := *s
	moved.Blob, moved.Data, moved.Size = toCome, "", int64(len(data))
	m.moves = append(m.moves, move{data, func(ref store.Ref) { moved.Blob = ref }})
	*size += moved.Size
	return &moved
}

// large decodes base64 that does not stay in the line.
func (m *mover) large(text string) ([]byte, bool) {
	if m.threshold < 0 || len(text) <= m.threshold {
		return nil, false
	}
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	return data, err == nil && base64.StdEncoding.EncodeToString(data) == text
}

// kept moves the part of the source that an import kept.
func (m *mover) kept(e *Entry) {
	if e.Custom == nil || e.Custom.CustomType != CustomImport {
		return
	}
	text, _ := e.Custom.Data["data"].(string)
	data, ok := m.large(text)
	if !ok {
		return
	}
	moved := *e.Custom
	moved.Data = maps.Clone(moved.Data)
	delete(moved.Data, "data")
	moved.Data["blob"] = string(toCome)
	e.Custom = &moved
	m.moves = append(m.moves, move{data, func(ref store.Ref) { moved.Data["blob"] = string(ref) }})
}

// sizeOf returns the size of a blob that the caller refers to. The size that the block
// claims counts only if there is no such blob: otherwise a caller could get around a
// limit.
func (m *mover) sizeOf(ref store.Ref, c *Content) int64 {
	if data, err := m.store.Blobs().Get(m.ctx, ref); err == nil {
		return int64(len(data))
	}
	return c.blobSize()
}

// withSource returns the block with another source.
func (c Content) withSource(s *Source) Content {
	switch {
	case c.Image != nil:
		image := *c.Image
		image.Source = s
		c.Image = &image
	case c.Audio != nil:
		audio := *c.Audio
		audio.Source = s
		c.Audio = &audio
	case c.File != nil:
		file := *c.File
		file.Source = s
		c.File = &file
	}
	return c
}

// resolve fills in content from blobs. If the store has some of it no longer, it reports that
// and says so in the content; the rest of the entry is still worth reading. If a blob cannot be
// read now, it returns an error: a blob that is only out of reach must not be taken for gone.
func resolve(ctx context.Context, blobs store.Blobs, e *Entry, pos store.Pos) ([]Problem, error) {
	var problems []Problem
	for _, c := range e.blocks() {
		ref, fill := c.blobRef()
		if ref == "" {
			continue
		}
		data, err := blobs.Get(ctx, ref)
		if err == nil {
			if err := budget.Hold(ctx, int64(len(data))); err != nil {
				return problems, err
			}
			fill(data)
			continue
		}
		if !IsGone(err) {
			return problems, blobError(e.ID, ref, err)
		}
		if c.ToolResult != nil {
			c.ToolResult.Content = goneText(ref)
		}
		problems = append(problems, blobProblem(e.ID, pos, ref, err))
	}
	return problems, nil
}

// IsGone reports whether the error of a blob means that nobody has its content any more, and
// not only that it is out of reach for now.
func IsGone(err error) bool {
	return errors.Is(err, ErrNotExist) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrInvalid)
}

func blobError(entryID string, ref store.Ref, err error) error {
	return fmt.Errorf("entry %s: the blob %s cannot be read: %w", entryID, ref, err)
}

// goneText is the text of a tool result whose blob is gone.
func goneText(ref store.Ref) string { return fmt.Sprintf("[content is missing: %s]", ref) }

// Missing returns the blobs of an entry whose content is not in it: of one that was read, those
// that the store no longer has.
func (e *Entry) Missing() []store.Ref {
	var missing []store.Ref
	for _, c := range e.blocks() {
		if r := c.ToolResult; r != nil && r.Blob != "" && r.Content == goneText(r.Blob) {
			missing = append(missing, r.Blob)
		} else if ref, _ := c.blobRef(); ref != "" {
			missing = append(missing, ref)
		}
	}
	return missing
}

// Fill fills in everything that an entry of the session, as Peek returns it, has in blobs:
// its content, and what an import kept of its source. It returns what is missing; that stays
// a reference.
func (s *Session) Fill(e *Entry) []Problem {
	return e.FillFrom(func(ref store.Ref) ([]byte, error) { return s.store.Blobs().Get(s.context(), ref) })
}

// FillFrom is Session.Fill with blobs from any source. The entry must not share memory with
// others.
func (e *Entry) FillFrom(get func(store.Ref) ([]byte, error)) []Problem {
	var problems []Problem
	from := func(ref store.Ref, fill func([]byte)) {
		if data, err := get(ref); err != nil {
			problems = append(problems, blobProblem(e.ID, 0, ref, err))
		} else {
			fill(data)
		}
	}
	for _, c := range e.blocks() {
		if ref, fill := c.blobRef(); ref != "" {
			from(ref, fill)
		}
	}
	if c := e.Custom; c != nil && c.CustomType == CustomImport && c.blob() != "" {
		from(c.blob(), func(data []byte) {
			delete(c.Data, "blob")
			c.Data["data"] = base64.StdEncoding.EncodeToString(data)
		})
	}
	return problems
}

// blobBytes returns how many bytes resolve would fill in, according to the blocks, or 0 if
// there is nothing to fill in.
func (e *Entry) blobBytes() int {
	if e.Message == nil {
		return 0
	}
	return blobBytes(e.Message.Content)
}

func blobBytes(blocks []Content) int {
	n := 0
	for i := range blocks {
		if ref, _ := blocks[i].blobRef(); ref != "" {
			n += max(1, int(blocks[i].blobSize()))
		}
		if r := blocks[i].ToolResult; r != nil {
			n += blobBytes(r.Parts)
		}
	}
	return n
}

// blocks returns the blocks of an entry that may refer to blobs.
func (e *Entry) blocks() []*Content {
	blocks := e.content()
	var all []*Content
	for i := range blocks {
		all = append(all, &blocks[i])
		if r := blocks[i].ToolResult; r != nil {
			for j := range r.Parts {
				all = append(all, &r.Parts[j])
			}
		}
	}
	return all
}

// blobProblem describes an entry whose blob cannot be read.
func blobProblem(entryID string, pos store.Pos, ref store.Ref, err error) Problem {
	return Problem{Kind: ProblemBlob, EntryID: entryID, Pos: pos, Detail: err.Error(), Blob: ref, Err: err}
}

// blobRef returns the blob that a block needs and a function that fills it in, or "" if
// the block is complete.
func (c *Content) blobRef() (store.Ref, func([]byte)) {
	if s := c.Source(); s != nil && s.Blob != "" && s.Data == "" {
		return s.Blob, func(data []byte) {
			s.Data = base64.StdEncoding.EncodeToString(data)
			if len(data) == 0 {
				s.Blob, s.Size = "", 0 // or it would seem to be missing
			}
		}
	}
	if r := c.ToolResult; r != nil && r.Blob != "" && r.Content == "" {
		return r.Blob, func(data []byte) {
			r.Content = string(data)
			if len(data) == 0 {
				r.Blob, r.Size = "", 0
			}
		}
	}
	return "", nil
}
