// Package web is the page of a server: files that a browser loads once, and which then ask the
// server as any other client does. They hold nothing about a home, so they need no token.
//
// The sources are in src. The program in build bundles them into dist, which is what a server
// has; make web-check finds out whether one comes from the other.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

//go:embed dist
var dist embed.FS

// Policy is what a browser may do on the page: run and draw what comes from this server, as
// files, and ask nothing else. A text can become an element at one place of the script only.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types coppice"

// file is a file of the page.
type file struct {
	kind         string
	plain, small []byte
	tag          string
}

var files = sync.OnceValue(func() map[string]*file {
	all := make(map[string]*file)
	for name, kind := range map[string]string{"index.html": "text/html", "app.js": "text/javascript", "app.css": "text/css"} {
		text, err := dist.ReadFile("dist/" + name)
		if err != nil {
			panic(err) // they are part of the program
		}
		var small bytes.Buffer
		z, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // the level is valid
		_, _ = z.Write(text)                                      // a buffer takes everything
		_ = z.Close()
		sum := sha256.Sum256(text)
		all[name] = &file{kind + "; charset=utf-8", text, small.Bytes(), base64.RawURLEncoding.EncodeToString(sum[:12])}
	}
	return all
})

// Has reports whether the page has a path. All addresses that people see are the same document,
// which looks at the address itself.
func Has(path string) bool { return named(path) != nil }

func named(path string) *file {
	switch first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); first {
	case "", "s", "stats", "images", "new":
		return files()["index.html"]
	case "app.js", "app.css":
		if path == "/"+first {
			return files()[first]
		}
	}
	return nil
}

// prefixOf returns the beginning of all addresses of the page, such as /coppice, which a proxy in
// front takes off, and names in a header.
func prefixOf(r *http.Request) string {
	prefix := strings.TrimRight(r.Header.Get("X-Forwarded-Prefix"), "/")
	isPart := func(c rune) bool {
		return c == '/' || c == '-' || c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	}
	if !strings.HasPrefix(prefix, "/") || strings.HasPrefix(prefix, "//") || strings.TrimFunc(prefix, isPart) != "" {
		return ""
	}
	return prefix
}

// Serve answers a request for a path that the page has.
func Serve(w http.ResponseWriter, r *http.Request) {
	f := named(r.URL.Path)
	h := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, tag := f.plain, `"`+f.tag+`"`
	if prefix := prefixOf(r); prefix != "" && f == files()["index.html"] {
		body, tag = bytes.ReplaceAll(body, []byte(`="/`), []byte(`="`+prefix+`/`)), `"`+f.tag+prefix+`"`
	} else if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body, tag = f.small, `"`+f.tag+`-gzip"`
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Vary", "Accept-Encoding, X-Forwarded-Prefix")
	h.Set("Cache-Control", "no-cache") // it may be cached, but must be revalidated
	h.Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // the caller may be gone
	}
}
