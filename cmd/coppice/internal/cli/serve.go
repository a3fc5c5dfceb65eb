package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
	"github.com/coppice-dev/coppice/server/token"
	"github.com/coppice-dev/coppice/store/memory"
)

type serveFlags struct {
	addr, cert, key, log  string
	hosts, origins        []string
	behindProxy, open     bool
	imports, tools, pprof bool
	own                   bool     // it has a token of its own in any case
	others                []string // addresses to try if something else listens at addr
}

// serveCommand is safe by default: it listens on this machine only, and asks for a token. Each
// flag that makes it less safe says so.
func serveCommand(a *app) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the sessions over HTTP",
		Long: "Lets browsers, other programs and other machines use the sessions over HTTP. At / is\n" +
			"a page for people, which coppice web opens. Every operation is below /v1, described\n" +
			"at /openapi.json; agents find an MCP server at /mcp. Only programs on this machine\n" +
			"can connect, unless you choose another --addr; that needs a certificate or a proxy\n" +
			"with TLS.\n\n" +
			"Every client needs a token, which coppice token add makes. If there are none yet,\n" +
			"serve prints a temporary one. Then, in another terminal:\n\n" +
			"  export COPPICE_TOKEN=cop_…\n" +
			"  coppice --server http://127.0.0.1:7717 ls\n" +
			"  curl --oauth2-bearer $COPPICE_TOKEN http://127.0.0.1:7717/v1/sessions\n\n" +
			"Ctrl-C or SIGTERM stops the server once it has answered running requests.",
		Example: "  coppice serve\n" +
			"  coppice serve --import\n" +
			"  coppice serve --addr :8443 --host box --tls-cert c.pem --tls-key k.pem",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runServe(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", "127.0.0.1:7717", "where to listen; port 0 picks a free one")
	flags.StringVar(&f.cert, "tls-cert", "", "the file with the certificate and its chain")
	flags.StringVar(&f.key, "tls-key", "", "the file with the certificate's key")
	flags.BoolVar(&f.behindProxy, "behind-proxy", false, "listen without TLS; a proxy in front provides it")
	flags.StringArrayVar(&f.hosts, "host", nil, "another host name that clients may use")
	flags.StringArrayVar(&f.origins, "origin", nil, "let pages of this site connect: https://example.org")
	flags.BoolVar(&f.open, "no-token", false, "ask for no token; only on this machine")
	flags.BoolVar(&f.imports, "import", false, "keep importing what other programs write")
	flags.BoolVar(&f.tools, "tools", false, "let admin tokens run tools on this machine")
	flags.StringVar(&f.log, "log", "none", "log each request: none, text or json")
	flags.BoolVar(&f.pprof, "pprof", false, "offer Go profiles to admin tokens")
	cmd.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	cmd.MarkFlagsMutuallyExclusive("tls-cert", "behind-proxy")
	return cmd
}

// runServe refuses an unsafe address before it opens the home, and then says how to sign in: a
// person who starts the first server has no token yet.
func (a *app) runServe(ctx context.Context, f *serveFlags) error {
	log, err := a.serveLog(f.log)
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	return a.withHome(ctx, true, func(h *home.Home) error {
		s, err := f.begin(ctx, h, log)
		if err != nil {
			return err
		}
		a.say("serving %s at %s", h.Dir(), s.address)
		switch {
		case f.open:
			a.say("%s no token is needed: every user and program on this machine can do everything", a.paint(yellow, "warning:"))
		case s.secret == "":
			a.say("clients need a token; %s lists them", a.command("token ls", nil))
		default:
			a.say("this token may do everything until the server stops; %s makes others:", a.command("token add NAME", nil))
			a.say("  %s", s.secret)
		}
		return importing(ctx, h, allIf(f.imports), s.serve)
	})
}

// begun is a server that listens.
type begun struct {
	server          *server.Server
	listener        net.Listener
	address, secret string // see authorize
}

// serve answers requests until ctx ends.
func (b *begun) serve(ctx context.Context) error { return b.server.Serve(ctx, b.listener) }

