package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
)

// liveFlags are the flags of what a person looks at, and which imports meanwhile.
type liveFlags struct{ all, none bool }

func (f *liveFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.all, "import", false, "import what all agents of this machine write, live")
	cmd.Flags().BoolVar(&f.none, "no-import", false, "import nothing meanwhile")
	cmd.MarkFlagsMutuallyExclusive("import", "no-import")
}

// watched returns which agents home.WatchAgents watches. It asks a person at a terminal once about
// agents whose sessions were never imported; the setting remembers the answer.
func (a *app) watched(ctx context.Context, h *home.Home, f *liveFlags) (string, error) {
	switch {
	case f.none:
		return home.ImportNone, nil
	case f.all:
		return home.ImportAll, nil
	case terminalOf(a.stdin) == nil || a.talkScreen == nil:
		return "", nil
	}
	others, err := h.UnwatchedAgents(ctx)
	if err != nil || len(others) == 0 {
		return "", err
	}
	var have []string
	for _, p := range others {
		have = append(have, fmt.Sprintf("%s has %s", p.Title, render.Counted(p.Files, "file", "files")))
	}
	a.say("Other agents keep conversations on this machine: %s.", strings.Join(have, ", "))
	a.say("They can be here, too, as they are written; nothing is changed there.")
	yes, err := a.isWanted(ctx, "Import them, now and from now on?")
	if err != nil {
		return "", err
	}
	which := home.ImportKnown
	if yes {
		which = home.ImportAll
	}
	if _, err := h.Settings().Set(home.SettingImport, which); err != nil {
		a.say("%s this could not be remembered: %v", a.paint(yellow, "warning:"), err)
		return which, nil
	}
	other := map[string]string{home.ImportAll: home.ImportKnown, home.ImportKnown: home.ImportAll}[which]
	a.say("remembered; %s changes it", a.elsewhere().command("config set import "+other, nil))
	return which, nil
}

// allIf is for commands that import nothing unless they are asked to.
func allIf(imports bool) string {
	if imports {
		return home.ImportAll
	}
	return home.ImportNone
}

// importing works and meanwhile imports what agents write. The import works on the home, so it has
// to end before the home is closed.
func importing(ctx context.Context, h *home.Home, which string, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	var failed error
	watch.Go(func() { failed = h.WatchAgents(ctx, which) })
	err := work(ctx)
	cancel()
	watch.Wait()
	return errors.Join(err, failed)
}
