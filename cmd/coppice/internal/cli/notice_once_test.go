package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
)

// A command may update the index several times, but it prints each warning once.
func TestWarningsAboutTheIndexAreGivenOnce(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	a := &app{talk: newTalk(&out, &errs, os.Getenv)}
	for range 2 {
		a.sayNotice(home.Notice{Kind: home.IndexBehind, Error: &home.ErrorInfo{Message: "it is locked"}})
		a.sayNotice(home.Notice{Kind: home.SessionUnread, Error: &home.ErrorInfo{Message: "it is damaged"}})
	}
	_ = a.err.Flush()
	if got := errs.String(); strings.Count(got, "it is locked") != 1 || strings.Count(got, "it is damaged") != 1 {
		t.Errorf("said:\n%s", got)
	}
}
