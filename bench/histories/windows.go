//go:build unix

package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// model says what a thing does if one operation is done after the other. A step gets its state,
// an operation and its result, and returns whether that can be, and the state after it. The
// result unknown can always be: such an operation goes on for ever, and so may come last, when
// nobody notices it.
type model struct {
	name  string
	kinds []string
	none  any
	step  func(state any, o *op) (bool, any)
}

var models = []model{
	{"log", []string{kindCreate, kindLook, kindAgain, kindAppend, kindRedact, kindFork, kindLookFork}, logState{}, stepLog},
	{"lease", []string{kindTake, kindHeld, kindRelease, kindDied}, leaseState{}, stepLease},
	{"note", []string{kindChange, kindNote}, int64(0), stepNote},
}

// logState is a log and its forks.
type logState struct {
	life  int    // 0: there is none
	lines string // see text
	n     int    // how many lines
	forks string
}

func text(ids []int64) string { return strings.Trim(fmt.Sprint(ids), "[]") }

func forkText(id int64, ids []int64) string { return fmt.Sprintf("(%d: %s)", id, text(ids)) }

func (s logState) with(id int64) logState {
	s.lines = strings.TrimSpace(fmt.Sprint(s.lines, " ", id))
	s.n++
	return s
}

func (s logState) without(id int64) logState {
	words := strings.Fields(s.lines)
	for i, word := range words {
		if word == fmt.Sprint(id) {
			words[i] = fmt.Sprint(redacted)
		}
	}
	s.lines = strings.Join(words, " ")
	s.life++
	return s
}

func stepLog(state any, o *op) (bool, any) {
	s, _ := state.(logState)
	same := s.life == o.Life && s.life != 0
	switch o.Kind {
	case kindCreate:
		if o.Result == exist {
			return s.life != 0, s
		}
		if s.life == 0 {
			return true, logState{life: 1}
		}
		return o.Result == unknown, s
	case kindLook:
		return o.Result == notExist && s.life == 0 || o.Result == ok && same && s.lines == text(o.IDs), s
	case kindAgain:
		return o.Result == replaced && !same || o.Result == ok && same && s.lines == text(o.IDs), s
	case kindAppend:
		fits := same && int64(s.n) == o.At
		switch o.Result {
		case ok, unknown:
			if fits {
				return true, s.with(o.ID)
			}
			return o.Result == unknown, s
		case conflict:
			return same && !fits, s
		}
		return o.Result == replaced && !same, s
	case kindRedact:
		if same || o.Result == unknown && s.life != 0 {
			return true, s.without(o.ID)
		}
		return o.Result == unknown, s
	case kindFork:
		if o.Result == replaced {
			return !same, s
		}
		if same {
			s.forks += forkText(o.ID, o.IDs)
		}
		return same || o.Result == unknown, s
	}
	// A look at a fork, which only who made it looks for.
	return o.Result == ok && strings.Contains(s.forks, forkText(o.ID, o.IDs)), s
}

// leaseState is who has a lease. A process that was killed has it no longer.
type leaseState struct {
	holder int64
	dead   string
}

func (s leaseState) isFree() bool {
	return s.holder == 0 || strings.Contains(s.dead, fmt.Sprintf("(%d)", processOf(s.holder)))
}

func stepLease(state any, o *op) (bool, any) {
	s, _ := state.(leaseState)
	switch o.Kind {
	case kindDied:
		s.dead += fmt.Sprintf("(%d)", o.ID)
		return true, s
	case kindTake:
		if o.Result == locked {
			return s.holder != 0, s
		}
		if !s.isFree() {
			return o.Result == unknown, s
		}
		s.holder = o.ID
		return true, s
	case kindHeld:
		return (o.Result == ok) == (s.holder == o.ID), s
	}
	if s.holder == o.ID { // a release
		s.holder = 0
	}
	return true, s
}

func stepNote(state any, o *op) (bool, any) {
	if o.Kind == kindNote {
		return state == any(o.At), state
	}
	return o.Result == unknown || state == any(o.At), o.ID
}

// isSilent reports whether an operation says nothing about the state and leaves it as it is.
func isSilent(o *op) bool {
	switch o.Kind {
	case kindLook, kindAgain, kindNote, kindLookFork, kindHeld:
		return o.refused() || o.Result == unknown || o.Kind == kindLook && o.Result == replaced
	case kindRedact:
		return o.refused() || o.Result == conflict || o.Result == notExist
	}
	return o.refused()
}

// patience is how long one window may take to check.
const patience = 20 * time.Second

// checkWindows looks for an order of the operations of each window. It returns how many there
// were, and how many of them were too hard.
func checkWindows(ops []op) (n, undecided int, err error) {
	var died []op
	windows := make(map[string][]op)
	for _, o := range ops {
		if o.Kind == kindDied {
			died = append(died, o)
		} else if !isSilent(&o) {
			windows[o.Object] = append(windows[o.Object], o)
		}
	}
	var all []error
	for name, ops := range windows {
		for _, m := range models {
			some := slices.DeleteFunc(slices.Clone(ops), func(o op) bool { return !slices.Contains(m.kinds, o.Kind) })
			if len(some) == 0 {
				continue
			}
			if m.name == "lease" {
				some = append(some, involved(some, died)...)
			}
			n++
			switch porcupine.CheckOperationsTimeout(m.check(), operations(some), patience) {
			case porcupine.Unknown:
				undecided++
			case porcupine.Illegal:
				all = append(all, fmt.Errorf("%s: no order explains what became of the %s:\n%s", name, m.name, describe(some)))
			}
		}
	}
	return n, undecided, errors.Join(all...)
}

// involved returns the deaths of processes that took part.
func involved(ops, died []op) (some []op) {
	for _, d := range died {
		if slices.ContainsFunc(ops, func(o op) bool { return int64(processOf(o.ID)) == d.ID }) {
			some = append(some, d)
		}
	}
	return some
}

func (m model) check() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return m.none },
		Step: func(state, input, _ any) (bool, any) {
			o, _ := input.(*op)
			return m.step(state, o)
		},
	}
}

func operations(ops []op) (all []porcupine.Operation) {
	for i := range ops {
		o := &ops[i]
		end := o.Return
		if o.Result == unknown {
			end = math.MaxInt64
		}
		all = append(all, porcupine.Operation{ClientId: o.Worker, Input: o, Call: o.Call, Return: end})
	}
	return all
}

func describe(ops []op) string {
	slices.SortFunc(ops, func(a, b op) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for i := range ops {
		fmt.Fprintln(&b, " ", &ops[i])
	}
	return b.String()
}
