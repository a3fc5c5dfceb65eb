package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/coppice-dev/coppice/home"
)

// visitCcusage asks whether an export costs what the original costs.
func visitCcusage(agent string) func(*guest) {
	return func(g *guest) {
		g.ask("counts an export of "+agent+"'s session like the original", func() error {
			maker := *g
			maker.program = programNamed(agent)
			if err := maker.setUp(); err != nil {
				return err
			}
			id, err := maker.makesOne()
			if err != nil {
				return err
			}
			other := filepath.Join(g.dir, "other-user")
			if err := g.exportAs(other, home.ExportRequest{OpenRequest: home.OpenRequest{Session: id}, Format: agents[agent].makes.format}); err != nil {
				return err
			}
			original, err := g.counts(agent, g.user())
			if err != nil {
				return err
			}
			copied, err := g.counts(agent, other)
			if err == nil && original != copied {
				err = fmt.Errorf("the original counts as %s,\nthe export as %s", original, copied)
			}
			return err
		})
	}
}

// counts returns what ccusage says about a user's sessions with an agent, as JSON.
func (g *guest) counts(agent, user string) (string, error) {
	out, err := g.runs(g.program.name, []string{"HOME=" + user}, agent, "session", "--json", "--offline")
	if err != nil {
		return "", err
	}
	var counted struct {
		Sessions []json.RawMessage
		Totals   struct{ TotalTokens int }
	}
	if err := json.Unmarshal([]byte(out), &counted); err != nil {
		return "", fmt.Errorf("%w: %s", err, short(out))
	}
	if len(counted.Sessions) != 1 || counted.Totals.TotalTokens == 0 {
		return "", errors.New("no session with tokens: " + out)
	}
	return canonical([]byte(out)), nil
}

// exportAs exports as another user does, who has the same sessions.
func (g *guest) exportAs(user string, r home.ExportRequest) error {
	settings, err := home.LoadSettings(func(name string) string { return map[string]string{"HOME": user}[name] })
	if err != nil {
		return err
	}
	h, err := home.Open(g.ctx, g.home.Dir(), &home.Options{Settings: settings})
	if err != nil {
		return err
	}
	_, err = h.Transfer.Export(g.ctx, r, nil)
	return errors.Join(err, h.Close())
}
