package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// visitRelay lets the program hold a conversation that the others continue, one after the
// other, until it is back where it began. Each must send all that was said before.
func visitRelay(others ...string) func(*guest) {
	return func(g *guest) {
		r := &relay{guest: g}
		if !g.ask("begins a relay", r.begin) {
			return
		}
		for i, next := range append(others, g.program.name) {
			what := fmt.Sprintf("relay: %s goes on", next)
			if !g.ask(what, func() error { return r.leg(next, fmt.Sprintf("This is leg %d of the relay.", i+2)) }) {
				return
			}
		}
	}
}

// relay is a conversation on its way from program to program.
type relay struct {
	*guest
	id string // the session
}

func (r *relay) begin() (err error) {
	if err := r.setUp(); err != nil {
		return err
	}
	r.id, err = r.makesOne()
	return err
}

// leg hands the conversation to a program, lets it go on there, and takes it back.
func (r *relay) leg(name, prompt string) error {
	runner := &guest{machine: r.machine, program: programNamed(name)}
	if err := runner.setUp(); err != nil {
		return err
	}
	want, err := r.facts(r.id)
	if err != nil {
		return err
	}
	want = slices.DeleteFunc(want, isSurroundings)
	how := agents[name]
	to, err := r.home.Transfer.Resume(r.ctx, home.ResumeRequest{Session: r.id, In: how.makes.format})
	if err != nil {
		return err
	}
	native, file := to.Command[len(to.Command)-1], ""
	if len(to.Written) > 0 {
		file = to.Written[0]
	}
	r.model.requests()
	if _, err := runner.run(how.resume(native, file, prompt)...); err != nil {
		return err
	}
	sent, err := runner.main(prompt)
	if err != nil {
		return err
	}
	want = append(want, fact{Kind: factText, Role: session.RoleUser, Text: prompt})
	if err := wrong(slices.Concat(compare(want, sent.Facts), unpaired(sent.Facts))); err != nil {
		return err
	}
	return r.takeBack(append(want, fact{Kind: factText, Role: session.RoleAssistant, Text: sent.Reply}))
}

// isSurroundings reports whether a text is what programs tell the model about where they
// are. They put it between tags, and each says it for itself.
func isSurroundings(f fact) bool { return f.Kind == factText && strings.HasPrefix(f.Text, "<") }

// takeBack imports what all programs have: there must be one conversation, and it must
// say what is wanted.
func (r *relay) takeBack(want []fact) error {
	if err := r.importAll(); err != nil {
		return err
	}
	got, err := r.facts(r.id)
	if err != nil {
		return err
	}
	if err := wrong(compare(want, got)); err != nil {
		return err
	}
	list, err := r.sessions()
	if err != nil {
		return err
	}
	if len(list) == 1 {
		return nil
	}
	var names []string
	for _, s := range list {
		names = append(names, s.ID+" "+filepath.Base(s.Title))
	}
	return errors.New("it is now more than one session: " + strings.Join(names, ", "))
}
