// Package chatgpt reads the data export of ChatGPT: a zip archive, or the
// conversations.json out of one.
//
// A conversation there is a tree (its "mapping"), in which every edited question
// and every regenerated answer is a branch. It stays one here.
package chatgpt

import (
	"context"
	"path"
	"strings"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
	"github.com/coppice-dev/coppice/transcript/internal/records"
	"github.com/coppice-dev/coppice/transcript/internal/shape"
	"github.com/coppice-dev/coppice/transcript/internal/walk"
)

// Format returns the format.
func Format() *transcript.Format {
	return &transcript.Format{Name: "chatgpt", Title: "ChatGPT export", Detect: detect, Read: read}
}

func detect(f *transcript.File) bool {
	return records.Holds(f, isConversations, func(f *transcript.File) bool {
		head := f.HeadText()
		return shape.OfFile(f).Has("mapping", "[].mapping") && (strings.Contains(head, `"current_node"`) || strings.Contains(head, `"children"`) && strings.Contains(head, `"message"`))
	})
}

// isConversations recognises the files of an archive that hold conversations:
// conversations.json, or its shards.
func isConversations(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "conversations") && strings.HasSuffix(base, ".json")
}

func read(ctx context.Context, f *transcript.File, to transcript.Sink) error {
	return records.EachMember(f, func(m records.Member) error {
		if m.Archive != nil && !isConversations(m.Name) {
			return nil
		}
		return walk.Each(m.Documents(ctx), func(doc transcript.Document) error {
			t := tree{value: loose.Value(doc.Data), assets: m.Archive, to: to}
			if !t.value.Get("mapping").IsObject() {
				to.Problem(transcript.Problem{Pos: doc.Pos, Reason: "not a conversation: it has no mapping"})
				return nil
			}
			return t.read()
		})
	})
}
