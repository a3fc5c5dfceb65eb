package home

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/coppice-dev/coppice/store/storetest"
)

// A configuration file is understood or refused. Setting a key in one changes that
// key and no other, or refuses.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("dir = \"/a\"\nsync = 'never' # why\n"), "sync", "always")
	f.Add([]byte("[a]\nsync = 1\n"), "sync", "2")
	f.Add([]byte("a = \"\"\"\nsync = 1\n\"\"\"\n"), "sync", "x\ny")
	f.Add([]byte("\ufeffa=1"), "dir", "")
	path := filepath.Join(f.TempDir(), "config.toml")
	f.Fuzz(func(t *testing.T, text []byte, key, value string) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		storetest.Bounded(t, 32<<20+int64(len(text)+len(value))*1000, func() {
			before, err := readConfig(path)
			if err != nil {
				return
			}
			if key != "dir" && key != "sync" {
				return // only known keys are set
			}
			edited, err := setInTOML(text, key, value)
			if err != nil {
				return
			}
			var after map[string]any
			if err := toml.Unmarshal(edited, &after); err != nil {
				t.Fatalf("%q is no TOML any more: %v", edited, err)
			}
			delete(before, key)
			delete(after, key)
			if len(before)+len(after) > 0 && !reflect.DeepEqual(before, after) {
				t.Errorf("setting %s in %q changed more than that: %q", key, text, edited)
			}
		})
	})
}
