package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/agent/internal/process"
	"github.com/coppice-dev/coppice/render/plain"
)

// maxStderr is how many bytes of a line on the standard error go to the log.
const maxStderr = 4 << 10

// program is a server that was started here.
type program struct {
	group  *process.Group
	stdin  *os.File // ours to write
	stdout *os.File // ours to read
	stderr *os.File // ours to read
	exited chan struct{}
	logged chan struct{} // closed when the standard error has ended
	work   sync.WaitGroup

	mu   sync.Mutex // guards what follows
	err  error      // how it ended; nil if it ended with success
	last string     // the last line on its standard error
}

// startProgram starts the server. Its pipes are our own: those of exec.Cmd are closed
// when the program ends, before the last answer was read, and cannot be closed during a
// read.
func startProgram(s *Server) (*program, error) {
	cmd := exec.Command(s.opts.Command[0], s.opts.Command[1:]...)
	cmd.Dir, cmd.Env = s.opts.Dir, append(process.Environ(), s.opts.Env...)
	var theirs, ours [3]*os.File
	shut := func(files [3]*os.File) {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	var errs [3]error
	theirs[0], ours[0], errs[0] = os.Pipe()
	ours[1], theirs[1], errs[1] = os.Pipe()
	ours[2], theirs[2], errs[2] = os.Pipe()
	err := errors.Join(errs[:]...)
	p := &program{group: process.NewGroup(cmd), stdin: ours[0], stdout: ours[1], stderr: ours[2], exited: make(chan struct{}), logged: make(chan struct{})}
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
		err = p.group.Start()
	}
	shut(theirs)
	if err != nil {
		shut(ours)
		return nil, err
	}
	p.work.Go(func() { p.log(s) })
	p.work.Go(func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(p.exited)
	})
	return p, nil
}

// log passes on what the server prints on its standard error.
func (p *program) log(s *Server) {
	defer close(p.logged)
	r := bufio.NewReaderSize(p.stderr, maxStderr)
	for {
		piece, _, err := r.ReadLine()
		if line := plain.Line(string(piece)); line != "" {
			s.opts.Logger.Info("an MCP server says", "server", s.name, "line", line)
			p.mu.Lock()
			p.last = line
			p.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

func (p *program) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// awaitEnd waits until the program has ended and what it printed was read, and reports
// whether it has. A program closes its output a moment before it ends.
func (p *program) awaitEnd(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, done := range []chan struct{}{p.exited, p.logged} {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
	return p.ended()
}

// reason says how the program ended, or nil if it is running. The last line on its standard
// error often says why.
func (p *program) reason() error {
	if !p.ended() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	how := "its program ended"
	if p.err != nil {
		how += fmt.Sprintf(" (%v)", p.err)
	}
	if p.last != "" {
		how += ": " + p.last
	}
	return errors.New(strings.TrimSpace(how))
}

// close ends the program and everything it has started. A well-behaved server exits when
// its input is closed. One that keeps running is asked to stop, then killed.
func (p *program) close(timeout time.Duration) {
	_ = p.stdin.Close()
	for _, end := range []func(){func() {}, p.group.End} {
		end()
		select {
		case <-p.exited:
		case <-time.After(timeout):
		}
	}
	p.group.Kill() // the program, or processes that it left behind
	<-p.exited
	_ = p.stdout.Close()
	// Read the rest of the output, unless a process that escaped from the group holds the
	// pipe open.
	if p.stderr.SetReadDeadline(time.Now().Add(time.Second)) != nil {
		_ = p.stderr.Close() // Windows: its pipes have no deadlines
	}
	p.work.Wait()
	_ = p.stderr.Close()
}
