// Command interop asks real programs about the transcripts that Coppice writes, and
// Coppice about those that they write:
//
//	go run ./interop [-run regexp] [-latest] [-cache directory] [-keep directory]
//
// It installs each program from npm, at one exact version or, with -latest, at the newest,
// into a cache outside of the checkout. Then it hands each of them a conversation that has all that is hard to hand
// over, lets it list, read and resume that, looks at what it sends to the model, and
// imports what it added. The model runs on loopback. The programs see an empty home
// directory, no keys, and no network; on Linux there is none, elsewhere they are only told
// so.
//
// A program that cannot be installed is not asked, and that is no failure. The last line
// is
//
//	N passed, M failed, K not asked
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	_ "github.com/coppice-dev/coppice/home/all"
)

// visit is a program, and what it is asked.
type visit struct {
	program string
	with    []string // other programs that it needs
	run     func(*guest)
}

var visits = []visit{
	{"claude", nil, visitClaude},
	{"claude", nil, visitMaker},
	{"codex", nil, visitCodex},
	{"codex", nil, visitMaker},
	{"gemini", nil, visitGemini},
	{"gemini", nil, visitMaker},
	{"pi", nil, visitPi},
	{"pi", nil, visitMaker},
	{"claude", []string{"codex", "gemini", "pi"}, visitRelay("codex", "gemini", "pi", "codex")},
	{"ccusage", []string{"claude"}, visitCcusage("claude")},
	{"ccusage", []string{"codex"}, visitCcusage("codex")},
	{"ccusage", []string{"gemini"}, visitCcusage("gemini")},
	{"ccusage", []string{"pi"}, visitCcusage("pi")},
	{"opencode", nil, visitOpencode},
	{"opencode", nil, visitMaker},
	{"qwen", nil, visitMaker},
	{"copilot", nil, visitMaker},
	{"kimi", nil, visitMaker},
	{"cline", nil, visitMaker},
	{"mcp-conformance", nil, visitMCPSuite},
	{"mcp-client", nil, visitMCPClient},
	{"redocly", nil, visitRedocly},
	{"openapi-typescript", nil, visitOpenAPITypes},
	{"curl", nil, visitCurl},
	{"netcat", nil, visitNetcat},
	{"claude", nil, visitMCPAgent},
	{"codex", nil, visitMCPAgent},
	{"gemini", nil, visitMCPAgent},
	{"opencode", nil, visitMCPAgent},
	{"copilot", nil, visitMCPAgent},
	{"kimi", nil, visitMCPAgent},
}

// needs reports whether a program must be there for the visit.
func (v *visit) needs(name string) bool {
	return name == v.program || name == node && programNamed(v.program).pkg != "" || slices.Contains(v.with, name)
}

// plan is what the process that asks gets from the one that installs.
type plan struct {
	Cache   string
	Dir     string            // for the machines
	Run     string            // a regular expression
	Missing map[string]string // why a program is not there, by name
	Newest  map[string]string // the versions to ask instead of the exact ones, by name
	Alone   bool              // in a network of its own
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := plan{Missing: make(map[string]string), Newest: make(map[string]string)}
	inside := flag.Bool("inside", false, "internal: read a plan from standard input, and ask")
	keep := flag.String("keep", "", "keep the files of all programs in this directory")
	latest := flag.Bool("latest", false, "ask the newest version of each program")
	flag.StringVar(&p.Run, "run", "", "ask only programs whose names match")
	flag.StringVar(&p.Cache, "cache", os.Getenv("COPPICE_INTEROP"), "where the programs are installed")
	flag.Parse()
	var err error
	if *inside {
		err = askAll(ctx)
	} else {
		err = p.prepareAndAsk(ctx, *keep, *latest)
	}
	if err != nil {
		var exit *exec.ExitError
		if !errors.Is(err, errWrong) && !errors.As(err, &exit) {
			fmt.Fprintln(os.Stderr, "interop:", err)
		}
		os.Exit(1)
	}
}

// prepareAndAsk installs the programs and starts the process that asks them.
func (p *plan) prepareAndAsk(ctx context.Context, keep string, latest bool) error {
	if err := p.settle(); err != nil {
		return err
	}
	in := &installer{cache: p.Cache, talk: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	in.tidy()
	only := regexp.MustCompile(p.Run)
	for i := range programs {
		one := &programs[i]
		if !slices.ContainsFunc(visits, func(v visit) bool { return only.MatchString(v.program) && v.needs(one.name) }) {
			continue
		}
		if latest && one.name != node && one.pkg != "" {
			if version := in.newest(ctx, one); version != "" {
				p.Newest[one.name], one.version = version, version
			}
		}
		if err := in.install(ctx, one); err != nil {
			p.Missing[one.name] = err.Error()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	p.Dir = keep
	if keep == "" {
		dir, err := os.MkdirTemp("", "interop-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		p.Dir = dir
	}
	if err := buildCoppice(ctx, p.Dir); err != nil {
		return err
	}
	return p.askElsewhere(ctx)
}

// buildCoppice builds the program beside the machines: see machine.coppicePath.
func buildCoppice(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, coppiceName), "github.com/coppice-dev/coppice/cmd/coppice")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// settle fills in the cache, and makes paths absolute.
func (p *plan) settle() (err error) {
	if _, err := regexp.Compile(p.Run); err != nil {
		return err
	}
	if p.Cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		p.Cache = filepath.Join(user, "coppice-interop")
	}
	p.Cache, err = filepath.Abs(p.Cache)
	return err
}

// askElsewhere starts this program again, where there is no network but loopback. If the
// system does not allow that, it asks here.
func (p *plan) askElsewhere(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p.Alone = true
	cmd := p.command(ctx, self)
	isolated(cmd)
	if cmd.SysProcAttr != nil {
		err := cmd.Start()
		if err == nil {
			err = cmd.Wait()
		}
		var exit *exec.ExitError
		if err == nil || errors.As(err, &exit) && exit.ExitCode() != exitNoLoopback {
			return err
		}
		fmt.Println("no network of its own:", err)
	}
	p.Alone = false
	return p.command(ctx, self).Run()
}

func (p *plan) command(ctx context.Context, self string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, self, "-inside")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = maxEnd
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "COPPICE_INTEROP_PLAN="+mustJSON(p))
	return cmd
}

// readPlan returns the plan of the process that started this one.
func readPlan() (*plan, error) {
	p := &plan{}
	return p, json.Unmarshal([]byte(os.Getenv("COPPICE_INTEROP_PLAN")), p)
}
