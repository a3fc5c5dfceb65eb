package repo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/coppice-dev/coppice"

// floors is the house, bottom floor first. A package may import packages of
// lower floors, and nothing beside or above it. A room is a package of the
// module; one that ends in /... stands for a package and those below it, which
// may import one another.
//
// Where two packages of one floor must know each other, the one that is imported
// goes a floor down: a line in this table, and a decision to be reviewed.
var floors = [][]string{
	{".", "store/vfs/...", "render/plain", "render/typed", "internal/gate", "internal/pool", "internal/budget", "internal/chaingen", "internal/leak", "internal/needs", "internal/repo", "internal/soak"},
	{"store", "internal/rawjson"},
	{"store/file", "store/lease", "store/memory", "store/remote", "store/storetest"},
	{"store/postgres"}, // keeps blobs in files, too
	{"redact", "internal/s3test"},
	{"session"},
	{"session/files"},
	{"session/clean", "index/...", "window/...", "provider/...", "keyed/..."},
	{"internal/boundary", "internal/postgrestest"},
	{"agent/..."},
	{"conversation/...", "transcript/...", "render/...", "upkeep/..."},
	{"home"}, // the floor that every face stands on
	{"home/local"},
	{"home/all"},
	{"server/...", "client/..."},
	{"cmd/coppice/internal/tui/...", "cmd/coppice/internal/demo"},
	{"cmd/coppice/internal/cli"},
	{"cmd/...", "bench/...", "examples/...", "interop", "scripts/..."},
}

const (
	sys  = "golang.org/x/sys"
	zstd = "github.com/klauspost/compress"
	pgx  = "github.com/jackc/pgx/v5"
)

// outside lists the core packages and the modules that each may import beyond
// the standard library and this module. Packages that are not listed are free.
var outside = map[string][]string{
	"store/vfs":        {sys},
	"render/plain":     {},
	"render/typed":     {},
	"internal/gate":    {},
	"internal/pool":    {},
	"internal/budget":  {},
	"store":            {},
	"store/lease":      {sys},
	"store/memory":     {},
	"store/postgres":   {pgx, "github.com/jackc/puddle/v2", "github.com/minio/minio-go/v7"}, // pgx's pool, and buckets
	"store/remote":     {},
	"store/file":       {sys, zstd},
	"internal/rawjson": {},
	"session":          {},
}

// reach lists the modules that a package may need, its imports' imports
// included: what a user who imports it has to download and trust.
var reach = map[string][]string{
	"session": {sys, zstd},
	// A program that uses a home on another machine. What else a home needs is registered by
	// home/all, which it does not import.
	"client": {
		sys, zstd, "github.com/pelletier/go-toml/v2", // settings
		"github.com/aymanbagabas/go-udiff", "github.com/clipperhouse/displaywidth", "github.com/clipperhouse/uax29/v2",
		"github.com/kljensen/snowball", "golang.org/x/text", // what an index does with words
		"github.com/google/jsonschema-go", "golang.org/x/image", "golang.org/x/net", "mvdan.cc/sh/v3", // chats with tools
	},
}

// apart lists the rooms that are for other people's programs, and who may import each of them
// here: nothing that ours is made of.
var apart = map[string][]string{
	"conversation/...": {"bench/...", "examples/..."},
	"keyed/...":        {"bench/...", "examples/..."},
}

// registered lists the packages that home does not import: it knows them by what is registered,
// as package database/sql knows its drivers.
var registered = []string{"store/file", "store/memory", "store/postgres", "store/remote", "index/sqlite", "index/postgres"}

// testers may import the testing package outside of test files.
var testers = []string{"internal/leak", "internal/needs", "internal/postgrestest", "internal/s3test", "internal/soak", "store/storetest", "index/indextest", "provider/providertest", "transcript/transcripttest", "bench/..."}

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string // of its non-test files
	Module     *struct{ Path string }
}

// graph is packages by import path.
type graph map[string]listed

func TestLayers(t *testing.T) {
	inTop(t)
	touchSources(t)
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			g, err := list(goos)
			if err != nil {
				t.Fatal(err)
			}
			for _, complaint := range check(g) {
				t.Error(complaint)
			}
		})
	}
}

