package all_test

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	_ "github.com/coppice-dev/coppice/transcript/all"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// sweep writes sessions in every format that can be written and counts what came of it.
type sweep struct {
	t       *testing.T
	writers []*transcript.Format
	env     transcript.Env

	files, sessions int
	numbers         map[string]*numbers // by writer
}

type numbers struct {
	same, lossy, empty, refused int
	losses                      map[string]int
}

func newSweep(t *testing.T) *sweep {
	s := &sweep{
		t: t, numbers: make(map[string]*numbers),
		env: transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }, GOOS: "linux"},
	}
	for _, f := range transcript.Formats() {
		if f.Write != nil {
			s.writers = append(s.writers, f)
			s.numbers[f.Name] = &numbers{losses: make(map[string]int)}
		}
	}
	return s
}

// file imports a file, if it is of any format, and writes its sessions.
func (s *sweep) file(path string) {
	f, err := transcript.OpenFile(path)
	if err != nil {
		s.t.Error(err)
		return
	}
	format := transcript.Detect(f)
	if format == nil {
		return
	}
	st := memory.New(nil)
	defer st.Close()
	report, err := (&transcript.Importer{Store: st, Now: transcripttest.Now}).Import(s.t.Context(), format, f)
	if err != nil {
		return // what cannot be read is not written
	}
	s.files++
	for _, r := range report.Sessions {
		sess, err := session.Open(s.t.Context(), st, r.ID, nil)
		if err != nil {
			continue // nothing came of it
		}
		s.session(path, sess)
		if err := sess.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

func (s *sweep) session(path string, sess *session.Session) {
	c, err := sess.Context(session.ContextOptions{})
	if err != nil || len(c.Entries) == 0 {
		return
	}
	s.sessions++
	for _, format := range s.writers {
		n := s.numbers[format.Name]
		script, err := transcript.NewScript(sess, format.Name, "", transcripttest.Now())
		if err != nil {
			s.t.Errorf("%s: %v", path, err)
			continue
		}
		out, err := (&transcript.Exporter{Env: s.env}).Prepare(s.t.Context(), format, script, nil)
		switch {
		case errors.Is(err, session.ErrInvalid):
			n.empty++
		case err != nil:
			n.refused++
			s.t.Errorf("%s, session %s, as %s: %v", path, sess.Header().ID, format.Name, err)
		case len(out.Losses) > 0:
			n.lossy++
			kinds := make(map[string]bool)
			for _, l := range out.Losses {
				kinds[l.What] = true
			}
			for kind := range kinds {
				n.losses[kind]++
			}
		default:
			n.same++
		}
	}
}

// String returns the numbers as a table.
func (s *sweep) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d sessions of %d files × %d writers\n", s.sessions, s.files, len(s.writers))
	for _, f := range s.writers {
		n := s.numbers[f.Name]
		fmt.Fprintf(&b, "%-17s identical %4d, with losses %4d, nothing to hold %3d, refused %3d\n", f.Name, n.same, n.lossy, n.empty, n.refused)
		for _, kind := range slices.SortedFunc(maps.Keys(n.losses), func(a, b string) int {
			return cmp.Or(n.losses[b]-n.losses[a], strings.Compare(a, b))
		}) {
			fmt.Fprintf(&b, "    %4d %s\n", n.losses[kind], kind)
		}
	}
	return b.String()
}

// below visits the regular files below a directory.
func below(t testing.TB, dir string, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			visit(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSweep writes every session of every format's fixtures in every format that can be
// written: it reads back as what it was, but for what the export says it lost.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := newSweep(t)
	below(t, filepath.Join("..", "format"), func(path string) {
		if isFixture(path) {
			s.file(path)
		}
	})
	t.Log(s)
}

// TestSweepSamples does the same with real files, where there are any.
func TestSweepSamples(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("COPPICE_SAMPLES")
	if dir == "" {
		return // there are none: see CONTRIBUTING
	}
	s := newSweep(t)
	below(t, dir, s.file)
	t.Log(s)
}
