package all_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	_ "github.com/coppice-dev/coppice/transcript/all"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// TestUnansweredCallsCostNoMoreThanTheirNumber: a model that called tools again and again,
// one call in a message, and got no answer, is written in every format with an effort that
// grows as its calls do.
func TestUnansweredCallsCostNoMoreThanTheirNumber(t *testing.T) {
	const few, many = 100, 400
	short, long := unanswered(t, few), unanswered(t, many)
	env := transcript.Env{Home: t.TempDir(), Getenv: func(string) string { return "" }, GOOS: "linux"}
	for _, format := range transcript.Formats() {
		if format.Write == nil {
			continue
		}
		t.Run(format.Name, func(t *testing.T) {
			work := func(s *session.Session) uint64 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				script, err := transcript.NewScript(s, format.Name, "", transcripttest.Now())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := (&transcript.Exporter{Env: env}).Prepare(t.Context(), format, script, nil); err != nil {
					t.Fatal(err)
				}
				runtime.ReadMemStats(&after)
				return after.TotalAlloc - before.TotalAlloc
			}
			if a, b := work(short), work(long); b > 6*a {
				t.Errorf("%d bytes for %d calls, %d for %d: %.1f times", a, few, b, many, float64(b)/float64(a))
			}
		})
	}
}

// unanswered returns a session with n calls that nothing answers.
func unanswered(t *testing.T, n int) *session.Session {
	t.Helper()
	st := memory.New(nil)
	t.Cleanup(func() { st.Close() })
	s, err := session.Create(t.Context(), st, session.Header{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	entries := []session.Entry{session.Message(session.RoleUser, session.Text("go on"))}
	for i := range n {
		entries = append(entries, session.Message(session.RoleAssistant, session.ToolUse(fmt.Sprintf("call_%d", i), "bash", nil)))
	}
	if _, err := s.AppendAll(entries...); err != nil {
		t.Fatal(err)
	}
	return s
}
