package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// guest is a program on a machine of its own, and what it answered.
type guest struct {
	*machine
	program *program
	env     []string // of the program, beside the machine's
	rows    []row
}

// row is one question and its outcome.
type row struct {
	Program, Version string
	Asked            string
	Outcome          outcome
	Why              string // unless it passed
	Seconds          float64
}

type outcome string

const (
	passed   outcome = "passed"
	failed   outcome = "FAILED"
	notAsked outcome = "not asked"
)

// ask asks one question. It reports whether the answer was right.
func (g *guest) ask(what string, question func() error) bool {
	began := time.Now()
	err := question()
	r := row{Program: g.program.name, Version: g.program.version, Asked: what, Outcome: passed, Seconds: time.Since(began).Seconds()}
	if err != nil {
		r.Outcome, r.Why = failed, err.Error()
	}
	g.rows = append(g.rows, r)
	return err == nil
}

// run runs the program.
func (g *guest) run(args ...string) (string, error) { return g.runs(g.program.name, g.env, args...) }

// wrong makes an error of complaints.
func wrong(complaints []string) error {
	if len(complaints) == 0 {
		return nil
	}
	return errors.New(strings.Join(complaints, "\n"))
}

// exported is the fixture in a program's own files.
type exported struct {
	*fixture
	g      *guest
	format string
	native string // the program's id of it
	path   string
	want   []fact // what its context says
	losses []string
}

// export writes the fixture and hands it to the program in the way that a user does.
func (g *guest) export(format string) (*exported, error) {
	f, err := writeFixture(g.ctx, g.home.Store(), g.project())
	if err != nil {
		return nil, err
	}
	r, err := g.home.Transfer.Resume(g.ctx, home.ResumeRequest{Session: f.id, In: format})
	if err != nil {
		return nil, err
	}
	if len(r.Written) == 0 {
		return nil, errors.New("nothing was written")
	}
	if len(r.Load) > 0 { // the program has to be given the file
		if _, err := g.run(r.Load[1:]...); err != nil {
			return nil, err
		}
	}
	x := &exported{fixture: f, g: g, format: format, native: r.Command[len(r.Command)-1], path: r.Written[0]}
	for _, l := range r.Losses {
		x.losses = append(x.losses, l.What)
	}
	x.want, err = g.facts(f.id)
	return x, err
}

// visit hands the program the fixture, lets it read that in its own way, and resumes it.
func (g *guest) visit(read func(*exported)) {
	how := agents[g.program.name]
	var x *exported
	if !g.ask("gets an export", func() (err error) {
		if err = g.setUp(); err == nil {
			x, err = g.export(how.makes.format)
		}
		return err
	}) {
		return
	}
	read(x)
	answered := ""
	g.ask("resumes the export and sends the context", func() (err error) {
		answered, err = x.resume(how.resume(x.native, x.path, goOn)...)
		return err
	})
	if answered != "" {
		g.ask("what it added comes back", func() error { return x.comesBack(answered) })
	}
}

// facts are those of a session's context.
func (g *guest) facts(id string) ([]fact, error) {
	c, err := g.home.Entries.Context(g.ctx, home.ContextRequest{Session: id})
	if err != nil {
		return nil, err
	}
	return factsOf(c.Entries), nil
}

// goOn is what the user says when the conversation is resumed.
const goOn = "It is dry again. What was left to do?"

// resume resumes the conversation with a prompt, and compares what the program sent with
// the context. It returns what the model answered.
func (x *exported) resume(args ...string) (answered string, err error) {
	x.g.model.requests()
	if _, err := x.g.run(args...); err != nil {
		return "", err
	}
	r, err := x.g.main(goOn)
	if err != nil {
		return "", err
	}
	return r.Reply, wrong(slices.Concat(compare(x.wanted(), r.Facts), unpaired(r.Facts), x.unwanted(r.Body)))
}

// shows compares what the program reads with the context. The results that a context makes
// up for interrupted calls need not be in a file.
func (x *exported) shows(got []fact) []string {
	return compare(slices.DeleteFunc(slices.Clone(x.want), func(f fact) bool { return f.any }), got)
}

// wanted is the context and the prompt after it.
func (x *exported) wanted(more ...fact) []fact {
	want := append(slices.Clone(x.want), fact{Kind: factText, Role: session.RoleUser, Text: goOn})
	return append(want, more...)
}

func (x *exported) unwanted(body []byte) (complaints []string) {
	for _, gone := range x.gone {
		if strings.Contains(string(body), gone) {
			complaints = append(complaints, fmt.Sprintf("%q was sent, which is not in the context", gone))
		}
	}
	return complaints
}

// main returns the request of the conversation: the longest with the prompt. Programs ask
// the model for titles, too.
func (g *guest) main(prompt string) (*request, error) {
	var main *request
	for i, r := range g.model.requests() {
		g.save(fmt.Sprintf("request-%02d-%s.json", i, r.Dialect), r.Body)
		if (main == nil || len(r.Body) >= len(main.Body)) && slices.ContainsFunc(r.Facts, fact{Kind: factText, Text: prompt}.isIn) {
			main = &r
		}
	}
	if main == nil {
		return nil, errNothingSent
	}
	return main, nil
}

func (f fact) isIn(g fact) bool { return g.holds(f) }

// save keeps bytes for whoever looks into what went wrong (see -keep).
func (g *guest) save(name string, data []byte) {
	_ = os.WriteFile(filepath.Join(g.dir, name), data, 0o600) // it is only a help
}

