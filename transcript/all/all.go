// Package all knows every format. Detect says which one a file has, Named has one
// by its name. Importing this package links all readers, SQLite among them; a program
// that needs one format imports its package alone.
package all

import (
	"slices"
	"sync"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/aider"
	"github.com/coppice-dev/coppice/transcript/amp"
	"github.com/coppice-dev/coppice/transcript/api"
	"github.com/coppice-dev/coppice/transcript/chatgpt"
	"github.com/coppice-dev/coppice/transcript/claudeai"
	"github.com/coppice-dev/coppice/transcript/claudecode"
	"github.com/coppice-dev/coppice/transcript/cline"
	"github.com/coppice-dev/coppice/transcript/codex"
	"github.com/coppice-dev/coppice/transcript/copilot"
	"github.com/coppice-dev/coppice/transcript/crush"
	"github.com/coppice-dev/coppice/transcript/cursor"
	"github.com/coppice-dev/coppice/transcript/dataset"
	"github.com/coppice-dev/coppice/transcript/droid"
	"github.com/coppice-dev/coppice/transcript/geminicli"
	"github.com/coppice-dev/coppice/transcript/goose"
	"github.com/coppice-dev/coppice/transcript/grok"
	"github.com/coppice-dev/coppice/transcript/kimi"
	"github.com/coppice-dev/coppice/transcript/llm"
	"github.com/coppice-dev/coppice/transcript/openagent"
	"github.com/coppice-dev/coppice/transcript/opencode"
	"github.com/coppice-dev/coppice/transcript/penguin"
	"github.com/coppice-dev/coppice/transcript/pi"
	"github.com/coppice-dev/coppice/transcript/picoclaw"
	"github.com/coppice-dev/coppice/transcript/qwen"
	"github.com/coppice-dev/coppice/transcript/trajectory"
	"github.com/coppice-dev/coppice/transcript/zed"
)

// Formats returns all formats in the order in which files are asked whether they
// are of them: the specific before the general. Agents come first, then exports,
// then what others made of conversations, and last the bodies of APIs, which are
// part of much else.
func Formats() []*transcript.Format {
	return slices.Concat(
		[]*transcript.Format{
			codex.Format(), geminicli.Format(), qwen.Format(), claudecode.Format(), pi.Format(),
			copilot.Format(), droid.Format(), cursor.Format(), kimi.Format(), grok.Format(), amp.Format(), cline.Format(),
			opencode.Format(), crush.Format(), goose.Format(), llm.Format(), zed.Format(), aider.Format(),
			penguin.Format(), openagent.Format(), picoclaw.Format(),
			chatgpt.Format(), claudeai.Format(),
		},
		trajectory.Formats(),
		dataset.Formats(),
		api.Formats(),
	)
}

// Named returns the format of a name, or nil.
func Named(name string) *transcript.Format {
	formats := Formats()
	at := slices.IndexFunc(formats, func(f *transcript.Format) bool { return f.Name == name })
	if at < 0 {
		return nil
	}
	return formats[at]
}

var known = sync.OnceValue(Formats)

// Detect returns the format that a file is of, or nil.
func Detect(f *transcript.File) *transcript.Format {
	for _, format := range known() {
		if format.Detect(f) {
			return format
		}
	}
	return nil
}
