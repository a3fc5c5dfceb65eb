package session_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

const chainDir = "testdata/chains"

// chainVector is the expected.json of a conversation: it also says which sessions it has,
// which are missing, and how many messages they make.
type chainVector struct {
	vector
	Sessions []string `json:"sessions"`
	Missing  []string `json:"missing"`
	Messages int      `json:"messages"`
}

// TestChainVectors holds the reader to the conversations in testdata/chains, each of
// several sessions, or of what is left of them.
func TestChainVectors(t *testing.T) {
	t.Parallel()
	dirs, err := os.ReadDir(chainDir)
	mustVector(t, err)
	for _, dir := range dirs {
		t.Run(dir.Name(), func(t *testing.T) {
			t.Parallel()
			var want chainVector
			text, err := os.ReadFile(filepath.Join(chainDir, dir.Name(), "expected.json"))
			mustVector(t, err)
			dec := json.NewDecoder(bytes.NewReader(text))
			dec.DisallowUnknownFields()
			mustVector(t, dec.Decode(&want))
			st, names := storeOf(t, filepath.Join(chainDir, dir.Name()))
			for _, name := range names {
				c := mustGet(session.FindChain(t.Context(), st, name, nil))(t)
				diff(t, "sessions", want.Sessions, c.Links)
				diff(t, "missing sessions", want.Missing, c.Missing)
				s := closeWith(t, mustGet(session.OpenChain(t.Context(), st, c, nil))(t))
				checkReading(t, s, &want.vector)
				diff(t, "number of messages", want.Messages, mustGet(s.MessageCount())(t))
				// A copy of it is one session, and the same conversation.
				forked := closeWith(t, mustGet(s.Fork(t.Context(), st, nil))(t))
				diff(t, "path of a fork", want.Path, pathOf(t, forked))
				diff(t, "context of a fork", want.Context, vectorContextOf(t, forked))
			}
		})
	}
}

// storeOf makes a store of copies of the sessions in a directory.
func storeOf(t *testing.T, from string) (*file.Store, []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(from, "*.jsonl"))
	mustVector(t, err)
	dir := t.TempDir()
	var names []string
	for _, path := range files {
		text, err := os.ReadFile(path)
		mustVector(t, err)
		mustVector(t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), text, 0o600))
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".jsonl"))
	}
	slices.Sort(names)
	st := mustGet(file.Open(dir, nil))(t)
	t.Cleanup(func() { st.Close() })
	return st, names
}
