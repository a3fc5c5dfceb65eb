// Package chatgpt reads the data export of ChatGPT: a zip archive, or the
// conversations.json out of one.
//
// A conversation there is a tree (its "mapping"), in which every edited question
// and every regenerated answer is a branch. It stays one here.
package chatgpt

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
)

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{Name: "chatgpt", Title: "ChatGPT export", Detect: detect, Read: read}
}

func detect(f *transcript.File) bool {
	if !f.IsZip() {
		head := f.HeadText()
		return shape.OfFile(f).Has("mapping", "[].mapping") && (strings.Contains(head, `"current_node"`) || strings.Contains(head, `"children"`) && strings.Contains(head, `"message"`))
	}
	archive, err := f.Zip()
	if err != nil {
		return false
	}
	defer archive.Close()
	for _, name := range archive.Names() {
		if !isConversations(name) {
			continue
		}
		member, err := archive.File(name)
		return err == nil && detect(member)
	}
	return false
}

// isConversations recognises the files of an archive that hold conversations:
// conversations.json, or its shards.
func isConversations(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "conversations") && strings.HasSuffix(base, ".json")
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	if !f.IsZip() {
		return readConversations(ctx, f, nil, to)
	}
	archive, err := f.Zip()
	if err != nil {
		return err
	}
	return errors.Join(readArchive(ctx, archive, to), archive.Close())
}

func readArchive(ctx context.Context, archive *transcript.Archive, to transcript.Sink) error {
	for _, name := range archive.Names() {
		if !isConversations(name) {
			continue
		}
		member, err := archive.File(name)
		if err == nil {
			err = readConversations(ctx, member, archive, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readConversations(ctx context.Context, f *transcript.File, assets *transcript.Archive, to transcript.Sink) error {
	for doc, err := range f.Documents(ctx) {
		if err != nil {
			return err
		}
		v := loose.Value(doc.Data)
		if !v.Get("mapping").IsObject() {
			to.Problem(transcript.Problem{Pos: doc.Pos, Reason: "not a conversation: it has no mapping"})
			continue
		}
		t := tree{value: v, assets: assets, to: to}
		if err := t.read(); err != nil {
			return err
		}
	}
	return nil
}
