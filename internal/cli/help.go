package cli

import (
	"context"
	"io"
	"os"

	"charm.land/fang/v2"

	"github.com/coppice-dev/coppice/render/plain"
)

// styled has fang print help or the manual page. Nothing else goes through fang:
// it asks the terminal for its colours whenever an error is reported, and waits
// for an answer on standard input.
func (a *app) styled(ctx context.Context, args ...string) {
	out := plain.NewStyledWriter(a.data) // nothing in a help text is a stranger's
	root := a.rootCommand()
	showArguments(root)
	root.SetArgs(args)
	root.SetOut(screen{out, a.screen})
	root.SetErr(screen{a.err, a.talkScreen})
	err := fang.Execute(ctx, root, fang.WithVersion(thisBuild().Version),
		fang.WithErrorHandler(func(_ io.Writer, _ fang.Styles, err error) { a.sayError(err) }))
	if err == nil {
		_ = out.Flush()
	}
}

// screen shows fang which terminal a writer belongs to, so that it knows its
// colours. Without one it has a number that no file has.
type screen struct {
	*plain.Writer
	file *os.File
}

func (s screen) Fd() uintptr {
	if s.file == nil {
		return ^uintptr(0)
	}
	return s.file.Fd()
}

func (screen) Read([]byte) (int, error) { return 0, io.EOF }

func (screen) Close() error { return nil }
