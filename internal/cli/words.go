package cli

import "github.com/coppice-dev/coppice/render"

// Words of package render by short names, for the commands that import and export.
var (
	counted    = render.Counted
	humanBytes = render.Bytes
	oneLine    = render.OneLine
)
