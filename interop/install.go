package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/store/vfs"
)

// maxInstall is how long the installation of one program may take.
const maxInstall = 5 * time.Minute

// installer puts programs into the cache, each into a directory of its own that is there
// whole or not at all.
type installer struct {
	cache string
	talk  func(format string, args ...any)
	// unreachable is why nothing more is downloaded: without a network, eleven programs
	// would each wait for it.
	unreachable error
}

// tidy removes what runs that were killed have left.
func (in *installer) tidy() {
	left, _ := filepath.Glob(filepath.Join(in.cache, tmpPrefix+"*")) // the pattern is a good one
	for _, dir := range left {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > 2*maxInstall {
			os.RemoveAll(dir)
		}
	}
}

// tmpPrefix begins the names of directories that are not complete.
const tmpPrefix = "tmp-"

// install returns nil if the program is in the cache, or is now.
func (in *installer) install(ctx context.Context, p *program) error {
	if p.pkg == "" {
		_, err := exec.LookPath(p.file)
		return err
	}
	if _, err := os.Stat(p.command(in.cache)[0]); err == nil {
		if _, err := os.Stat(filepath.Join(p.modules(in.cache), filepath.FromSlash(p.file))); err == nil {
			return nil
		}
	}
	if in.unreachable != nil {
		return in.unreachable
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		in.unreachable = errors.New("npm is not installed")
		return in.unreachable
	}
	in.talk("installing %s %s", p.name, p.version)
	began := time.Now()
	if err := in.download(ctx, npm, p); err != nil {
		if isUnreachable(err) {
			in.unreachable = err
		}
		return err
	}
	in.talk("installed %s in %.0f s", p.name, time.Since(began).Seconds())
	return nil
}

// newest returns the newest version of a program, or "" if npm does not say.
func (in *installer) newest(ctx context.Context, p *program) string {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "npm", "view", p.pkg, "version", "--no-update-notifier").Output()
	if err != nil {
		in.talk("the newest version of %s is not known: %v", p.name, err)
		return ""
	}
	return strings.TrimSpace(string(out))
}

// download installs into a temporary directory, and renames it when it is complete.
func (in *installer) download(ctx context.Context, npm string, p *program) error {
	if err := os.MkdirAll(in.cache, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(in.cache, tmpPrefix+p.name+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, maxInstall)
	defer cancel()
	// No scripts: what is asked is the program, not what its package does to a machine.
	cmd := exec.CommandContext(ctx, npm, "install", "--prefix", dir, "--cache", filepath.Join(dir, "npm-cache"),
		"--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--save-exact",
		"--fetch-retries=1", "--fetch-timeout=60000", p.pkg+"@"+p.version)
	cmd.Dir = dir
	killable(cmd)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("npm took longer than %v", maxInstall)
		}
		return fmt.Errorf("npm: %s", npmError(out.String(), err))
	}
	if err := os.RemoveAll(filepath.Join(dir, "npm-cache")); err != nil {
		return err
	}
	file := filepath.Join(dir, "node_modules", filepath.FromSlash(p.file))
	if err := os.Chmod(file, 0o755); errors.Is(err, fs.ErrNotExist) { // not every package has modes
		return fmt.Errorf("the package has no %s", p.file)
	} else if err != nil {
		return err
	}
	final := filepath.Dir(p.modules(in.cache))
	if err := (vfs.OS{}).Rename(dir, final); err != nil {
		if _, there := os.Stat(final); there != nil {
			return err
		} // another run was faster
	}
	return nil
}

// npmError picks from npm's output what went wrong.
func npmError(out string, err error) string {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "npm error "); ok && !strings.HasPrefix(rest, "code ") {
			return rest
		}
	}
	return err.Error()
}

// isUnreachable reports whether an error says that there is no network, in the words of
// npm, which has no other way to say it.
func isUnreachable(err error) bool {
	for _, sign := range []string{"ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN", "ENETUNREACH", "ECONNRESET", "network", "longer than"} {
		if strings.Contains(err.Error(), sign) {
			return true
		}
	}
	return false
}
