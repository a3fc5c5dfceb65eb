package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what version --json prints.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, if the build knows it
	Modified bool   `json:"modified"`           // the source was changed since that revision
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func versionCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		GroupID: "about",
		Args:    cobra.NoArgs,
		// It must work whatever is in the configuration.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if a.flags.json {
				return a.printJSON(b)
			}
			revision := b.Revision
			if b.Modified {
				revision += " (modified)"
			}
			if revision != "" {
				revision += " "
			}
			return a.print("coppice %s %s%s %s/%s", b.Version, revision, b.Go, b.OS, b.Arch)
		},
	})
}

func thisBuild() build {
	b := build{Version: version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
