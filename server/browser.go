package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/server/web"
)

// browsers are the browsers that are signed in. A browser gives a token once; from then on it
// has a cookie, which no script can read, and a second secret, which its page sends as a header.
// It needs both: a cookie is also sent to other ports of a machine, and what a page keeps could be
// read by a script. Each request asks again whether the token is valid, so a browser is signed
// in for no longer than that, nor than the server runs.
type browsers struct {
	mu    sync.Mutex // guards what follows
	in    map[[sha256.Size]byte]*browser
	codes map[[sha256.Size]byte]*browser // for one sign-in, instead of a token
}

func newBrowsers() *browsers {
	return &browsers{in: make(map[[sha256.Size]byte]*browser), codes: make(map[[sha256.Size]byte]*browser)}
}

// browser is a browser that is signed in, or may sign in once.
type browser struct {
	token, name string
	since       time.Time
}

const (
	// maxBrowsers is how many browsers may be signed in with a token; another one takes the
	// place of the oldest.
	maxBrowsers = 100
	// codeLife is how long a code may be used.
	codeLife = time.Minute
	// pageHeader has the secret of a page.
	pageHeader = "Coppice-Page"
)

// key is what a browser that has both secrets is found by. Where it is in a map says nothing
// about it, so looking for it takes no telling time.
func key(cookie, page string) [sha256.Size]byte { return sha256.Sum256([]byte(cookie + " " + page)) }

// add keeps a browser. If its token has too many, the oldest goes.
func add(to map[[sha256.Size]byte]*browser, k [sha256.Size]byte, b *browser) {
	var oldest [sha256.Size]byte
	of := 0
	for k, other := range to {
		if other.name != b.name {
			continue
		}
		if of++; of == 1 || other.since.Before(to[oldest].since) {
			oldest = k
		}
	}
	if of >= maxBrowsers {
		delete(to, oldest)
	}
	to[k] = b
}

// tokenOf returns the token of a request: the one that it carries, or that of its browser.
func (b *browsers) tokenOf(r *http.Request) string {
	if token := bearer(r); token != "" || r.Header.Get("Authorization") != "" {
		return token
	}
	cookie, err := r.Cookie(cookieFor(r))
	page := r.Header.Get(pageHeader)
	if site := r.Header.Get("Sec-Fetch-Site"); err != nil || page == "" || site != "" && site != "same-origin" {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.in[key(cookie.Value, page)]; known != nil {
		return known.token
	}
	return ""
}

// cookieFor returns the name of the cookie of a server. Browsers keep those of all servers on a
// machine together, whatever their ports.
func cookieFor(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return strings.TrimSuffix("coppice-"+port, "-")
}

// isSecure reports whether a browser that signs in came over TLS, here or at a proxy in front.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

// page answers what the page needs besides the operations. It reports whether it was asked for.
func (s *Server) page(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.URL.Path == "/web/sign-in" && r.Method == http.MethodPost:
		if err := s.signIn(w, r); err != nil {
			s.fail(w, r, err)
		}
		return true
	case web.Has(r.URL.Path):
		if !s.admit.isHost(r.Host) {
			return false
		}
		web.Serve(w, r)
		return true
	}
	return false
}

// maxSignIn is how large a request to sign in may be.
const maxSignIn = 4 << 10

func (s *Server) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := s.admit.isAllowed(r); err != nil {
		return err
	}
	var given struct{ Token, Code string }
	body := http.MaxBytesReader(w, r.Body, maxSignIn)
	if err := json.NewDecoder(body).Decode(&given); err != nil {
		return problemf(http.StatusBadRequest, home.KindInvalid, "the body must be an object with a token or a code")
	}
	token := given.Token
	if given.Code != "" {
		token = s.admit.browsers.redeem(given.Code)
	}
	g, err := s.admit.grantTo(r.Context(), token)
	if err != nil {
		return err
	}
	noteCaller(r.Context(), g.Name)
	cookie, page := rand.Text(), rand.Text()
	s.admit.browsers.mu.Lock()
	add(s.admit.browsers.in, key(cookie, page), &browser{token, g.Name, time.Now()})
	s.admit.browsers.mu.Unlock()
	setCookie(w, r, cookie, 0) // until the browser is closed
	answerJSON(w, map[string]string{"page": page})
	return nil
}

func setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieFor(r), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: isSecure(r), SameSite: http.SameSiteStrictMode,
	})
}

// redeem returns the token that a code means, once.
func (b *browsers) redeem(code string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := key(code, "")
	meant := b.codes[k]
	delete(b.codes, k)
	if meant == nil || time.Since(meant.since) > codeLife {
		return ""
	}
	return meant.token
}

// issueCode answers with a code with which a browser can sign in once, with the same token.
func (s *Server) issueCode(w http.ResponseWriter, r *http.Request) {
	code := rand.Text()
	b := s.admit.browsers
	b.mu.Lock()
	add(b.codes, key(code, ""), &browser{bearer(r), GrantOf(r.Context()).Name, time.Now()}) // a browser cannot pass on its own
	b.mu.Unlock()
	answerJSON(w, map[string]string{"code": code})
}

func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieFor(r)); err == nil {
		b := s.admit.browsers
		b.mu.Lock()
		delete(b.in, key(cookie.Value, r.Header.Get(pageHeader)))
		b.mu.Unlock()
	}
	setCookie(w, r, "", -1)
	answerJSON(w, struct{}{})
}

// signedIn says who is signed in, so that the page offers what its user may do.
func (s *Server) signedIn(w http.ResponseWriter, r *http.Request) {
	g := GrantOf(r.Context())
	answerJSON(w, map[string]any{
		"name": g.Name, "access": g.Access, "open": s.o.Authorize == nil, "tools": !s.isConfined(g), "version": s.o.Version,
		"filters": index.Filters(), "list_filters": index.ListFilters(), "agents": render.AgentSigns(),
	})
}

// pageProgram is another program in which a conversation can be used.
type pageProgram struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Resumes bool   `json:"resumes"` // coppice resume can continue it there
}

// choices says what the page lets its user choose from: the models that can be asked, and the
// programs to which a conversation can be taken.
func (s *Server) choices(w http.ResponseWriter, r *http.Request) {
	models, err := s.o.Home.Settings().Models()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	ready := slices.DeleteFunc(models.Models, func(m home.KnownModel) bool { return !m.Ready })
	resumes := home.Choices(reflect.TypeFor[home.ResumeRequest](), "in")
	programs := []pageProgram{}
	for _, f := range home.Formats() {
		if f.Written {
			programs = append(programs, pageProgram{f.Name, f.Title, slices.Contains(resumes, f.Name)})
		}
	}
	answerJSON(w, map[string]any{"models": ready, "thinking": provider.ThinkingLevels, "programs": programs})
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", plainJSON)
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // the caller may be gone
}
