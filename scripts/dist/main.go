// Command dist builds the archives of a release: for each platform the program,
// what shells need to complete it, its manual page and the papers, beside it a list
// of the modules that are in the program (an SBOM), and the sums of all of them in
// SHA256SUMS. It needs Go and git.
//
// The same commit, built with the same Go, gives the same bytes on every machine:
// times are those of the commit, names are sorted, and nothing of the machine or
// its user gets in.
//
// Usage:
//
//	dist [-version v1.2.3] [-o dist] os/arch...
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	program = "coppice"
	// linked are the variables that tell the program its version and revision.
	linked = "github.com/coppice-dev/coppice/cmd/coppice/internal/cli.linked"
)

func main() {
	version := flag.String("version", "", "the `version`; default: git describe --tags --always --dirty")
	out := flag.String("o", "dist", "the `directory` for the archives; what is in it is deleted")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *version, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// release is what is built, and from what.
type release struct {
	version  string
	revision string    // of the source; it ends with -dirty if that was changed since
	time     time.Time // of the commit
	shared   []file    // what every archive has
	out      string
}

func run(ctx context.Context, version, out string, platforms []string) error {
	r, err := describe(ctx, version)
	if err != nil {
		return err
	}
	r.out = out
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if r.shared, err = r.sharedFiles(ctx); err != nil {
		return err
	}
	var sums strings.Builder
	for _, platform := range platforms {
		files, err := r.platform(ctx, platform)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(out, f.name), f.data, f.mode); err != nil {
				return err
			}
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.data), f.name)
			fmt.Printf("%5.1f MB  %s\n", float64(len(f.data))/1e6, filepath.Join(out, f.name))
		}
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// describe asks git what is checked out.
func describe(ctx context.Context, version string) (r release, err error) {
	if r.version = version; version == "" {
		if r.version, err = git(ctx, "describe", "--tags", "--always", "--dirty"); err != nil {
			return r, err
		}
	}
	if !regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+_-]*$`).MatchString(r.version) {
		return r, fmt.Errorf("%q cannot be a version: it becomes part of file names", r.version)
	}
	// No tag is called "", so this is the whole hash.
	if r.revision, err = git(ctx, "describe", "--always", "--dirty", "--abbrev=40", "--match="); err != nil {
		return r, err
	}
	seconds, err := git(ctx, "log", "-1", "--format=%ct")
	if err != nil {
		return r, err
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	r.time = time.Unix(at, 0).UTC()
	return r, err
}

func git(ctx context.Context, args ...string) (string, error) {
	text, err := output(exec.CommandContext(ctx, "git", args...))
	return strings.TrimSpace(string(text)), err
}

// output runs a command, and says what it complained of if it fails.
func output(cmd *exec.Cmd) ([]byte, error) {
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, complaint.Bytes())
	}
	return text, nil
}

// build builds the program for a platform and returns it. What the builder has set
// about Go, beside where modules come from, must not change the result.
func (r *release) build(ctx context.Context, goos, goarch string) ([]byte, error) {
	path := filepath.Join(r.out, ".building")
	defer os.Remove(path)
	cmd := exec.CommandContext(ctx, cmp.Or(os.Getenv("GO"), "go"), "build", "-trimpath", "-buildvcs=false",
		"-ldflags", fmt.Sprintf("-s -w -X %[1]sVersion=%[2]s -X %[1]sRevision=%[3]s", linked, r.version, r.revision),
		"-o", path, "./cmd/"+program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOOS="+goos, "GOARCH="+goarch)
	if _, err := output(cmd); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// platform returns the files of a platform: its archive, and the list of what is in the
// program.
func (r *release) platform(ctx context.Context, platform string) ([]file, error) {
	goos, goarch, ok := strings.Cut(platform, "/")
	if !ok {
		return nil, errors.New("a platform is an operating system and an architecture, such as linux/amd64")
	}
	binary, err := r.build(ctx, goos, goarch)
	if err != nil {
		return nil, err
	}
	dir := strings.Join([]string{program, r.version, goos, goarch}, "-")
	executable, ending, write := program, ".tar.gz", writeTarGz
	if goos == "windows" {
		executable, ending, write = program+".exe", ".zip", writeZip
	}
	var packed bytes.Buffer
	if err := write(&packed, dir, append(slices.Clip(r.shared), file{executable, 0o755, binary}), r.time); err != nil {
		return nil, err
	}
	listed, err := r.materials(dir, executable, binary)
	return []file{{dir + ending, 0o644, packed.Bytes()}, {dir + ".spdx.json", 0o644, listed}}, err
}
