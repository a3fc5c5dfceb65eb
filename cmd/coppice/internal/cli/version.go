package cli

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

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

// versionCommand says more than --version does: what to put into a bug report.
func versionCommand(a *app) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
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

// linkedVersion and linkedRevision are set by the linker (-X) when an archive is
// built for others: make dist. The revision ends with -dirty if the source was
// changed since. Other builds leave them empty.
var linkedVersion, linkedRevision string

// thisBuild describes the program that runs.
func thisBuild() build {
	info, _ := debug.ReadBuildInfo()
	return buildOf(linkedVersion, linkedRevision, info)
}

// buildOf describes a build. What the linker was told counts. Without it, the
// version is that of the module, which is what go install MODULE@VERSION and
// builds in a checkout record; the revision is that of the checkout.
func buildOf(linkedVersion, linkedRevision string, info *debug.BuildInfo) build {
	b := build{Version: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info != nil {
		b.Version = cmp.Or(info.Main.Version, b.Version)
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	b.Version = cmp.Or(linkedVersion, b.Version)
	if linkedRevision != "" {
		b.Revision, b.Modified = strings.CutSuffix(linkedRevision, "-dirty")
	}
	return b
}
