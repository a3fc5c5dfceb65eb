package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/store/remote"
	"github.com/coppice-dev/coppice/store/vfs"
)

type webFlags struct {
	print, tools bool
	ends         string // how the server of the page ends, if it is one of our own
}

// webCommand is serve for one person: there is no port to choose and no token to copy.
func webCommand(a *app) *cobra.Command {
	var f webFlags
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Open the sessions in a browser",
		Long: "Opens a page with the sessions in your browser, signed in. A server for it runs on\n" +
			"this machine until you press Ctrl-C; no one else can use it. With --server, the page\n" +
			"is that of the server, and COPPICE_TOKEN signs you in.",
		Example: "  coppice web\n  coppice web --print",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runWeb(cmd.Context(), &f) },
	}
	cmd.Flags().BoolVar(&f.print, "print", false, "print the address instead of opening a browser")
	cmd.Flags().BoolVar(&f.tools, "tools", false, "let chats on the page run tools on this machine")
	return cmd
}

// runWeb opens the browser once the server listens, and stops the server if that fails: without
// a page, the person would not know that it runs.
func (a *app) runWeb(ctx context.Context, f *webFlags) error {
	if where := a.settings.Get(home.SettingDir).Value; home.IsAway(where) {
		token, err := a.settings.Token(ctx)
		if err != nil {
			return err
		}
		return a.openPage(ctx, f, strings.TrimRight(where, "/"), token, 10*time.Second)
	}
	return a.withHome(ctx, true, func(h *home.Home) error {
		f.ends = "; Ctrl-C stops"
		s, err := (&serveFlags{addr: "127.0.0.1:0", own: true, tools: f.tools}).begin(ctx, h, nil)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		var work sync.WaitGroup
		work.Go(func() {
			if err := a.openPage(ctx, f, s.address, s.secret, time.Minute); err != nil {
				cancel(err)
			}
		})
		err = s.serve(ctx)
		work.Wait()
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause
		}
		return err
	})
}

// openPage opens the page of a server in a browser. The address has a code that signs in once,
// in the part that browsers keep for themselves. stays is how long it waits until the browser has
// read it.
func (a *app) openPage(ctx context.Context, f *webFlags, address, token string, stays time.Duration) error {
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
		done, err := a.openBrowser(ctx, page)
		if err == nil {
			a.say("%s is open in your browser%s", address, f.ends)
			done(stays)
			return nil
		}
		a.say("%s no browser could be started: %v", a.paint(yellow, "warning:"), err)
	}
	a.say("open this address within a minute; it works once:")
	a.say("  %s", page)
	return nil
}

// openBrowser starts a browser, which goes on by itself. Other users of the machine see what it is
// started with, so the address with its code is in a file that only this user can read. done
// waits until the browser had time to read it, and deletes it.
func (a *app) openBrowser(ctx context.Context, page string) (done func(time.Duration), err error) {
	command, done := []string{"xdg-open"}, func(time.Duration) {}
	switch browser := a.getenv("BROWSER"); {
	case browser != "":
		command = []string{browser}
	case runtime.GOOS == "darwin":
		command = []string{"open"}
	case runtime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	if a.getenv("WSL_DISTRO_NAME") == "" && runtime.GOOS != "windows" { // there, no other user sees it, and a browser has other paths
		file, err := leadingTo(page)
		if err != nil {
			return nil, err
		}
		page = (&url.URL{Scheme: "file", Path: file}).String()
		done = func(after time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(after):
			}
			_ = os.Remove(file) // its code no longer works
		}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), command[0], append(command[1:], page)...)
	if err := cmd.Start(); err != nil {
		done(0)
		return nil, err
	}
	go func() { _ = cmd.Wait() }() // what became of it, people see
	return done, nil
}

// leadingTo writes a file that leads a browser to an address. It is where people see it, because
// browsers in a sandbox read neither temporary nor hidden files.
func leadingTo(address string) (string, error) {
	dir, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "coppice-web-"+rand.Text()+".html")
	f, err := vfs.OS{}.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // only this user can read it
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, `<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=%s"><title>Coppice</title><a href="%[1]s">Coppice</a>`+"\n", html.EscapeString(address))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}
