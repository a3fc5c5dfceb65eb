package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
	"github.com/coppice-dev/coppice/store/remote"
)

type webFlags struct {
	print, tools bool
}

func webCommand(a *app) *cobra.Command {
	var f webFlags
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Open the sessions in a browser",
		Long: "Opens a page with the sessions in your browser, signed in. A server for it runs on\n" +
			"this machine until you press Ctrl-C; no one else can use it. With --server, the page\n" +
			"is that of the server, and COPPICE_TOKEN signs you in.",
		Example: "  coppice web\n  coppice web --print",
		GroupID: "read",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runWeb(cmd.Context(), &f) },
	}
	cmd.Flags().BoolVar(&f.print, "print", false, "print the address instead of opening a browser")
	cmd.Flags().BoolVar(&f.tools, "tools", false, "let chats on the page run tools on this machine")
	return cmd
}

func (a *app) runWeb(ctx context.Context, f *webFlags) error {
	if where := a.settings.Get(home.SettingDir).Value; home.IsAway(where) {
		token, err := a.settings.Token(ctx)
		if err != nil {
			return err
		}
		return a.openPage(ctx, f, strings.TrimRight(where, "/"), token)
	}
	return a.withHome(ctx, true, func(h *home.Home) error {
		o := server.Options{Home: h, Version: thisBuild().Version}
		if f.tools {
			o.Tools = home.Admin
		}
		serve := serveFlags{addr: "127.0.0.1:0", own: true}
		secret, err := serve.authorize(ctx, h, &o)
		if err != nil {
			return err
		}
		s, err := server.New(o)
		if err != nil {
			return err
		}
		l, scheme, err := serve.listen(ctx)
		if err != nil {
			return errors.Join(err, s.Close())
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		var work sync.WaitGroup
		work.Go(func() {
			if err := a.openPage(ctx, f, fmt.Sprintf("%s://%s", scheme, l.Addr()), secret); err != nil {
				cancel(err)
			}
		})
		err = s.Serve(ctx, l)
		work.Wait()
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
		return err
	})
}

// openPage opens the page of a server in a browser. The address has a code that signs in once,
// in the part that browsers keep for themselves.
func (a *app) openPage(ctx context.Context, f *webFlags, address, token string) error {
	client, err := remote.Client(address, token, nil)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/web/code", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var given struct{ Code, Detail string }
	if err := json.NewDecoder(resp.Body).Decode(&given); err != nil || given.Code == "" {
		return hinted(fmt.Errorf("%s gave no code to sign in with: %s", address, cmp.Or(given.Detail, resp.Status)), "COPPICE_TOKEN must be a token of that server")
	}
	page := address + "/#sign-in=" + given.Code
	if !f.print {
		if err := openBrowser(ctx, a.getenv("BROWSER"), page); err == nil {
			a.say("%s is open in your browser; Ctrl-C stops", address)
			return nil
		}
		a.say("%s no browser could be started", a.paint(yellow, "warning:"))
	}
	a.say("open this address within a minute; it works once:")
	a.say("  %s", page)
	return nil
}

// openBrowser starts a browser, which goes on by itself.
func openBrowser(ctx context.Context, browser, page string) error {
	command := []string{"xdg-open"}
	switch {
	case browser != "":
		command = []string{browser}
	case runtime.GOOS == "darwin":
		command = []string{"open"}
	case runtime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), command[0], append(command[1:], page)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // what became of it, people see
	return nil
}
