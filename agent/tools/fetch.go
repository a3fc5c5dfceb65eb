package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/coppice-dev/coppice/agent"
)

const (
	maxPage   = 5 << 20 // bytes of an answer that are read
	maxHops   = 5       // redirections
	fetchTime = 30 * time.Second
)

type fetchInput struct {
	URL string `json:"url" jsonschema:"begins with http:// or https://"`
}

func (k *toolset) fetch() (agent.Tool, error) {
	t, err := agent.NewTool(Fetch, fmt.Sprintf("Get a page from the web. Returns its text, up to %s: the middle of a longer text is left out.", size(int64(k.MaxOutput))),
		func(ctx context.Context, call agent.Call, in fetchInput) (agent.Result, error) {
			u, err := webAddress(in.URL)
			if err != nil {
				return refused(err)
			}
			text, err := k.get(ctx, u)
			if err != nil && ctx.Err() == nil {
				return refused(err)
			}
			return agent.Result{Text: text}, err
		})
	t.Repeatable, t.Timeout = true, fetchTime+10*time.Second
	t.Ask = func(call agent.Call) (bool, string) {
		at := hostOf(call)
		if at.isPrivate() {
			return true, "it is not a public address: it is this machine, or in a private network"
		}
		return at.name != "", ""
	}
	return t, err
}

// site is a host and a port on it.
type site struct {
	name string
	port string // "" is the usual one
	tls  bool
}

func siteOf(u *url.URL) site {
	s := site{strings.ToLower(u.Hostname()), u.Port(), u.Scheme == "https"}
	if s.port == s.defaultPort() {
		s.port = ""
	}
	return s
}

func (s site) defaultPort() string {
	if s.tls {
		return "443"
	}
	return "80"
}

// anyPort returns the port, the usual one too.
func (s site) anyPort() string { return cmp.Or(s.port, s.defaultPort()) }

// String returns the site as it is written in a rule.
func (s site) String() string {
	if s.port == "" {
		return s.name
	}
	return net.JoinHostPort(s.name, s.port)
}

// splitPort returns the two parts of what String returns.
func splitPort(text string) (host, port string) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 || !strings.HasPrefix(text, "[") && strings.Count(text, ":") > 1 { // an IPv6 address
		return text, ""
	}
	return strings.Trim(text[:i], "[]"), text[i+1:]
}

// isPrivate reports whether the name says that the site is not on the internet. Other names
// may lead to such an address too; get finds that out when it connects.
func (s site) isPrivate() bool {
	if s.name == "localhost" || strings.HasSuffix(s.name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(s.name)
	return err == nil && !isPublic(netip.AddrPortFrom(ip, 0).String())
}

// webAddress parses an address.
func webAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the url must begin with http:// or https:// and name a host")
	case u.User != nil:
		return nil, errors.New("the url must not have a user or a password")
	}
	return u, nil
}

// hostOf returns the site of a fetch call; it has no name if the call cannot run.
func hostOf(call agent.Call) site {
	in, err := agent.Arguments[fetchInput](call.Input)
	if err != nil {
		return site{}
	}
	u, err := webAddress(in.URL)
	if err != nil {
		return site{}
	}
	return siteOf(u)
}

// get returns the text at an address. It connects only to this host and port, because they
// were approved, and directly: a proxy could reach private addresses.
func (k *toolset) get(ctx context.Context, u *url.URL) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTime, fmt.Errorf("it took longer than %s", fetchTime))
	defer cancel()
	here := siteOf(u)
	dialer := &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		// An address that is plainly not public was approved knowing that.
		if !isPublic(address) && !here.isPrivate() && !k.Rules.names(here) {
			return fmt.Errorf("%s leads to %s, which is not a public address: ask for that address itself, so that the user sees it", here.name, address)
		}
		return nil
	}}
	client := &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, TLSHandshakeTimeout: fetchTime},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if next := siteOf(r.URL); len(via) > maxHops || next.name != here.name || next.port != here.port {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("User-Agent", "coppice")
	r.Header.Set("Accept", "text/markdown, text/html, text/plain, */*;q=0.5")
	response, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if where := response.Header.Get("Location"); where != "" {
		return "", fmt.Errorf("the page has moved to %s: fetch that if it is right", where)
	}
	text, err := pageText(response)
	if err != nil {
		return "", err
	}
	out := newClipped(k.MaxOutput)
	_, _ = io.WriteString(out, text)
	text = out.String()
	if response.StatusCode >= 400 {
		return "", fmt.Errorf("%s\n%s", response.Status, text)
	}
	return text, nil
}

// pageText returns the text of an answer.
func pageText(response *http.Response) (string, error) {
	kind, params, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	isText := strings.HasPrefix(kind, "text/") || strings.Contains(kind, "json") || strings.Contains(kind, "xml") || strings.Contains(kind, "javascript") || kind == ""
	if !isText {
		return "", fmt.Errorf("it is not text but %s", kind)
	}
	page, err := io.ReadAll(io.LimitReader(response.Body, maxPage))
	if err != nil {
		return "", err
	}
	if len(page) == maxPage {
		page = withoutTorn(page)
	}
	text, err := decodePage(page, params["charset"])
	if err == nil && strings.Contains(kind, "html") {
		return htmlText(strings.NewReader(text))
	}
	return text, err
}

// isPublic reports whether an address, with its port, is a public one.
func isPublic(address string) bool {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return false
	}
	ip := at.Addr().Unmap()
	for _, special := range special {
		if special.Contains(ip) {
			return false
		}
	}
	return ip.IsGlobalUnicast() && !ip.IsPrivate()
}

// special are further addresses that are not public: shared ones of providers, the
// translation of IPv4 addresses, and those for tests and documents.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
}
