package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listed builds a small program and returns it with the list of what is in it.
func listed(t *testing.T) (path string, text []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "garden")
	if _, err := output(exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../examples/garden")); err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: "v1.2.3", time: commitTime}
	text, err = r.materials("coppice-v1.2.3-linux-amd64", "coppice", binary)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.materials("coppice-v1.2.3-linux-amd64", "coppice", binary)
	if err != nil || !bytes.Equal(again, text) {
		t.Errorf("two lists of the same program differ, %v", err)
	}
	return path, text
}

func TestEveryModuleOfAProgramIsListed(t *testing.T) {
	t.Parallel()
	path, text := listed(t)
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		info.Main.Path: "v1.2.3 SPDXRef-DOCUMENT DESCRIBES",
		"stdlib":       strings.TrimPrefix(info.GoVersion, "go") + " SPDXRef-program DEPENDS_ON",
	}
	for _, m := range info.Deps {
		want[m.Path] = m.Version + " SPDXRef-program DEPENDS_ON"
	}
	if len(want) < 3 {
		t.Fatal("the program has no modules")
	}

	var b bill
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	related, got := map[string]string{}, map[string]string{}
	for _, r := range b.Relationships {
		related[r.To] = r.Of + " " + r.Kind
	}
	for _, p := range b.Packages {
		got[p.Name] = p.Version + " " + related[p.ID]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The fields that SPDX 2.3 requires are there, and have the form that it wants.
func TestListHasWhatSPDXRequires(t *testing.T) {
	t.Parallel()
	_, text := listed(t)
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	namespace, _ := got["documentNamespace"].(string)
	if !strings.HasPrefix(namespace, "https://github.com/coppice-dev/coppice/spdx/coppice-v1.2.3-linux-amd64-") {
		t.Errorf("the namespace is %q", namespace)
	}
	id := regexp.MustCompile(`^SPDXRef-[a-zA-Z0-9.-]+$`)
	for _, p := range got["packages"].([]any) {
		p := p.(map[string]any)
		if !id.MatchString(p["SPDXID"].(string)) || p["name"] == "" || p["downloadLocation"] != "NOASSERTION" || p["filesAnalyzed"] != false {
			t.Errorf("a package is %v", p)
		}
	}
	maps.DeleteFunc(got, func(field string, _ any) bool {
		return field == "documentNamespace" || field == "packages" || field == "relationships"
	})
	want := map[string]any{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "coppice-v1.2.3-linux-amd64",
		"creationInfo": map[string]any{"created": "2026-03-01T10:30:14Z", "creators": []any{"Tool: coppice-dist"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A module is listed as what was really built, with its hash.
func TestModulesAreNamedAsScannersKnowThem(t *testing.T) {
	t.Parallel()
	got := modulePart(4, &debug.Module{
		Path: "example.org/old", Version: "v1.0.0",
		Replace: &debug.Module{Path: "github.com/BurntSushi/toml", Version: "v2.0.0+incompatible", Sum: "h1:abc="},
	})
	want := part{
		ID: "SPDXRef-module-5", Name: "github.com/BurntSushi/toml", Version: "v2.0.0+incompatible", Purpose: "LIBRARY",
		Location: "NOASSERTION", Source: "go.sum has h1:abc=", Declared: "NOASSERTION",
		Refs: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/github.com/burntsushi/toml@v2.0.0%2Bincompatible"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