// touchSources looks at every directory of the module. go test remembers what a
// test looked at and runs it again when that has changed; what go list reads it
// would not notice.
func touchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || name == "." {
			return err
		}
		if strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules" {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// list returns the packages of the module and all that they need on a system.
func list(goos string) (graph, error) {
	cmd := exec.Command("go", "list", "-buildvcs=false", "-deps",
		"-json=ImportPath,Standard,Imports,Module", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	g := graph{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return g, nil
		} else if err != nil {
			return nil, err
		}
		g[p.ImportPath] = p
	}
}

// check returns what is wrong with a graph, in a stable order.
func check(g graph) []string {
	var complaints []string
	complain := func(format string, args ...any) {
		complaints = append(complaints, fmt.Sprintf(format, args...))
	}
	for _, path := range g.own() {
		name := short(path)
		floor, room := place(name)
		if floor < 0 {
			complain("package %s has no floor: add it to the table floors in layers_test.go", name)
			continue
		}
		for _, imp := range g[path].Imports {
			if ours(imp) {
				below, other := place(short(imp))
				if below >= floor && room != other {
					complain("%s (floor %d) imports %s (floor %d): imports point downward only",
						name, floor, short(imp), below)
				}
				if name == "home" && in(registered, short(imp)) {
					complain("home imports %s, which is to be registered: see home.Parts", short(imp))
				}
				if users, ok := apart[other]; ok && room != other && !in(users, name) {
					complain("%s imports %s, which nothing of the program needs", name, short(imp))
				}
				continue
			}
			if (imp == "testing" || strings.HasPrefix(imp, "testing/")) && !in(testers, name) {
				complain("%s imports %s outside of its tests", name, imp)
			}
			if allowed, core := outside[name]; core && !g[imp].Standard && !slices.Contains(allowed, g.module(imp)) {
				complain("%s imports %s: it may import the standard library, this module%s",
					name, imp, and(allowed))
			}
		}
		if allowed, ok := reach[name]; ok {
			for _, way := range g.strangers(path, allowed) {
				complain("%s needs %s: it may need the standard library, this module%s",
					name, strings.Join(way, " → "), and(allowed))
			}
		}
	}
	return complaints
}