// begin makes a server. It listens last, when nothing else can go wrong: a client that sees the
// address may connect at once.
func (f *serveFlags) begin(ctx context.Context, h *home.Home, log *slog.Logger) (*begun, error) {
	o := server.Options{
		Home: h, Hosts: f.hosts, Origins: f.origins, Log: log, Pprof: f.pprof, Version: thisBuild().Version,
	}
	if f.tools {
		o.Tools = home.Admin
	}
	secret, err := f.authorize(ctx, h, &o)
	if err != nil {
		return nil, err
	}
	s, err := server.New(o)
	if err != nil {
		return nil, err
	}
	l, scheme, err := f.listen(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &begun{s, l, fmt.Sprintf("%s://%s", scheme, l.Addr()), secret}, nil
}

// check refuses to listen where others could read along.
func (f *serveFlags) check() error {
	host, _, err := net.SplitHostPort(f.addr)
	if err != nil {
		return misuse("--addr is %q; it must be HOST:PORT", f.addr)
	}
	switch {
	case isLoopback(host):
		return nil
	case f.open:
		return misuse("--no-token is for this machine only: elsewhere, anyone could read and change the sessions")
	case f.cert == "" && !f.behindProxy:
		return hinted(misuse("--addr %s can be reached from other machines; without TLS, others on the network could read tokens and sessions", f.addr),
			"give --tls-cert and --tls-key, or --behind-proxy if a proxy in front provides TLS")
	}
	return nil
}

// isLoopback reports whether only this machine can reach a host.
func isLoopback(host string) bool {
	ip, _ := netip.ParseAddr(host)
	return host == "localhost" || ip.IsLoopback()
}

// authorize makes the server ask for tokens. If the home has none, or own is
// set, it returns one that is valid for this server only, until it stops.
func (f *serveFlags) authorize(ctx context.Context, h *home.Home, o *server.Options) (secret string, err error) {
	if f.open {
		return "", nil
	}
	tokens := token.Of(h.Store())
	all, err := tokens.List(ctx)
	if err != nil {
		return "", err
	}
	run := token.Of(memory.New(nil)) // which ends with this run
	if f.own || len(all) == 0 {
		if secret, err = run.Add(ctx, token.Token{Name: "this-run", Access: home.Admin}); err != nil {
			return "", err
		}
	}
	o.Authorize = func(ctx context.Context, given string) (*server.Grant, error) {
		t, err := tokens.Check(ctx, given)
		if errors.Is(err, token.ErrRefused) {
			t, err = run.Check(ctx, given)
		}
		switch {
		case errors.Is(err, token.ErrRefused):
			return nil, server.ErrUnauthorized
		case err != nil:
			return nil, err
		}
		return &server.Grant{Name: t.Name, Access: t.Access}, nil
	}
	return secret, nil
}

// listen opens the socket.
func (f *serveFlags) listen(ctx context.Context) (l net.Listener, scheme string, err error) {
	var tcp net.ListenConfig
	l, err = tcp.Listen(ctx, "tcp", f.addr)
	for _, other := range f.others {
		if err == nil {
			break
		}
		l, err = tcp.Listen(ctx, "tcp", other)
	}
	if err != nil {
		return nil, "", hinted(err, "choose another address with --addr; 127.0.0.1:0 picks a free port")
	}
	if f.cert == "" {
		return l, "http", nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		err = fmt.Errorf("--tls-cert %s with --tls-key %s: %w", f.cert, f.key, err)
		return nil, "", errors.Join(hinted(err, "give the files of one certificate and its key, in PEM"), l.Close())
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}), "https", nil
}

// serveLog returns the log of the requests.
func (a *app) serveLog(form string) (*slog.Logger, error) {
	switch form {
	case "none":
		return nil, nil
	case "text":
		return slog.New(slog.NewTextHandler(&lineWriter{a}, nil)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(&lineWriter{a}, nil)), nil
	}
	return nil, misuse("--log is %q; it must be none, text or json", form)
}

// lineWriter writes the lines of a log with say, as all other messages.
type lineWriter struct{ app *app }

// Write writes a line of the log.
func (w *lineWriter) Write(line []byte) (int, error) {
	w.app.sayAsIs(string(bytes.TrimRight(line, "\n")))
	return len(line), nil
}
