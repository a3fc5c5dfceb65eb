package transcripttest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/transcript"
)

type opener = func(t testing.TB, path string) *transcript.File

// Suite is what the standard tests must know about a format. Empty fields are not tested.
type Suite struct {
	Format *transcript.Format
	// Fixtures are patterns of files. What is found in each is compared with the outline
	// beside it, which has the ending .txt.
	Fixtures []string
	// Open, if it is set, opens the fixtures and what was made, for formats that learn
	// something from the path. Default: the function Open.
	Open func(t testing.TB, path string) *transcript.File
	// Made, if it is set, makes files that cannot be fixtures, such as databases.
	Made func(t testing.TB) []string
	// Sessions is how many sessions the fixtures and what was made become. Importing them a
	// second time adds nothing.
	Sessions int
	// Detected says which texts have the format, as files named Name.
	Detected map[string]bool
	Name     string // default: "x"
	// Place is where the program keeps its files, below the home directory, and Match and
	// Pass are files there that are read, and that are not.
	Place       string
	Match, Pass string
	// Samples are patterns of real files, and Count counts what is in one of them without
	// the format's reader. See the function Samples.
	Samples []string
	Count   func(t *testing.T, path string, data []byte) Counts
}

// Standard runs the tests that every format has: it reads the fixtures, imports them twice
// and expects nothing new, recognises the format's files, knows where they are kept, and
// counts what is in real ones.
func Standard(t *testing.T, s Suite) {
	t.Helper()
	if s.Open == nil {
		s.Open = Open
	}
	if len(s.Fixtures) > 0 {
		t.Run("read", func(t *testing.T) { readFixtures(t, s.Format, s.Open, s.Fixtures) })
	}
	if s.Sessions > 0 {
		t.Run("twice is once", s.importTwice)
	}
	if len(s.Detected) > 0 {
		t.Run("detect", s.detect)
	}
	if s.Place != "" {
		t.Run("places", s.places)
	}
	if len(s.Samples) > 0 {
		t.Run("samples", s.samples)
	}
}

func (s *Suite) importTwice(t *testing.T) {
	var paths []string
	if len(s.Fixtures) > 0 {
		paths = Fixtures(t, s.Fixtures...)
	}
	if s.Made != nil {
		paths = append(paths, s.Made(t)...)
	}
	got := importFiles(t, s.Format, s.Open, paths)
	if len(got) != s.Sessions {
		t.Errorf("the fixtures become %d sessions, want %d", len(got), s.Sessions)
	}
	for _, entries := range got {
		if entries > 0 {
			return
		}
	}
	t.Error("the fixtures have no entries")
}

func (s *Suite) detect(t *testing.T) {
	name := s.Name
	if name == "" {
		name = "x"
	}
	for text, want := range s.Detected {
		if got := s.Format.Detect(transcript.FileOf(name, []byte(text))); got != want {
			t.Errorf("%s is detected: %v, want %v", text, got, want)
		}
	}
}

func (s *Suite) places(t *testing.T) {
	home := t.TempDir()
	env := transcript.Env{Home: home, Getenv: func(string) string { return "" }, GOOS: "linux"}
	want := filepath.Join(home, filepath.FromSlash(s.Place))
	for _, place := range s.Format.Places(env) {
		if place.Dir != want {
			continue
		}
		if !place.Match(s.Match) || place.Match(s.Pass) {
			t.Errorf("%s matches: %v; %s matches: %v", s.Match, place.Match(s.Match), s.Pass, place.Match(s.Pass))
		}
		return
	}
	t.Errorf("none of the places is %s: %v", want, s.Format.Places(env))
}

func (s *Suite) samples(t *testing.T) {
	var paths []string
	for _, pattern := range s.Samples {
		paths = append(paths, Samples(t, pattern)...)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c := Collect(t, s.Format, Open(t, path))
			if diff := cmp.Diff(s.Count(t, path, data), Count(c)); diff != "" {
				t.Errorf("counts differ (-file +read):\n%s", diff)
			}
		})
	}
}
