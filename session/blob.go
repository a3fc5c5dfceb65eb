package session

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/coppice-dev/coppice/store"
)

// externalise moves large content into blobs and returns the blocks as they
// are to be written. The blobs are durable before the line that names them is
// written. What the caller gave stays as it is.
func externalise(ctx context.Context, blobs store.Blobs, threshold int, blocks []Content) ([]Content, error) {
	out := blocks
	for i := range blocks {
		c, changed, err := externaliseBlock(ctx, blobs, threshold, blocks[i])
		if err != nil {
			return nil, err
		}
		if !changed {
			continue
		}
		if &out[0] == &blocks[0] {
			out = slices.Clone(blocks)
		}
		out[i] = c
	}
	return out, nil
}

func externaliseBlock(ctx context.Context, blobs store.Blobs, threshold int, c Content) (_ Content, changed bool, err error) {
	if s := c.source(); s != nil {
		moved, err := externaliseSource(ctx, blobs, threshold, s)
		if err != nil || moved == s {
			return c, false, err
		}
		return c.withSource(moved), true, nil
	}
	r := c.ToolResult
	if r == nil {
		return c, false, nil
	}
	parts, err := externalise(ctx, blobs, threshold, r.Parts)
	if err != nil {
		return c, false, err
	}
	changed = len(parts) > 0 && &parts[0] != &r.Parts[0]
	large := len(r.Content) > threshold
	if !changed && !large {
		return c, false, nil
	}
	result := *r
	result.Parts = parts
	if large {
		result.Blob, err = blobs.Put(ctx, []byte(r.Content))
		result.Content, result.Size = "", int64(len(r.Content))
	}
	c.ToolResult = &result
	return c, true, err
}

// externaliseSource returns s itself if it stays in the line. Only base64 that
// decodes and encodes to the same text is moved, because the text must come
// back as it was.
func externaliseSource(ctx context.Context, blobs store.Blobs, threshold int, s *Source) (*Source, error) {
	if s.Type != "base64" || len(s.Data) <= threshold {
		return s, nil
	}
	data, err := base64.StdEncoding.Strict().DecodeString(s.Data)
	if err != nil || base64.StdEncoding.EncodeToString(data) != s.Data {
		return s, nil
	}
	moved := *s
	moved.Blob, err = blobs.Put(ctx, data)
	moved.Data, moved.Size = "", int64(len(data))
	return &moved, err
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

// resolve fills in the content that is kept in blobs. What is missing is
// reported and shown as missing; the rest of the entry is still worth reading.
func resolve(ctx context.Context, blobs store.Blobs, e *Entry, pos store.Pos) []Problem {
	var problems []Problem
	for _, c := range e.blocks() {
		problems = append(problems, resolveBlock(ctx, blobs, c, e.ID, pos)...)
	}
	return problems
}

// blocks returns the blocks of an entry that may refer to blobs.
func (e *Entry) blocks() []*Content {
	var blocks []Content
	switch {
	case e.Message != nil:
		blocks = e.Message.Content
	case e.ContextEdit != nil:
		blocks = e.ContextEdit.Replacement
	}
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

func resolveBlock(ctx context.Context, blobs store.Blobs, c *Content, id string, pos store.Pos) []Problem {
	ref, fill := c.blobRef()
	if ref == "" {
		return nil
	}
	data, err := blobs.Get(ctx, ref)
	if err != nil {
		if c.ToolResult != nil {
			c.ToolResult.Content = fmt.Sprintf("[content is missing: %s]", ref)
		}
		return []Problem{{Kind: ProblemBlob, EntryID: id, Pos: pos, Detail: err.Error()}}
	}
	fill(data)
	return nil
}

// blobRef returns the blob that a block wants, and how to fill it in; "" if it
// is whole.
func (c *Content) blobRef() (store.Ref, func([]byte)) {
	if s := c.source(); s != nil && s.Blob != "" && s.Data == "" {
		return s.Blob, func(data []byte) { s.Data = base64.StdEncoding.EncodeToString(data) }
	}
	if r := c.ToolResult; r != nil && r.Blob != "" && r.Content == "" {
		return r.Blob, func(data []byte) { r.Content = string(data) }
	}
	return "", nil
}
