package cli

import "github.com/coppice-dev/coppice/render"

// The words that package render has for everyone, by the short names that the
// commands use.
var (
	counted    = render.Counted
	thousands  = render.Thousands
	humanBytes = render.Bytes
	humanCount = render.Count
	oneLine    = render.OneLine
	ago        = render.Ago
	shortIDs   = render.ShortIDs
)
