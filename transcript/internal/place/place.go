// Package place says where programs keep their files, where several do it in the same way.
package place

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/transcript"
)

// In returns the place below a directory where the names of the files match one of the
// patterns, which are those of path.Match.
func In(dir string, patterns ...string) []transcript.Place {
	return []transcript.Place{{Dir: dir, Match: Named(patterns...)}}
}

// Named matches files by their names, in whatever directory.
func Named(patterns ...string) func(file string) bool {
	return func(file string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			ok, _ := path.Match(pattern, path.Base(file))
			return ok
		})
	}
}

// Below matches files by their names, in directories of a name and below them.
func Below(dir string, patterns ...string) func(file string) bool {
	named := Named(patterns...)
	return func(file string) bool { return strings.Contains("/"+file, "/"+dir+"/") && named(file) }
}

// Config returns the directory in which applications keep their settings.
func Config(env transcript.Env) string {
	switch env.GOOS {
	case "darwin":
		return filepath.Join(env.Home, "Library", "Application Support")
	case "windows":
		return env.Dir("APPDATA", "AppData/Roaming")
	}
	return env.Dir("XDG_CONFIG_HOME", ".config")
}

// Data returns the directory in which programs keep their data.
func Data(env transcript.Env) string { return env.Dir("XDG_DATA_HOME", ".local/share") }
