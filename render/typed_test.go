package render_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/render/typed"
)

func TestTypedRead(t *testing.T) {
	prose := func(text string) typed.Part { return typed.Part{Kind: typed.Prose, Text: text} }
	command := func(text string) typed.Part { return typed.Part{Kind: typed.Command, Text: text} }
	output := func(text string) typed.Part { return typed.Part{Kind: typed.Output, Text: text} }
	for name, test := range map[string]struct {
		text string
		want []typed.Part
	}{
		"prose":                    {" Why <b>red</b>?\n", []typed.Part{prose(" Why <b>red</b>?\n")}},
		"a command":                {"<command-name>/clear</command-name>\n  <command-message>clear</command-message>\n  <command-args></command-args>", []typed.Part{command("/clear")}},
		"a command with arguments": {"<command-message>fix is running…</command-message>\n<command-name>fix</command-name>\n<command-args>the login\nnow</command-args>", []typed.Part{command("/fix the login\nnow")}},
		"what follows a command":   {"<command-name>/init</command-name>\nplease", []typed.Part{command("/init"), prose("please")}},
		"two commands":             {"<command-name>/a</command-name><command-name>/b</command-name>", []typed.Part{command("/a"), command("/b")}},
		"output":                   {"<local-command-stdout>Set model\n</local-command-stdout>", []typed.Part{output("Set model\n")}},
		"no output":                {"<local-command-stdout></local-command-stdout>", nil},
		"a shell":                  {"<bash-input>git status</bash-input>\n<bash-stdout>clean</bash-stdout><bash-stderr></bash-stderr>", []typed.Part{command("! git status"), output("clean")}},
		"an empty shell command":   {"<bash-input> </bash-input>", nil},
		"a caveat":                 {"<local-command-caveat>Caveat: do not answer</local-command-caveat>", []typed.Part{prose("Caveat: do not answer")}},
		"no end":                   {"<bash-stdout>clean", []typed.Part{prose("<bash-stdout>clean")}},
		"another element":          {"<command-line>x</command-line>", []typed.Part{prose("<command-line>x</command-line>")}},
		"only a message":           {"<command-message>x</command-message>", []typed.Part{prose("<command-message>x</command-message>")}},
	} {
		if got := typed.Read(test.text); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// All of a text is looked at a bounded number of times: every message that is shown
// passes here.
func TestTypedReadManyElements(t *testing.T) {
	for _, element := range []string{"<command-name>/a</command-name>", "<command-args>x</command-args>", "<bash-stdout>x</bash-stdout>", "<bash-input></bash-input>", "<command-name>"} {
		text := strings.Repeat(element, 200_000)
		if parts := typed.Read(text); len(parts) == 0 && !strings.Contains(element, "input") {
			t.Errorf("%s: nothing", element)
		}
	}
}
