//go:build unix

// Package s3test runs a real server of the S3 protocol for tests: one for each test program, on
// a temporary directory.
package s3test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/needs"
	"github.com/coppice-dev/coppice/store/vfs"
)

// The server: versitygw keeps a bucket as a directory and an object as a file, and checks
// signatures.
const (
	program = "github.com/versity/versitygw/cmd/versitygw"
	version = "v1.8.0"
)

// The key of the server. New sets the variables that programs take it from.
const (
	KeyID  = "coppice-test"
	Secret = "not-so-Secret-71903"
)

// Server is a running server.
type Server struct {
	Endpoint string // such as http://127.0.0.1:45678
	Dir      string // has the buckets
}

// Bucket is a bucket that no other test uses.
type Bucket struct {
	*Server
	Name string
	Dir  string // has the objects
}

var buckets atomic.Int64

// New returns a new bucket of the server that the tests of this program share.
func New(t testing.TB) Bucket {
	t.Helper()
	needs.This(t, needs.S3)
	server, err := shared()
	if err != nil {
		t.Fatalf("an S3 server for the tests: %v", err)
	}
	name := fmt.Sprintf("bucket-%d", buckets.Add(1))
	b := Bucket{Server: server, Name: name, Dir: filepath.Join(server.Dir, name)}
	if err := os.Mkdir(b.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return b
}

// URL returns the URL of the bucket, at the server or at a proxy.
func (b Bucket) URL(endpoint string) string {
	return fmt.Sprintf("s3://%s/some/prefix?endpoint=%s&region=us-east-1", b.Name, endpoint)
}

var shared = sync.OnceValues(func() (*Server, error) {
	dir, err := os.MkdirTemp("", "s3")
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": KeyID, "AWS_SECRET_ACCESS_KEY": Secret} {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	return Start(dir)
})

// Start starts a server on a directory, with more options. The server ends, and the directory
// goes, with this program, however that ends.
func Start(dir string, options ...string) (*Server, error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // to find a free port
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	l.Close()
	// The shell waits for the end of the input, which comes when this program ends.
	const script = `dir=$1; shift; "$@" >/dev/null 2>&1 & read -r _; kill $!; rm -rf "$dir"`
	accounts, data := filepath.Join(dir, "accounts"), filepath.Join(dir, "buckets")
	for _, dir := range []string{accounts, data} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	args := append([]string{"-c", script, "sh", dir, path, "--quiet", "--keep-alive", "--iam-dir", accounts, "--port", address}, options...)
	run := exec.Command("/bin/sh", append(args, "posix", data)...)
	run.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+KeyID, "ROOT_SECRET_KEY="+Secret)
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, keep, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	run.Stdin = in
	if err := run.Start(); err != nil {
		return nil, err
	}
	running.Store(keep, true)
	s := &Server{Endpoint: "http://" + address, Dir: data}
	return s, s.await()
}

// running has the ends of pipes that must stay open.
var running sync.Map

func (s *Server) await() (err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 1000 {
		var answer *http.Response
		if answer, err = client.Get(s.Endpoint); err == nil {
			return answer.Body.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("the server does not answer: %w", err)
}

// find returns the program of the server. It is downloaded and built once on each machine, which
// takes a minute or two, and a third longer if the compiler optimises it.
func find() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "coppice-test")
	path := filepath.Join(dir, filepath.Base(program)+"-"+version)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(dir, "build")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	build := exec.Command("go", "install", "-gcflags=github.com/...=-N -l", program+"@"+version)
	build.Env = append(os.Environ(), "GOBIN="+made, "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	err = vfs.MoveNew(vfs.OS{}, filepath.Join(made, filepath.Base(program)), path, nil)
	if errors.Is(err, fs.ErrExist) { // another test was faster
		err = nil
	}
	return path, err
}
