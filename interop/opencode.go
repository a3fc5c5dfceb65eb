package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// visitOpencode hands opencode an export.
func visitOpencode(g *guest) {
	g.visit(func(x *exported) {
		g.ask("lists and exports the export", x.opencodeReads)
	})
}

// opencodeReads lets opencode list the session and export it again.
func (x *exported) opencodeReads() error {
	list, err := x.g.run("session", "list", "--format", "json")
	if err != nil {
		return err
	}
	if !strings.Contains(list, x.native) {
		return fmt.Errorf("%s is not listed: %s", x.native, short(list))
	}
	out, err := x.g.run("export", x.native)
	if err != nil {
		return err
	}
	x.g.save("export.json", []byte(out))
	var read struct {
		Messages []struct {
			Info  struct{ Role string }
			Parts []struct {
				Type, Text, Tool, CallID, Mime string
				State                          struct {
					Input         json.RawMessage
					Output, Error string
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &read); err != nil {
		return err
	}
	var got []fact
	for _, m := range read.Messages {
		for _, p := range m.Parts {
			switch p.Type {
			case "text":
				got = append(got, fact{Kind: factText, Role: m.Info.Role, Text: p.Text})
			case "file":
				got = append(got, fact{Kind: factImage, Role: m.Info.Role})
			case "tool":
				got = append(got, fact{Kind: factCall, ID: p.CallID, Name: p.Tool, Args: canonical(p.State.Input)},
					fact{Kind: factResult, ID: p.CallID, Text: p.State.Output + p.State.Error})
			}
		}
	}
	// It shows everything from the beginning, and the summary where it was made.
	kept := slices.DeleteFunc(slices.Clone(x.want), func(f fact) bool { return f.any || f.Role == "" })
	return wrong(compare(kept, got))
}
