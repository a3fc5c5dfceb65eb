package cli

import (
	"runtime/debug"
	"testing"
)

// The version is what the linker was told, or that of the module, or unknown.
func TestVersionOfABuild(t *testing.T) {
	t.Parallel()
	checkout := &debug.BuildInfo{
		Main:     debug.Module{Version: "v1.2.4-0.20260301100000-0123456789ab+dirty"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789ab"}, {Key: "vcs.modified", Value: "true"}},
	}
	for name, c := range map[string]struct {
		version, revision string // what the linker was told
		info              *debug.BuildInfo
		want              build
	}{
		"make dist":                  {"v1.2.3", "abcd", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, build{Version: "v1.2.3", Revision: "abcd"}},
		"make dist, changed":         {"v1.2.3-2-gabcd-dirty", "abcd-dirty", checkout, build{Version: "v1.2.3-2-gabcd-dirty", Revision: "abcd", Modified: true}},
		"go install MODULE@v1.2.3":   {"", "", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, build{Version: "v1.2.3"}},
		"go build in a checkout":     {"", "", checkout, build{Version: checkout.Main.Version, Revision: "0123456789ab", Modified: true}},
		"a build that knows nothing": {"", "", nil, build{Version: "unknown"}},
	} {
		got := buildOf(c.version, c.revision, c.info)
		if got.Version != c.want.Version || got.Revision != c.want.Revision || got.Modified != c.want.Modified {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