// comesBack imports what the program added: it must be on the session that was exported.
func (x *exported) comesBack(answered string) error {
	before, err := x.g.sessions()
	if err != nil {
		return err
	}
	if err := x.g.importAll(); err != nil {
		return err
	}
	after, err := x.g.sessions()
	if err != nil {
		return err
	}
	if len(after) != len(before) {
		return fmt.Errorf("there are %d sessions after the import, and were %d", len(after), len(before))
	}
	got, err := x.g.facts(x.id)
	if err != nil {
		return err
	}
	answer := fact{Kind: factText, Role: session.RoleAssistant, Text: answered}
	if err := wrong(compare(x.wanted(answer), got)); err != nil {
		return err
	}
	return x.g.addsNothing()
}

// importAll imports what the programs keep on the machine, and fails if anything was not
// understood.
func (g *guest) importAll() error {
	var complaints []string
	result, err := g.home.Transfer.Import(g.ctx, home.ImportRequest{All: true}, nil, func(e home.ImportEvent) error {
		f := e.File
		if f == nil {
			return nil
		}
		if e.Error != nil {
			complaints = append(complaints, fmt.Sprintf("%s: %v", filepath.Base(f.Path), e.Error))
		}
		for _, s := range f.Sessions {
			for _, p := range s.Problems {
				complaints = append(complaints, fmt.Sprintf("%s: %s", filepath.Base(f.Path), mustJSON(p)))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if result.Problems > 0 && len(complaints) == 0 {
		complaints = append(complaints, fmt.Sprintf("%d records were not understood", result.Problems))
	}
	return wrong(complaints)
}

// addsNothing imports everything once more, from the beginning.
func (g *guest) addsNothing() error {
	result, err := g.home.Transfer.Import(g.ctx, home.ImportRequest{All: true, Again: true}, nil, nil)
	if err == nil && result.Entries > 0 {
		err = fmt.Errorf("importing again added %d entries", result.Entries)
	}
	return err
}

// sessions are all on the machine, subagents included.
func (g *guest) sessions() ([]home.SessionInfo, error) {
	list, err := g.home.Sessions.List(g.ctx, home.ListRequest{All: true, Links: true, Limit: -1})
	if err != nil {
		return nil, err
	}
	return list.Sessions, nil
}

// made is a conversation that a program holds with the model, with one tool call in it.
type made struct {
	format string   // in which Coppice reads it
	tool   toolCall // prints or reads the note
	args   []string // of the program; PROMPT stands for what the user says
}

const (
	prompt = "Please tell me what the note in this directory says."
	note   = "the gate opens outwards"
)

// makesOne lets the program hold a conversation, imports it, and compares: what was said
// must be there. It returns the session.
func (g *guest) makesOne() (string, error) {
	c := agents[g.program.name].makes
	if err := os.WriteFile(filepath.Join(g.project(), "note.txt"), []byte(note+"\n"), 0o600); err != nil {
		return "", err
	}
	g.model.requests()
	g.model.willCall(&c.tool)
	defer g.model.willCall(nil)
	args := slices.Clone(c.args)
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, "PROMPT", prompt)
	}
	if _, err := g.run(args...); err != nil {
		return "", err
	}
	want, err := g.held(c)
	if err != nil {
		return "", err
	}
	if err := g.importAll(); err != nil {
		return "", err
	}
	id, err := g.newest(g.ctx, c.format)
	if err != nil {
		return "", err
	}
	got, err := g.facts(id)
	if err != nil {
		return id, err
	}
	if err := wrong(compare(want, got)); err != nil {
		return id, err
	}
	return id, g.addsNothing()
}

// held is the conversation as the model saw it: what the program sent last, and the answer.
func (g *guest) held(c made) ([]fact, error) {
	r, err := g.main(prompt)
	if err != nil {
		return nil, err
	}
	want := []fact{{Kind: factText, Role: session.RoleUser, Text: prompt}}
	began := false
	for _, f := range r.Facts {
		began = began || f.Kind == factText && strings.Contains(f.Text, prompt)
		switch {
		case !began:
		case f.Kind == factResult && strings.Contains(f.Text, note):
			f.Text = note // programs tell the model more: how long it took
			want = append(want, f)
		case f.Kind == factCall, f.Kind == factResult, f.Kind == factText && sameSide(f.Role, session.RoleAssistant):
			want = append(want, f)
		}
	}
	if !called(r.Facts, &c.tool) || !slices.ContainsFunc(want, func(f fact) bool { return f.Kind == factResult && strings.Contains(f.Text, note) }) {
		return nil, fmt.Errorf("the program did not run the tool %s, or not well", c.tool.Name)
	}
	return append(want, fact{Kind: factText, Role: session.RoleAssistant, Text: r.Reply}), nil
}

// newest returns the one session that came from a format and is not a subagent's.
func (g *guest) newest(ctx context.Context, format string) (string, error) {
	list, err := g.home.Sessions.List(ctx, home.ListRequest{Agent: format, Limit: -1})
	if err != nil {
		return "", err
	}
	if len(list.Sessions) != 1 {
		all, _ := g.sessions()
		var names []string
		for _, s := range all {
			names = append(names, fmt.Sprintf("%s %q", s.ID, s.Title))
		}
		return "", fmt.Errorf("%d sessions came from %s, instead of one; all: %s", len(list.Sessions), format, strings.Join(names, ", "))
	}
	return list.Sessions[0].ID, nil
}
