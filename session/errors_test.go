package session_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// A problem says where it is if it knows.
func TestProblemNamesItsPlace(t *testing.T) {
	p := session.Problem{Kind: session.ProblemOrphan, EntryID: "a", Detail: "no open call"}
	if text := p.String(); strings.Contains(text, " at ") {
		t.Errorf("%q", text)
	}
	p.Pos = 12
	if text := p.String(); !strings.Contains(text, "at byte 12") {
		t.Errorf("%q", text)
	}
}
