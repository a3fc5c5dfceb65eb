package chat_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/chat"
	"github.com/coppice-dev/coppice/home"
)

// pasted types text of several lines.
func pasted(lines ...string) string { return "\x1b[200~" + strings.Join(lines, "\n") + "\x1b[201~" }

// logged waits until the log has so many messages.
func (p *person) logged(want int) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); p.sessions()[0].Messages < want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("there are not %d messages:\n%s", want, p.term)
		}
	}
}

// What other calls print waits while a question is open: right above the answer is what it
// is about.
func TestNothingComesBetweenACallAndItsQuestion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := sit(t, openHome(t), func(o *chat.Options) { o.Request.CWD, o.Request.Tools = dir, []string{home.AllTools} })
	p.types(pasted(
		`call bash {"command":"until [ -e go ]; do sleep 0.01; done; echo gr''own"}`,
		`call bash {"command":"touch precious"}`,
	), enter)
	p.sees("  run bash until [ -e go ]; do sleep 0.01; done; echo gr''own")
	p.types("y", enter)
	p.sees("  run bash touch precious?\n  y yes · n WHY no · a always · later ›")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.logged(3)
	p.types("maybe") // is drawn after what arrived before
	p.sees("later › maybe")
	p.doesNotSee("│ grown")
	p.types(strings.Repeat("\x7f", 5), "n", enter)
	p.sees("→ bash touch precious\n    in "+dir, "  ← bash until [ -e go ]", "│ grown\n")
	p.leaves(ctrlD)
	if all := p.term.String(); strings.Index(all, "│ grown") < strings.Index(all, "    refused\n") {
		t.Errorf("another result comes before the answer:\n%s", all)
	}
}

// A question goes away when somebody else has answered it.
func TestAQuestionThatWasAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	opened := openHome(t)
	p := sit(t, opened, func(o *chat.Options) { o.Request.Tools = []string{home.AllTools} })
	p.types(pasted(`call bash {"command":"touch one"}`, `call bash {"command":"touch two"}`), enter)
	p.sees("  run bash touch one?")
	list, err := opened.Turns.Running(t.Context())
	if err != nil || len(list.Turns) != 1 || list.Turns[0].Asked == nil {
		t.Fatalf("the turns are %+v, %v", list, err)
	}
	deny := home.ApproveRequest{Session: list.Turns[0].Session, Call: list.Turns[0].Asked.ID, Decision: agent.Deny}
	if _, err := opened.Turns.Approve(t.Context(), deny); err != nil {
		t.Fatal(err)
	}
	p.sees("no answer is needed any more", "  run bash touch two?")
	p.types("n not now", enter)
	p.sees("refused: not now", "denied")
	p.leaves(ctrlD)
}

// However long a call is, the row above the answer names it.
func TestAQuestionNamesItsCallLast(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), func(o *chat.Options) { o.Request.Tools = []string{home.AllTools} })
	p.types(`call write {"path":"long.txt","content":"`+strings.Repeat(`row\n`, 120)+`"}`, enter)
	p.sees("  run write long.txt +120?\n  y yes · n WHY no · a always · later ›")
	p.types("n", enter)
	p.sees("write failed")
	p.leaves(ctrlD)
}

// A result that is not right below its call says whose it is.
func TestEachOfSeveralResultsNamesItsCall(t *testing.T) {
	t.Parallel()
	dir := garden(t)
	p := sit(t, openHome(t), func(o *chat.Options) { o.Request.CWD, o.Request.Tools = dir, []string{"read"} })
	p.says(pasted(`call read {"path":"beds/peas.md"}`, `call read {"path":"beds/pears.md"}`, `call read {"path":"one bed.txt"}`))
	for _, name := range []string{"beds/peas.md", "beds/pears.md", "one bed.txt"} {
		p.sees("  ← read " + name + "\n  │ ")
	}
	p.leaves(ctrlD)
}

// A change that a rule allows is shown as well, and a long one is shortened. All of a result
// can be had.
func TestAChangeThatARuleAllowsIsShown(t *testing.T) {
	t.Parallel()
	dir := garden(t)
	p := sit(t, openHome(t), func(o *chat.Options) {
		o.Request.CWD, o.Request.Tools, o.Request.Allow = dir, []string{home.AllTools}, []string{"edit", "write", "bash"}
	})
	p.runs("/output", "no call has ended yet")
	p.says(`call read {"path":"beds/peas.md"}`)
	p.says(`call edit {"path":"beds/peas.md","old_string":"green","new_string":"sweet"}`)
	p.sees("→ edit beds/peas.md +1 −1\n  │ -green\n  │ +sweet\n")
	p.says(`call write {"path":"new.txt","content":"` + strings.Repeat(`row\n`, 30) + `"}`)
	p.sees("│ +row\n  │ … 18 more lines\n")
	p.says(`call bash {"command":"seq 40; exit 3"}`)
	p.sees("│ 1\n  │ … 36 more lines\n  │ 38\n  │ 39\n  │ 40\n  │ [exit code 3]\n")
	p.runs("/output", "  │ 1\n  │ 2\n  │ 3\n", "  │ 20\n  │ 21\n")
	p.leaves(ctrlD)
}
