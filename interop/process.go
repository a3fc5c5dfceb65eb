package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// process is a program that runs beside others until it is stopped.
type process struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	in     io.WriteCloser
	out    *bufio.Reader
}

// start starts a program in the project.
func (m *machine) start(env, words []string) (*process, error) {
	ctx, cancel := context.WithTimeout(m.ctx, maxCall)
	p := &process{cmd: exec.CommandContext(ctx, words[0], words[1:]...), cancel: cancel}
	p.cmd.Dir, p.cmd.Env = m.project(), m.environ(env)
	killable(p.cmd)
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, nil
}

// until reads lines up to one with a text in it, and returns that.
func (p *process) until(text string) (string, error) {
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			return "", fmt.Errorf("%s ended without %q: %w", p.cmd.Path, text, err)
		}
		if strings.Contains(line, text) {
			return strings.TrimSpace(line), nil
		}
	}
}

func (p *process) stop() {
	p.in.Close()
	p.cancel()
	_ = p.cmd.Wait() // it was killed
	killRest(p.cmd)
}
