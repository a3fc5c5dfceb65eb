// Package all registers every format: see transcript.Register. Importing it links all readers,
// SQLite included; a program that needs one format imports that format's package instead.
package all

import (
	"slices"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/aider"
	"github.com/coppice-dev/coppice/transcript/format/amp"
	"github.com/coppice-dev/coppice/transcript/format/api"
	"github.com/coppice-dev/coppice/transcript/format/chatgpt"
	"github.com/coppice-dev/coppice/transcript/format/claudeai"
	"github.com/coppice-dev/coppice/transcript/format/claudecode"
	"github.com/coppice-dev/coppice/transcript/format/cline"
	"github.com/coppice-dev/coppice/transcript/format/codex"
	"github.com/coppice-dev/coppice/transcript/format/copilot"
	"github.com/coppice-dev/coppice/transcript/format/crush"
	"github.com/coppice-dev/coppice/transcript/format/cursor"
	"github.com/coppice-dev/coppice/transcript/format/dataset"
	"github.com/coppice-dev/coppice/transcript/format/droid"
	"github.com/coppice-dev/coppice/transcript/format/geminicli"
	"github.com/coppice-dev/coppice/transcript/format/goose"
	"github.com/coppice-dev/coppice/transcript/format/grok"
	"github.com/coppice-dev/coppice/transcript/format/kimi"
	"github.com/coppice-dev/coppice/transcript/format/llm"
	"github.com/coppice-dev/coppice/transcript/format/openagent"
	"github.com/coppice-dev/coppice/transcript/format/opencode"
	"github.com/coppice-dev/coppice/transcript/format/penguin"
	"github.com/coppice-dev/coppice/transcript/format/pi"
	"github.com/coppice-dev/coppice/transcript/format/picoclaw"
	"github.com/coppice-dev/coppice/transcript/format/qwen"
	"github.com/coppice-dev/coppice/transcript/format/zed"
)

func init() { transcript.Register(formats) }

// formats lists the specific before the general: agents come first, then exports, then data
// sets, and last the bodies of APIs, which occur inside many other files.
func formats() []*transcript.Format {
	return slices.Concat(
		[]*transcript.Format{
			codex.Format(), geminicli.Format(), qwen.Format(), claudecode.Format(), pi.Format(),
			copilot.Format(), droid.Format(), cursor.Format(), kimi.Format(), grok.Format(), amp.Format(), cline.Format(),
			opencode.Format(), crush.Format(), goose.Format(), llm.Format(), zed.Format(), aider.Format(),
			penguin.Format(), openagent.Format(), picoclaw.Format(),
			chatgpt.Format(), claudeai.Format(),
		},
		dataset.Formats(),
		api.Formats(),
	)
}
