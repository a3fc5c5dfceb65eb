package main

import (
	"fmt"
	"strings"
)

// visitGemini hands Gemini CLI an export.
func visitGemini(g *guest) {
	g.visit(func(x *exported) {
		g.ask("lists the export", func() error {
			out, err := g.run("--list-sessions")
			if err == nil && !strings.Contains(out, x.native) {
				err = fmt.Errorf("%s is not listed: %s", x.native, short(out))
			}
			return err
		})
	})
}
