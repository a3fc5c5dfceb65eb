package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two test binaries report on the same two blocks of package a: each reaches
// one. Package b is half covered.
const profile = `mode: set
github.com/coppice-dev/coppice/a/a.go:1.1,2.2 8 1
github.com/coppice-dev/coppice/a/a.go:3.1,4.2 2 0
github.com/coppice-dev/coppice/a/a.go:1.1,2.2 8 0
github.com/coppice-dev/coppice/a/a.go:3.1,4.2 2 1
github.com/coppice-dev/coppice/b/c/c.go:1.1,2.2 1 1
github.com/coppice-dev/coppice/b/c/c.go:3.1,4.2 1 0
`

func TestCheck(t *testing.T) {
	tests := []struct {
		name, profile string
		gate          float64
		packages      []string
		err           string // empty means none
	}{
		{"merged", profile, 100, []string{"a"}, ""},
		{"at the gate", profile, 50, []string{"a", "b/c"}, ""},
		{"below the gate", profile, 50.1, []string{"a", "b/c"}, "b/c is below 50.1%"},
		{"a gate of its own", profile, 90, []string{"a", "b/c=50"}, ""},
		{"below its own gate", profile, 40, []string{"a", "b/c=51"}, "b/c is below 51%"},
		{"a gate that is no number", profile, 40, []string{"a=high"}, "a=high"},
		{"not measured", profile, 90, []string{"a", "nowhere"}, "nowhere"},
		{"damaged", "mode: set\nx.go:1.1,2.2 one 1\n", 0, []string{"a"}, "line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "cover.out")
			if err := os.WriteFile(name, []byte(tt.profile), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err := check(&out, name, tt.gate, tt.packages)
			switch {
			case err == nil && tt.err != "":
				t.Errorf("no error, want %q; printed:\n%s", tt.err, out.String())
			case err != nil && (tt.err == "" || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("error %q, want %q", err, tt.err)
			}
		})
	}
}
