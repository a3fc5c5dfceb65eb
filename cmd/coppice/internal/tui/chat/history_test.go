package chat_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/chat"
	"github.com/coppice-dev/coppice/home"
)

const (
	ctrlG = "\x07"
	ctrlR = "\x12"
)

// What was said in other conversations comes after what was said in this one.
func TestTheHistoryGoesOnInOtherConversations(t *testing.T) {
	t.Parallel()
	opened := openHome(t)
	p := sit(t, opened, nil)
	p.says("say one about Beans")
	p.says("say two about peas")
	p.leaves(ctrlD)
	p = sit(t, opened, nil)
	p.says("say three")
	p.types(up)
	p.sees("\n› say three")
	p.types(up)
	p.sees("\n› say two about peas")
	p.types(up)
	p.sees("\n› say one about Beans")
	p.types("\x1b[B\x1b[B\x1b[B", "draft", ctrlR, "ABOUT")
	p.sees("  search ABOUT › say two about peas")
	p.types(ctrlR)
	p.sees("  search ABOUT › say one about Beans")
	p.types(ctrlR, "x")
	p.sees("  search ABOUTx ›")
	p.types("\x1b[D") // any other key ends the search; nothing was found
	p.sees("› draft")
	p.types(ctrlR, "bea", enter)
	p.sees("› say one about Beans")
	p.says(" and more")
	p.sees("one about Beans and more")
	p.types("kept", ctrlR, "three", ctrlC)
	p.sees("› kept")
	p.leaves(ctrlC, ctrlD)
}

// Ctrl-C throws nothing away, and the history begins with what is newest again.
func TestWhatCtrlCTookComesBack(t *testing.T) {
	t.Parallel()
	p := sit(t, openHome(t), nil)
	p.says("say one")
	p.says("say two")
	p.types(up, up)
	p.sees("\n› say one\n\n  one", "%)\n› say one")
	p.types(ctrlC, up)
	p.sees("%)\n› say two")
	p.types(" and more", ctrlC, "\x19") // Ctrl-Y
	p.sees("› say two and more")
	p.leaves(ctrlC, ctrlD)
}

func TestAMessageIsWrittenInAnEditor(t *testing.T) {
	t.Parallel()
	var given []string
	answers := []any{"say edited\nsay twice\n", errors.New("the editor broke"), "say third"}
	p := sit(t, openHome(t), func(o *chat.Options) {
		o.Edit = func(text string) (string, error) {
			given = append(given, text)
			next := answers[0]
			answers = answers[1:]
			if err, ok := next.(error); ok {
				return "", err
			}
			return next.(string), nil
		}
	})
	p.types("say dr", ctrlG)
	p.sees("› say edited\n  say twice")
	p.says("")
	p.sees("  edited\n  twice")
	p.types("stays", ctrlG)
	p.sees("✗ the editor broke", "› stays")
	p.types(ctrlC)
	p.runs("/edit begin", "› say third")
	p.leaves(ctrlC, ctrlD)
	if got := strings.Join(given, "|"); got != "say dr|stays|begin" {
		t.Errorf("the editor was given %q", got)
	}
}

func TestABellRingsForAQuestion(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{"on": 1, "off": 0} {
		p := sit(t, openHome(t, home.Setting{Key: home.SettingBell, Value: value}), func(o *chat.Options) {
			o.Request.Tools = []string{home.AllTools}
		})
		p.types(`call bash {"command":"echo one"}`, enter)
		p.sees("y yes")
		p.types("n", enter)
		p.sees("bash failed")
		p.leaves(ctrlD)
		if n := p.term.Bells(); n != want {
			t.Errorf("%s: the bell rang %d times", value, n)
		}
	}
}
