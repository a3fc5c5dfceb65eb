package repo_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// ecosystems are the files that name dependencies, and what Dependabot calls their kind.
var ecosystems = map[string]string{
	"go.mod":       "gomod",
	"package.json": "npm",
	"Dockerfile":   "docker",
}

// TestEveryDependencyIsUpdated holds .github/dependabot.yml against the repository: each
// file that names dependencies has its entry, and each entry its file.
func TestEveryDependencyIsUpdated(t *testing.T) {
	inTop(t)
	text, err := os.ReadFile(".github/dependabot.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	watched := map[string][]string{} // patterns of directories, by ecosystem
	for _, u := range config.Updates {
		watched[u.Ecosystem] = append(watched[u.Ecosystem], u.Directories...)
		if u.Directory != "" {
			watched[u.Ecosystem] = append(watched[u.Ecosystem], u.Directory)
		}
	}
	if !slices.Equal(watched["github-actions"], []string{"/"}) {
		t.Error("the actions of the workflows are not updated")
	}
	delete(watched, "github-actions")

	used := map[string]bool{}
	for _, file := range manifests(t) {
		ecosystem, dir := ecosystems[path.Base(file)], path.Dir("/"+file)
		i := slices.IndexFunc(watched[ecosystem], func(pattern string) bool {
			ok, err := path.Match(pattern, dir)
			return ok && err == nil
		})
		if i < 0 {
			t.Errorf("%s: .github/dependabot.yml has no %s for %s", file, ecosystem, dir)
			continue
		}
		used[ecosystem+watched[ecosystem][i]] = true
	}
	for ecosystem, patterns := range watched {
		for _, pattern := range patterns {
			if !used[ecosystem+pattern] {
				t.Errorf(".github/dependabot.yml has %s in %s, where nothing is", ecosystem, pattern)
			}
		}
	}
}

// manifests returns the files of the repository that name dependencies.
func manifests(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".cache", "dist", "node_modules", "testdata"}, d.Name()) {
			return fs.SkipDir
		}
		if ecosystems[d.Name()] != "" && !d.IsDir() {
			files = append(files, filepath.ToSlash(file))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
