package transcripttest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// say is a format whose files are one message, and begin with "say ".
func say() *transcript.Format {
	return &transcript.Format{
		Name:   "say",
		Detect: func(f *transcript.File) bool { return len(f.Head()) > 4 && string(f.Head()[:4]) == "say " },
		Read: func(_ context.Context, f *transcript.File, to transcript.Sink) error {
			data, err := f.ReadAll()
			if err != nil {
				return err
			}
			if err := to.Begin(transcript.Conversation{ID: filepath.Base(f.Path)}); err != nil {
				return err
			}
			return to.Add(transcript.Record{ID: "r", Entry: session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
				Role: "user", Content: []session.Content{session.Text(string(data[4:]))},
			}}})
		},
		Places: func(env transcript.Env) []transcript.Place {
			return []transcript.Place{{Dir: filepath.Join(env.Home, "said"), Match: func(file string) bool { return filepath.Ext(file) == ".say" }}}
		},
	}
}

// standard is a suite that passes. Its samples are its fixtures.
func standard(t *testing.T) transcripttest.Suite {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.say": "say hi", "a.txt": "conversation a.say\n  r user: \"hi\"\n",
		"b.say": "say ho", "b.txt": "conversation b.say\n  r user: \"ho\"\n",
	} {
		transcripttest.WriteFile(t, filepath.Join(dir, name), text)
	}
	t.Setenv("COPPICE_UPDATE", "")
	t.Setenv("COPPICE_SAMPLES", dir)
	return transcripttest.Suite{
		Format: say(), Fixtures: []string{filepath.Join(dir, "*.say")}, Sessions: 2,
		Detected: map[string]bool{"say x": true, "x": false},
		Place:    "said", Match: "x.say", Pass: "x.txt",
		Samples: []string{"*.say"},
		Count:   func(*testing.T, string, []byte) transcripttest.Counts { return transcripttest.Counts{Messages: 1} },
	}
}

// broken are suites with one mistake each, and the only test that must fail of it.
var broken = map[string]struct {
	fails string
	spoil func(t *testing.T, s *transcripttest.Suite)
}{
	"golden": {"read/b.say", func(t *testing.T, s *transcripttest.Suite) {
		transcripttest.WriteFile(t, filepath.Join(filepath.Dir(s.Fixtures[0]), "b.txt"), "something else")
	}},
	"sessions": {"twice_is_once", func(_ *testing.T, s *transcripttest.Suite) { s.Sessions = 1 }},
	"made": {"twice_is_once", func(t *testing.T, s *transcripttest.Suite) {
		path := filepath.Join(t.TempDir(), "c.say")
		transcripttest.WriteFile(t, path, "say c")
		s.Made = func(testing.TB) []string { return []string{path} }
	}},
	"entries": {"twice_is_once", func(_ *testing.T, s *transcripttest.Suite) {
		patterns := s.Fixtures
		s.Made, s.Fixtures, s.Samples = func(t testing.TB) []string { return transcripttest.Fixtures(t, patterns...) }, nil, nil
		s.Format.Read = func(_ context.Context, f *transcript.File, to transcript.Sink) error {
			return to.Begin(transcript.Conversation{ID: filepath.Base(f.Path)})
		}
	}},
	"detected":  {"detect", func(_ *testing.T, s *transcripttest.Suite) { s.Detected["x"] = true }},
	"its name":  {"detect", func(_ *testing.T, s *transcripttest.Suite) { s.Format.Detect = notNamedX(s.Format.Detect) }},
	"directory": {"places", func(_ *testing.T, s *transcripttest.Suite) { s.Place = "elsewhere" }},
	"match":     {"places", func(_ *testing.T, s *transcripttest.Suite) { s.Match = "x.txt" }},
	"pass":      {"places", func(_ *testing.T, s *transcripttest.Suite) { s.Pass = "x.say" }},
	"count": {"samples/a.say", func(_ *testing.T, s *transcripttest.Suite) {
		s.Count = func(_ *testing.T, path string, _ []byte) (n transcripttest.Counts) {
			n.Messages = 1
			if filepath.Base(path) == "a.say" {
				n.Calls = 1
			}
			return n
		}
	}},
}

// notNamedX passes over files that are called x.
func notNamedX(detect func(f *transcript.File) bool) func(f *transcript.File) bool {
	return func(f *transcript.File) bool { return f.Path != "x" && detect(f) }
}

func TestStandard(t *testing.T) {
	transcripttest.Standard(t, standard(t))
	s := standard(t)
	s.Format.Detect, s.Name = notNamedX(s.Format.Detect), "y"
	transcripttest.Standard(t, s)
}

// TestBrokenStandard runs the broken suites, in the process that TestStandardFails
// starts, where it fails. It does nothing elsewhere.
func TestBrokenStandard(t *testing.T) {
	if os.Getenv(runBroken) == "" {
		return
	}
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			s := standard(t)
			b.spoil(t, &s)
			transcripttest.Standard(t, s)
		})
	}
}

const runBroken = "COPPICE_RUN_BROKEN_SUITES"

// TestStandardFails: each mistake fails the test that is there to find it, and no
// other. Only a process of its own can have tests that fail.
func TestStandardFails(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestBrokenStandard$")
	cmd.Env = append(os.Environ(), runBroken+"=1")
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		t.Fatalf("the broken suites pass, %v:\n%s", err, out)
	}
	want := []string{"TestBrokenStandard"}
	for name, b := range broken {
		test := "TestBrokenStandard/" + strings.ReplaceAll(name, " ", "_")
		want = append(want, test)
		for _, part := range strings.Split(b.fails, "/") {
			test += "/" + part
			want = append(want, test)
		}
	}
	var got []string
	for _, m := range regexp.MustCompile(`--- FAIL: (\S+)`).FindAllSubmatch(out, -1) {
		got = append(got, string(m[1]))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tests that fail differ (-want +got):\n%s\n%s", diff, out)
	}
}
