//go:build unix

package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/client"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// certificate writes a certificate for an address, which vouches for itself, and its key.
func certificate(t *testing.T, dir string, ip net.IP) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{ip},
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "PRIVATE KEY", secret)
}

// ownAddress returns an address of this machine that others would use, or, if it has none, one
// that only it uses.
func ownAddress(t *testing.T) net.IP {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP
		}
	}
	return net.IPv4(127, 0, 0, 1)
}

// TestServeByTLS: other machines reach the server by TLS only, and only if they trust it.
func TestServeByTLS(t *testing.T) {
	t.Parallel()
	ip := ownAddress(t)
	files := t.TempDir()
	cert, key := certificate(t, files, ip)
	k := &killable{
		dir: filepath.Join(t.TempDir(), "sessions"), env: []string{"HOME=" + t.TempDir()},
		flags: []string{"--addr", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key, "--host", ip.String()},
	}
	given, err := program(k.dir, "token", "add", "far", "--write")
	if err != nil {
		t.Fatal(err)
	}
	token := given[strings.Index(given, "cop_"):]
	token = strings.Fields(token)[0]
	k.start(t)
	defer k.kill()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(k.address, "https://"))
	if err != nil {
		t.Fatal(k.address, err)
	}
	there := net.JoinHostPort(ip.String(), port)

	// A program that trusts the certificate.
	trusted := x509.NewCertPool()
	if text, err := os.ReadFile(cert); err != nil || !trusted.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: true}}
	defer web.CloseIdleConnections()
	h, err := client.Open(t.Context(), "https://"+there, &client.Options{Token: token, HTTP: web})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	made, err := h.Sessions.Create(t.Context(), home.CreateRequest{Title: "Far otters"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Entries.Append(t.Context(), home.AppendRequest{
		Session: made.Session, Message: &session.MessageEntry{Role: string(session.RoleUser), Content: []session.Content{session.Text("hello from afar")}},
	}); err != nil {
		t.Fatal(err)
	}

	// The command line, which trusts what the machine does.
	run := func(server string, env ...string) (string, error) {
		cmd := exec.Command("coppice", "--server", server, "show", "last")
		cmd.Env = append(os.Environ(), append([]string{"HOME=" + t.TempDir(), "COPPICE_TOKEN=" + token}, env...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("https://"+there, "SSL_CERT_FILE="+cert); err != nil || !strings.Contains(out, "hello from afar") {
		t.Errorf("with the certificate: %v: %s", err, out)
	}
	for name, c := range map[string]struct{ server, env, why, hint string }{
		"not trusted":  {"https://" + there, "SSL_CERT_FILE=" + os.DevNull, "cannot prove that it is the server: tls: failed to verify certificate: x509: certificate signed by unknown authority", "SSL_CERT_FILE"},
		"another name": {"https://localhost:" + port, "SSL_CERT_FILE=" + cert, "certificate is not valid for any names, but wanted to match localhost", "ask by the name that its certificate is for"},
		"no TLS":       {"http://127.0.0.1:" + port, "", `answered "400 Bad Request"`, "begins with https://"},
	} {
		out, err := run(c.server, c.env)
		if err == nil || !strings.Contains(out, c.why) || !strings.Contains(out, c.hint) || !strings.Contains(out, port) || strings.Contains(out, token) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	for version, spoken := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c, err := tls.Dial("tcp", there, &tls.Config{RootCAs: trusted, MinVersion: version, MaxVersion: version})
		if err == nil {
			_ = c.Close()
		}
		if (err == nil) != spoken {
			t.Errorf("with %s: %v", tls.VersionName(version), err)
		}
	}
	resp, err := http.Get("http://" + there + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "HTTPS") {
		t.Errorf("without TLS: %s %q, %v", resp.Status, text, err)
	}
}

// TestServeWithAWrongKey: the key of another certificate is no use.
func TestServeWithAWrongKey(t *testing.T) {
	t.Parallel()
	cert, _ := certificate(t, t.TempDir(), net.IPv4(127, 0, 0, 1))
	_, key := certificate(t, t.TempDir(), net.IPv4(127, 0, 0, 1))
	out, err := program(t.TempDir(), "serve", "--addr", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	for _, part := range []string{cert, key, "private key does not match public key", "hint: "} {
		if err == nil || !strings.Contains(out, part) {
			t.Errorf("%q is not in %q, %v", part, out, err)
		}
	}
}
