package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/netip"
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
	addr         string
	live         liveFlags
	ends         string // how the server of the page ends, if it is one of our own
}

// webAddr is where the page is unless something else is there: people keep links to it.
const webAddr = "127.0.0.1:7718"

// webCommand is serve for one person: there is no port to choose and no token to copy.
func webCommand(a *app) *cobra.Command {
	var f webFlags
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Open the sessions in a browser",
		Long: "Opens a page with the sessions in your browser, signed in. A server for it runs on\n" +
			"this machine until you press Ctrl-C; no one else can use it. The address stays the\n" +
			"same, so you can keep links to sessions. If the server runs already, its page is\n" +
			"opened again. With --server, the page is that of the server, and COPPICE_TOKEN signs\n" +
			"you in.\n\n" +
			"Meanwhile, sessions of agents on this machine are imported as they are written, if\n" +
			"you have imported sessions of the agent before. You are asked once about others;\n" +
			"coppice config set import all, known or none changes it.",
		Example: "  coppice web\n  coppice web --import\n  coppice web --print",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runWeb(cmd.Context(), &f, cmd.Flags().Changed("addr"))
		},
	}
	cmd.Flags().StringVar(&f.addr, "addr", webAddr, "where the page is; port 0 picks a free one")
	cmd.Flags().BoolVar(&f.print, "print", false, "print the address instead of opening a browser")
	cmd.Flags().BoolVar(&f.tools, "tools", false, "let chats on the page run tools on this machine")
	f.live.register(cmd)
	return cmd
}

// runWeb opens the page of a server: the one that is the home, the one that runs already, or one
// that it starts.
func (a *app) runWeb(ctx context.Context, f *webFlags, chosen bool) error {
	if where := a.settings.Get(home.SettingDir).Value; home.IsAway(where) {
		if chosen {
			return misuse("--addr is for a server that this command starts; with --server, the page is at %s", where)
		}
		return a.runWebAway(ctx, f, where)
	}
	o := &serveFlags{addr: f.addr, own: true, tools: f.tools}
	if host, _, err := net.SplitHostPort(f.addr); err == nil && !isLoopback(host) {
		return hinted(misuse("--addr is %s, which other machines can reach, and this page is for you alone", f.addr),
			"choose an address such as "+webAddr+", or use coppice serve, which has TLS and tokens")
	}
	if err := o.check(); err != nil {
		return err
	}
	if !chosen {
		o.others = othersThan(webAddr)
	}
	return a.withHome(ctx, true, func(h *home.Home) (err error) {
		run, running := beginWeb(h)
		defer func() { err = errors.Join(err, run.end()) }()
		if running.serves(f, chosen) && a.openRunning(ctx, f, running) {
			return nil
		}
		which, err := a.watched(ctx, h, &f.live)
		if err != nil {
			return err
		}
		f.ends = "; Ctrl-C stops"
		s, err := o.begin(ctx, h, nil)
		if err != nil {
			return err
		}
		if at := "http://" + webAddr; !chosen && s.address != at {
			a.say("another program is at %s, so the page is at %s this time; links to the other address do not lead here", at, s.address)
		}
		run.note(s, f.tools)
		return importing(ctx, h, which, func(ctx context.Context) error { return a.serveOpened(ctx, f, s) })
	})
}

// othersThan returns what to try if a port is taken: the next ones, which are likely to be free
// tomorrow, too, and then any.
func othersThan(addr string) []string {
	at := netip.MustParseAddrPort(addr)
	var others []string
	for i := range uint16(8) {
		others = append(others, netip.AddrPortFrom(at.Addr(), at.Port()+1+i).String())
	}
	return append(others, netip.AddrPortFrom(at.Addr(), 0).String())
}

// serveOpened opens the browser once the server listens, and stops the server if that fails:
// without a page, the person would not know that it runs.
func (a *app) serveOpened(ctx context.Context, f *webFlags, s *begun) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	work.Go(func() {
		if err := a.openPage(ctx, f, s.address, s.secret, time.Minute); err != nil {
			cancel(err)
		}
	})
	err := s.serve(ctx)
	work.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// runWebAway opens the page of a home on another machine. What agents write on this one goes there
// only if the person says so, and for as long as the command runs.
func (a *app) runWebAway(ctx context.Context, f *webFlags, where string) error {
	token, err := a.settings.Token(ctx)
	if err != nil {
		return err
	}
	if err := a.openPage(ctx, f, strings.TrimRight(where, "/"), token, browserReads); err != nil || !f.live.all {
		return err
	}
	return a.withHome(ctx, false, func(h *home.Home) error {
		a.say("what agents write on this machine goes to %s; Ctrl-C stops", where)
		return h.WatchAgents(ctx, home.ImportAll)
	})
}

// browserReads is how long a browser has to read the file that leads it to a page.
const browserReads = 10 * time.Second

// openPage opens the page of a server in a browser. stays is how long it waits until the browser
// has read its address.
func (a *app) openPage(ctx context.Context, f *webFlags, address, token string, stays time.Duration) error {
	page, err := signInPage(ctx, address, token)
	if err == nil {
		a.showPage(ctx, f, address, page, stays)
	}
	return err
}

// signInPage returns the address of a page with a code that signs in once, in the part that
// browsers keep for themselves.
func signInPage(ctx context.Context, address, token string) (string, error) {
	client, err := remote.Client(address, token, nil)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/web/code", http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var given struct{ Code, Detail string }
	if err := json.NewDecoder(resp.Body).Decode(&given); err != nil || given.Code == "" {
		return "", hinted(fmt.Errorf("%s gave no code to sign in with: %s", address, cmp.Or(given.Detail, resp.Status)), "COPPICE_TOKEN must be a token of that server")
	}
	return address + "/#sign-in=" + given.Code, nil
}

// showPage opens a page in a browser, or prints its address.
func (a *app) showPage(ctx context.Context, f *webFlags, address, page string, stays time.Duration) {
	if !f.print {
		done, err := a.openBrowser(ctx, page)
		if err == nil {
			a.say("%s is open in your browser%s", address, f.ends)
			done(stays)
			return
		}
		a.say("%s no browser could be started: %v", a.paint(yellow, "warning:"), err)
	}
	a.say("open this address within a minute; it works once:")
	a.say("  %s", page)
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