// own returns the packages of this module, sorted.
func (g graph) own() []string {
	var paths []string
	for path := range g {
		if ours(path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// module returns the path of the module that a package is of.
func (g graph) module(path string) string {
	if m := g[path].Module; m != nil {
		return m.Path
	}
	return path
}

// strangers returns, for every package that from needs and that is of no allowed
// module, one way that leads to it. It does not look behind a stranger.
func (g graph) strangers(from string, allowed []string) [][]string {
	var found [][]string
	seen := map[string]bool{from: true}
	for queue := [][]string{{from}}; len(queue) > 0; queue = queue[1:] {
		way := queue[0]
		for _, imp := range g[way[len(way)-1]].Imports {
			if seen[imp] || g[imp].Standard {
				continue
			}
			seen[imp] = true
			next := append(slices.Clone(way), imp)
			if ours(imp) || slices.Contains(allowed, g.module(imp)) {
				queue = append(queue, next)
			} else {
				found = append(found, next[1:])
			}
		}
	}
	return found
}

func ours(path string) bool {
	return path == module || strings.HasPrefix(path, module+"/")
}

// short returns an import path of this module as the table has it.
func short(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// place returns the floor and the room of a package, or -1.
func place(name string) (floor int, room string) {
	for floor, rooms := range floors {
		for _, room := range rooms {
			if in([]string{room}, name) {
				return floor, room
			}
		}
	}
	return -1, ""
}

// in reports whether one of the rooms holds the package.
func in(rooms []string, name string) bool {
	return slices.ContainsFunc(rooms, func(room string) bool {
		root, tree := strings.CutSuffix(room, "/...")
		return name == root || tree && strings.HasPrefix(name, root+"/")
	})
}

func and(modules []string) string {
	if len(modules) == 0 {
		return " and nothing else"
	}
	return " and " + strings.Join(modules, ", ")
}

// TestCheck shows that check finds what it is there to find.
func TestCheck(t *testing.T) {
	tests := []struct {
		name    string
		imports map[string][]string // of packages of this module, by short name
		want    string              // what the one complaint says; empty means none
	}{
		{"downward", map[string][]string{
			"cmd/coppice": {"cmd/coppice/internal/cli"}, "cmd/coppice/internal/cli": {"home", "server"}, "cmd/coppice/internal/tui": {"home"},
			"server": {"server/web", "home"}, "server/web": nil, "home": {"agent"}, "agent": {"session"},
			"session":    {"internal/rawjson", "store/file", "fmt"},
			"store/file": {"store", "internal/rawjson", sys + "/unix", zstd + "/zstd"}, "internal/rawjson": nil,
			"store": {"store/vfs"}, "store/vfs": {sys + "/unix"},
			"store/storetest": {"store", "testing"}, "bench": {"session", "testing"},
		}, ""},
		{
			"upward",
			map[string][]string{"store": {"session"}, "session": nil},
			"store (floor 1) imports session",
		},
		{
			"sideways",
			map[string][]string{"store/memory": {"store/file"}, "store/file": nil},
			"store/memory (floor 2) imports store/file (floor 2)",
		},
		{
			"the floor knows no face",
			map[string][]string{"home": {"cmd/coppice/internal/cli"}, "cmd/coppice/internal/cli": nil},
			"home (floor 11) imports cmd/coppice/internal/cli",
		},
		{
			"a kind of store that is to be registered",
			map[string][]string{"home": {"store/memory"}, "store/memory": nil},
			"home imports store/memory, which is to be registered",
		},
		{
			"what is for other programs",
			map[string][]string{"transcript/format/x": {"keyed"}, "bench/crash": {"keyed"}, "keyed": nil},
			"transcript/format/x imports keyed, which nothing of the program needs",
		},
		{
			"like a prefix, but not below it",
			map[string][]string{"serverless": nil},
			"package serverless has no floor: add it to the table floors in layers_test.go",
		},
		{
			"no floor",
			map[string][]string{"util": nil},
			"package util has no floor",
		},
		{
			"a stranger in the core",
			map[string][]string{"store": {"example.com/x"}},
			"store imports example.com/x: it may import the standard library, this module and nothing else",
		},
		{
			"a module that only others may have",
			map[string][]string{"store/vfs": {zstd + "/zstd"}},
			"store/vfs imports " + zstd + "/zstd",
		},
		{
			"a module with such a beginning",
			map[string][]string{"store/vfs": {sys + "tem"}},
			"store/vfs imports " + sys + "tem",
		},
		{
			"a stranger at one remove",
			map[string][]string{"session": {"redact"}, "redact": {"example.com/x"}},
			"session needs " + module + "/redact → example.com/x",
		},
		{
			"testing outside of tests",
			map[string][]string{"session": {"testing/fstest"}},
			"session imports testing/fstest outside of its tests",
		},
		{
			"the upper floors are free",
			map[string][]string{"index": {"example.com/x"}},
			"",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := check(fabricate(tt.imports))
			switch {
			case tt.want == "" && len(got) > 0:
				t.Errorf("complaints about a good house: %q", got)
			case tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)):
				t.Errorf("complaints are %q, want one that says %q", got, tt.want)
			}
		})
	}
}

// fabricate makes a graph. Imports with a dot in them, or of std, stand as they
// are; the rest are of this module.
func fabricate(imports map[string][]string) graph {
	std := []string{"fmt", "testing", "testing/fstest"}
	g := graph{}
	for name, imps := range imports {
		p := listed{ImportPath: strings.TrimSuffix(module+"/"+name, "/.")}
		for _, imp := range imps {
			switch {
			case slices.Contains(std, imp):
				g[imp] = listed{ImportPath: imp, Standard: true}
			case strings.Contains(imp, "."):
				g[imp] = stranger(imp)
			default:
				imp = module + "/" + imp
			}
			p.Imports = append(p.Imports, imp)
		}
		g[p.ImportPath] = p
	}
	return g
}

// stranger makes a package of another module.
func stranger(path string) listed {
	p := listed{ImportPath: path}
	for _, m := range []string{sys, zstd} {
		if path == m || strings.HasPrefix(path, m+"/") {
			p.Module = &struct{ Path string }{m}
		}
	}
	return p
}
