package session_test

import (
	"context"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
)

// A fingerprint stands for what is said, however long that is: long texts are
// hashed in pieces, and no character is lost or counted twice between two of them.
func TestFingerprintsOfLongTexts(t *testing.T) {
	t.Parallel()
	of := func(text string) session.Fingerprint {
		s := mustGet(session.Create(context.Background(), memory.New(nil), session.Header{}, nil))(t)
		defer s.Close()
		mustGet(s.AppendMessage(session.RoleUser, []session.Content{session.Text(text), session.Text("end")}))(t)
		return mustGet(s.Context(session.ContextOptions{}))(t).Fingerprints[0]
	}
	long := strings.Repeat("ä\u2028\"€𝄞", 40_000)
	if of(long) != of(strings.Clone(long)) {
		t.Error("the same text has two fingerprints")
	}
	seen := map[session.Fingerprint]string{of(long): "the text"}
	for what, text := range map[string]string{
		"one more character": long + "x", "one less": strings.TrimSuffix(long, "𝄞"),
		"another in the middle": long[:len(long)/30*15] + strings.Replace(long[len(long)/30*15:], "€", "$", 1),
	} {
		if other, ok := seen[of(text)]; ok {
			t.Errorf("%s has the fingerprint of %s", what, other)
		}
		seen[of(text)] = what
	}
}
