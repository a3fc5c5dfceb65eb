package session

// Everything that differs by type of block is here, as in kinds.go for entries. To add a
// type: give it a ContentType constant and a struct, give the struct a field in Content and
// the methods of payload, and add a row.

// blockKind is the index of a row of blockKinds.
type blockKind uint8

const (
	blockOther blockKind = iota // a type that this version does not know, or none
	blockText
	blockToolUse
	blockToolResult
	blockThinking
	blockImage
	blockAudio
	blockFile
)

// blockRow is what this version knows of a type.
type blockRow struct {
	name ContentType
	union[Content]
	// source finds where the bytes are; nil if the block has them in its members.
	source func(*Content) *Source
}

// blockKinds has a row for each kind, the commonest first.
var blockKinds = [...]blockRow{
	blockText: {
		name:  ContentTypeText,
		union: member(func(c *Content) **TextContent { return &c.Text }),
	},
	blockToolUse: {
		name:  ContentTypeToolUse,
		union: member(func(c *Content) **ToolUseContent { return &c.ToolUse }),
	},
	blockToolResult: {
		name:  ContentTypeToolResult,
		union: member(func(c *Content) **ToolResultContent { return &c.ToolResult }),
	},
	blockThinking: {
		name:  ContentTypeThinking,
		union: member(func(c *Content) **ThinkingContent { return &c.Thinking }),
	},
	blockImage: {
		name:   ContentTypeImage,
		union:  member(func(c *Content) **ImageContent { return &c.Image }),
		source: func(c *Content) *Source { return c.Image.Source },
	},
	blockAudio: {
		name:   ContentTypeAudio,
		union:  member(func(c *Content) **AudioContent { return &c.Audio }),
		source: func(c *Content) *Source { return c.Audio.Source },
	},
	blockFile: {
		name:   ContentTypeFile,
		union:  member(func(c *Content) **FileContent { return &c.File }),
		source: func(c *Content) *Source { return c.File.Source },
	},
}

// kind returns the kind of a type. There are so few that a table would be slower.
func (t ContentType) kind() blockKind {
	for k := blockText; int(k) < len(blockKinds); k++ {
		if blockKinds[k].name == t {
			return k
		}
	}
	return blockOther
}

// isKnown reports whether a content type is one of ours.
func (t ContentType) isKnown() bool { return t.kind() != blockOther }

// payload returns the member of the block and its kind, or nil and blockOther. Raw
// does not count. If there are several, the first counts.
func (c *Content) payload() (blockKind, payload) {
	for k := blockText; int(k) < len(blockKinds); k++ {
		if p := blockKinds[k].get(c); p != nil {
			return k, p
		}
	}
	return blockOther, nil
}

// member returns the type of the block's member and how many it has. Raw does
// not count.
func (c *Content) member() (of ContentType, n int) {
	for k := blockText; int(k) < len(blockKinds); k++ {
		if blockKinds[k].has(c) {
			of, n = blockKinds[k].name, n+1
		}
	}
	return of, n
}

// Source returns where the bytes of an image, a recording or a file are, or nil for any other
// block.
func (c *Content) Source() *Source {
	if k, _ := c.payload(); blockKinds[k].source != nil {
		return blockKinds[k].source(c)
	}
	return nil
}
