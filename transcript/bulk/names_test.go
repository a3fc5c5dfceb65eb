package bulk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/session"
)

// A failure gets the name of its file, unless the error has it already; not if the
// name only happens to stand in the message.
func TestWhetherAnErrorNamesItsFile(t *testing.T) {
	t.Parallel()
	abs, err := filepath.Abs("chat")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{errors.New("not a chat"), false},
		{&session.Error{Op: "read", Path: "other", Err: errors.New("chat")}, false},
		{&session.Error{Op: "read", Name: "chat"}, false},
		{fmt.Errorf("import: %w", &session.Error{Op: "read", Path: "chat"}), true},
		{&session.Error{Op: "read", Path: abs}, true},
		{&session.Error{Op: "read", Path: "chat!1.json"}, true},
		{&fs.PathError{Op: "open", Path: "chat", Err: fs.ErrPermission}, true},
	} {
		if got := names(c.err, "chat"); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
