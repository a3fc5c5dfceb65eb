package cli

import (
	"cmp"
	"context"
	"errors"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server/ipc"
)

type ipcFlags struct {
	socket string
	stdio  bool
}

// ipcGrace is how long requests that are under way may take after a signal to stop.
const ipcGrace = 10 * time.Second

// ipcCommand serves one user on one machine, so the permissions of the socket are all the
// protection that it needs, and there are no tokens.
func ipcCommand(a *app) *cobra.Command {
	var f ipcFlags
	cmd := &cobra.Command{
		Use:   "ipc",
		Short: "Serve the sessions on a Unix socket",
		Long: "Lets other programs on this machine use the sessions through a Unix socket, whose\n" +
			"path it prints, or with --stdio through standard input and output. Requests and\n" +
			"answers are lines of JSON. JSON-RPC 2.0 offers every operation; terminals can also\n" +
			"send session_create, session_load and the other tagged messages. Only your own user\n" +
			"can connect.\n\n" +
			"Ctrl-C or SIGTERM stops it once it has answered running requests; with --stdio, so\n" +
			"does the end of the input.",
		Example: "  coppice ipc --socket ~/coppice.sock &\n" +
			"  echo '{\"type\":\"session_list\",\"limit\":3}' | nc -N -U ~/coppice.sock\n" +
			"  coppice ipc --stdio < requests.jsonl",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runIPC(cmd.Context(), &f) },
	}
	cmd.Flags().StringVar(&f.socket, "socket", "", "the path of the socket")
	cmd.Flags().BoolVar(&f.stdio, "stdio", false, "serve standard input and output instead of a socket")
	cmd.MarkFlagsMutuallyExclusive("socket", "stdio")
	return cmd
}

// runIPC prints the path of the socket once clients can connect: a program that starts it waits
// for that line.
func (a *app) runIPC(ctx context.Context, f *ipcFlags) error {
	return a.withHome(ctx, true, func(h *home.Home) error {
		server := ipc.New(h, &ipc.Options{Notify: a.sayNotice})
		if f.stdio {
			// A client that is gone must not end the program in the middle of a request.
			signal.Ignore(syscall.SIGPIPE)
			return a.untilStopped(ctx, server, func() error { return server.ServeStream(a.stdin, a.data) })
		}
		path := cmp.Or(f.socket, ipc.SocketPath(a.getenv))
		socket, err := ipc.Listen(path)
		if home.KindOf(err) == home.KindLocked {
			return hinted(err, "use that one, stop it, or choose another path with --socket")
		}
		if err != nil {
			return err
		}
		if err := a.print("%s", path); err != nil {
			return errors.Join(err, socket.Close())
		}
		return a.untilStopped(ctx, server, func() error { return server.Serve(socket) })
	})
}

// untilStopped serves until that ends or a signal comes, and then ends in order.
func (a *app) untilStopped(ctx context.Context, server *ipc.Server, serve func() error) error {
	done := make(chan error, 1)
	go func() { done <- serve() }()
	var err error
	select {
	case err = <-done:
		done <- nil
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), ipcGrace)
	defer cancel()
	if ended := server.Shutdown(grace); errors.Is(ended, context.DeadlineExceeded) {
		a.say("%s requests that took longer than %s were cancelled", a.paint(yellow, "warning:"), ipcGrace)
	} else {
		err = errors.Join(err, ended)
	}
	return errors.Join(err, <-done)
}
