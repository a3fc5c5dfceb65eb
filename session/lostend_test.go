package session_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// The end of a session is named when it is lost, in an archive and in a plain file, also after
// an append.
func TestLostEndIsNamed(t *testing.T) {
	t.Parallel()
	last := func(content []byte) int { return len(content) - 1 }
	for name, test := range map[string]struct {
		archived bool
		damage   func(content []byte)
	}{
		"NULs":            {false, func(content []byte) { clear(content[last(content)-4096:]) }},
		"last frame":      {true, func(content []byte) { content[last(content)-100] ^= 4 }}, // the table has 41 bytes
		"NULs in a frame": {true, func(content []byte) { clear(content[last(content)-8000 : last(content)-80]) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			st, err := file.Open(dir, &file.Options{Sync: file.Never})
			mustDo(t, err)
			defer st.Close()
			path := longSession(t, st)
			if test.archived {
				mustDo(t, st.Archive(t.Context(), "long"))
				path = filepath.Join(dir, ".coppice", "archive", "long.jsonl.zst")
			}
			content, err := os.ReadFile(path)
			mustDo(t, err)
			test.damage(content)
			mustDo(t, os.WriteFile(path, content, 0o600))

			wantDamageNamed(t, st)
			s, err := session.Open(t.Context(), st, "long", nil)
			mustDo(t, err)
			_, err = s.AppendMessage(session.RoleUser, []session.Content{session.Text("after it")})
			mustDo(t, err)
			mustDo(t, s.Close())
			wantDamageNamed(t, st)
		})
	}
}

// longSession writes a session that takes several frames of an archive.
func longSession(t *testing.T, st *file.Store) (path string) {
	t.Helper()
	s, err := session.Create(t.Context(), st, session.Header{ID: "long"}, nil)
	mustDo(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		text := make([]byte, 80_000)
		for i := range text {
			text[i] = byte('A' + rng.IntN(26))
		}
		_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(string(text))})
		mustDo(t, err)
	}
	mustDo(t, s.Close())
	return st.Path("long")
}

func wantDamageNamed(t *testing.T, st *file.Store) {
	t.Helper()
	s, err := session.Open(t.Context(), st, "long", nil)
	mustDo(t, err)
	defer s.Close()
	problems, err := s.Problems()
	mustDo(t, err)
	if !slices.ContainsFunc(problems, func(p session.Problem) bool { return p.Kind == session.ProblemDamaged }) {
		t.Errorf("entries are missing, and the problems are %v", problems)
	}
	c, err := s.Context(session.ContextOptions{})
	mustDo(t, err)
	if len(c.Entries) < 10 {
		t.Errorf("%d of 30 messages are left", len(c.Entries))
	}
}
