package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// code is a small repository.
var code = map[string]string{
	"tree/tree.go": `package tree

import "context"

type Kind string

const (
	Leaf, Root Kind = "leaf", "root"
	hidden          = 1
)

const (
	First Order = iota
	Second
)

type Order int

var ErrGone, errOther error

// Tree is cut back and grows again.
type Tree struct {
	core
	Name string ` + "`json:\"name\"`" + `
	Age,
	Height int
	rings int
}

type core struct{ Bark string }

func (c *core) Cut(
	ctx context.Context,
	at int,
) (*Tree, error) {
	return nil, nil
}

func (t Tree) grow() {}

type Grower interface {
	Grow(years int) error
	comparable
}

type Set[K comparable, V any] map[K]V

func (s Set[K, V]) Has(k K) bool { return false }

type Same = Tree

func Plant[T Grower](seeds ...T) func(int) { return nil }

func helper() {}
`,
	"tree/tree_windows.go": "package tree\n\nfunc OnlyOnWindows() {}\n",
	"tree/tree_linux.go":   "package tree\n\nfunc OnlyOnLinux() {}\n",
	"tree/tree_test.go":    "package tree\n\nfunc InTests() {}\n",
	"tree/internal/x/x.go": "package x\n\nfunc Inside() {}\n",
	"tree/testdata/x.go":   "package x\n\nfunc Data() {}\n",
	"forest/fell/fell.go":  "package fell\n\nfunc All() {}\n",
	"forest/main.go":       "package main\n\nfunc Program() {}\n",
	"bench/wood/wood.go":   "package wood\n\nfunc Measure() {}\n",
}

const treeListing = `pkg tree, const First Order
pkg tree, const Leaf Kind
pkg tree, const Root Kind
pkg tree, const Second Order
pkg tree, func OnlyOnLinux()
pkg tree, func Plant[T Grower](seeds ...T) func(int)
pkg tree, method (*Tree) Cut(ctx context.Context, at int) (*Tree, error)
pkg tree, method (Set[K, V]) Has(k K) bool
pkg tree, type Grower interface
pkg tree, type Grower interface, Grow(years int) error
pkg tree, type Grower interface, comparable
pkg tree, type Kind string
pkg tree, type Order int
pkg tree, type Same = Tree
pkg tree, type Set[K comparable, V any] map[K]V
pkg tree, type Tree struct
pkg tree, type Tree struct, Age int
pkg tree, type Tree struct, Bark string
pkg tree, type Tree struct, Height int
pkg tree, type Tree struct, Name string
pkg tree, var ErrGone error
`

// repository writes files into a new directory.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestEveryNameThatOthersCanUseIsListed(t *testing.T) {
	t.Parallel()
	root := repository(t, code)
	var out strings.Builder
	if err := run(&out, root, true); err != nil {
		t.Fatal(err)
	}
	want := "22 exported names in 2 packages: 6 types with 4 fields and 4 methods, 3 functions, 4 constants, 1 variables\n"
	if out.String() != want {
		t.Errorf("printed %q", out.String())
	}
	for file, want := range map[string]string{"tree.txt": treeListing, "forest.txt": "pkg forest/fell, func All()\n"} {
		if got, err := os.ReadFile(filepath.Join(root, "api", file)); err != nil || string(got) != want {
			t.Errorf("%s, %v:\n%s", file, err, got)
		}
	}
	if listings, _ := filepath.Glob(filepath.Join(root, "api", "*")); len(listings) != 2 {
		t.Errorf("the listings are %q", listings)
	}
}

// What differs from the listing is printed, fails, and can be accepted.
func TestEveryChangeIsSeen(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]struct{ file, old, new, want string }{
		"an added function": {
			"forest/fell/fell.go", "func All", "func One() {}\nfunc All",
			"+pkg forest/fell, func One()\n",
		},
		"a changed signature": {
			"tree/tree.go", "at int,", "at int64,",
			"-pkg tree, method (*Tree) Cut(ctx context.Context, at int) (*Tree, error)\n" +
				"+pkg tree, method (*Tree) Cut(ctx context.Context, at int64) (*Tree, error)\n",
		},
		"a removed field": {
			"tree/tree.go", "Age,\n", "",
			"-pkg tree, type Tree struct, Age int\n",
		},
		"a removed package": {
			"forest/fell/fell.go", "package fell", "package main",
			"-pkg forest/fell, func All()\n",
		},
		"what nobody sees": {"tree/tree.go", "rings int", "leaves []int", ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			root := repository(t, code)
			if err := run(&strings.Builder{}, root, true); err != nil {
				t.Fatal(err)
			}
			text := strings.Replace(code[change.file], change.old, change.new, 1)
			if err := os.WriteFile(filepath.Join(root, change.file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err := run(&out, root, false)
			if change.want == "" {
				if err != nil {
					t.Errorf("%v: %s", err, out.String())
				}
				return
			}
			if !errors.Is(err, errDiffers) || out.String() != change.want {
				t.Errorf("%v: printed %q", err, out.String())
			}
			if err := run(&out, root, true); err != nil {
				t.Errorf("it cannot be accepted: %v", err)
			}
		})
	}
}
