package repo_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// chance matches what draws other numbers in each run.
var chance = regexp.MustCompile(`\brapid\.(Check|MakeCheck)\(|(^|[^.\w])rand\.(N|Int|IntN|Int32|Int32N|Int64|Int64N|Uint|UintN|Uint32|Uint32N|Uint64|Uint64N|Float32|Float64|ExpFloat64|NormFloat64|Perm|Shuffle)(\[\w+\])?\(`)

// TestTestsTakeNoChances reads the tests: what they draw comes from internal/soak, so that
// whoever runs them again gets the same answer.
func TestTestsTakeNoChances(t *testing.T) {
	inTop(t)
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for i, line := range strings.Split(string(text), "\n") {
			if chance.MatchString(line) {
				t.Errorf("%s:%d draws other numbers in each run: use soak.Check, soak.Rand or soak.Seeds\n%s", name, i+1, line)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
