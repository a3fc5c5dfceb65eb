package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/render/terminal"
)

// How the program talks, in one place:
//
//   - Standard output is data: what was asked for, and nothing else.
//   - Standard error is talk: errors, hints, receipts, progress.
//   - An error is one plain line that says what, where and why; a hint may
//     follow on a line of its own.
//   - On a terminal there are colours (few), widths are respected, and times
//     read as a person would say them. Elsewhere there is none of that, and
//     times are RFC 3339. NO_COLOR and --color never win over everything.
//   - With --json, one object a line, times in RFC 3339, nothing shortened.
//   - What was said in a session never acts on the terminal. All words go through
//     out and err, which replace control characters however they got there, and
//     let only our own colours pass. JSON and documents keep their bytes in a pipe
//     and are made harmless on a terminal: see printJSON and printDocument.
//   - A command to copy is made by command, which quotes every word of it and
//     names the home, if flags did.
type talk struct {
	out, err *plain.Writer
	data     io.Writer // where out goes; only for printJSON and printDocument
	words    io.Writer // where err goes; only for paged
	getenv   func(string) string
	color    bool
	call     func(field string) string // what the command calls a field of a request: see fields.go
	where    []string                  // --dir or --server, as it was typed
	commands *madeCommands             // that were made, and are not broken
	short    render.Names              // of the session that an error names

	screen, talkScreen *os.File // the terminals that out and err are, or nil
	page               int      // columns of a page on which a person reads what is printed, if that is not a terminal
}

// newTalk returns a talk that writes to out and err.
func newTalk(out, err io.Writer, getenv func(string) string) talk {
	return talk{
		out: plain.NewWriter(out), err: plain.NewWriter(err), data: out, words: err, getenv: getenv,
		screen: terminalOf(out), talkScreen: terminalOf(err), commands: new(madeCommands),
	}
}

// terminalOf returns the terminal that a reader or writer is, or nil.
func terminalOf(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// say writes a line of talk, on a terminal in several if it is long.
func (t *talk) say(format string, args ...any) {
	for line := range strings.SplitSeq(t.hanging(fmt.Sprintf(format, flat(args)...), t.columnsOf(t.talkScreen)), "\n") {
		t.sayAsIs(line)
	}
}

// sayAsIs writes a line of talk whose spaces matter.
func (t *talk) sayAsIs(line string) { fmt.Fprintln(t.err, plain.Flat(line)) }

// print writes a line of data, or as many as the format has: what the arguments
// say cannot begin another one.
func (t *talk) print(format string, args ...any) error {
	_, err := fmt.Fprintf(t.out, format+"\n", flat(args)...)
	return err
}

// printText writes text of several lines.
func (t *talk) printText(text string) error {
	_, err := io.WriteString(t.out, text+"\n")
	return err
}

// flat puts every argument that is text onto one line.
func flat(args []any) []any {
	lines := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case error:
			lines[i] = plain.Flat(v.Error())
		case fmt.Stringer:
			lines[i] = plain.Flat(v.String())
		default:
			lines[i] = arg
			if text := reflect.ValueOf(arg); text.Kind() == reflect.String {
				lines[i] = plain.Flat(text.String())
			}
		}
	}
	return lines
}

// printJSON writes a value as one line of data. On a terminal it is the same
// value with more escapes.
func (t *talk) printJSON(v any) error {
	return t.printDocument(true, func(w io.Writer) error {
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return err
		}
		text := line.Bytes()
		if !utf8.Valid(text) { // what an entry keeps as it was written
			text = []byte(string([]rune(string(text)))) // U+FFFD for each byte, as readers take it
		}
		_, err := w.Write(text)
		return err
	})
}

// printDocument writes what is meant for programs: all of its bytes, unless they
// go to a terminal.
func (t *talk) printDocument(isJSON bool, write func(w io.Writer) error) error {
	if t.screen == nil {
		return write(t.data)
	}
	w := plain.NewWriter(t.data)
	if isJSON {
		w = plain.NewJSONWriter(t.data)
	}
	err := write(w)
	if flushed := w.Flush(); err == nil {
		err = flushed // which otherwise says the same again
	}
	return err
}

// printBytes writes a document of either kind.
func (t *talk) printBytes(document []byte) error {
	return t.printDocument(isJSON(document), func(w io.Writer) error {
		_, err := w.Write(document)
		return err
	})
}

// isJSON reports whether data is JSON, or at least begins like it.
func isJSON(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && (data[0] == '{' || data[0] == '[')
}

// command is a command line for the reader to copy. Nothing in it is understood
// by the shell, or as a flag, that is not written in the call. It works on the same
// home as the command that was typed.
func (t *talk) command(verb string, args []string, flags ...string) string {
	if !slices.ContainsFunc(flags, func(flag string) bool { return flag == "--dir" || flag == "--server" }) {
		flags = append(slices.Clone(flags), t.where...)
	}
	words := append([]string{"coppice"}, strings.Fields(verb)...)
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") }) {
		words = slices.Concat(words, flags, []string{"--"}, args)
	} else {
		words = slices.Concat(words, args, flags)
	}
	made := plain.Command(words...)
	t.commands.add(made)
	return made
}

// elsewhere is for commands on another home than that of the command that was typed.
func (t *talk) elsewhere() *talk {
	other := *t
	other.where = nil
	return &other
}

// madeCommands are the command lines for the reader to copy.
type madeCommands struct {
	sync.Mutex
	made []string // longer ones first
}

// add keeps the longer commands first: a short one may be the beginning of another, which would
// otherwise be broken after it.
func (c *madeCommands) add(made string) {
	c.Lock()
	defer c.Unlock()
	if !slices.Contains(c.made, made) {
		c.made = append(c.made, made)
		slices.SortStableFunc(c.made, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	}
}

// glued replaces the spaces in commands.
func (c *madeCommands) glued(text string) string {
	c.Lock()
	defer c.Unlock()
	for _, made := range c.made {
		text = strings.ReplaceAll(text, made, strings.ReplaceAll(made, " ", glue))
	}
	return text
}

// glue stands for a space at which no line is broken. No text has it.
const glue = "\ufdd0"

// sayError reports an error.
func (t *talk) sayError(err error) {
	if errors.Is(err, errPartial) || errors.Is(err, context.Canceled) {
		return // each fault was reported when it was found, and an interrupt needs no report
	}
	text, hint := t.explain(err)
	if several, ok := errors.AsType[*home.AmbiguousError](err); ok && text == several.Error() && t.talkScreen != nil {
		t.sayAmbiguous(several)
	} else {
		t.say("%s %s", t.paint(red, "coppice:"), text)
	}
	if hint != "" {
		t.say("%s %s", t.paint(dim, "hint:"), hint)
	}
}

// sayAmbiguous reports that a name may mean several things, each on a line of its own.
func (t *talk) sayAmbiguous(err *home.AmbiguousError) {
	t.say("%s %s %q is ambiguous; type one of these, or more of the id:", t.paint(red, "coppice:"), err.What, err.Given)
	for _, one := range err.Found {
		t.say("  %s", one)
	}
	if err.More > 0 {
		t.say("  and %d more", err.More)
	}
}

// style is how conversations are drawn on standard output.
func (t *talk) style() terminal.Style {
	s := terminal.Style{Color: t.color, Width: t.width()}
	if t.isTerminal() {
		s.Now = time.Now()
	}
	return s
}

// paint colours text, if colours are wanted.
func (t *talk) paint(c colour, text string) string {
	return terminal.Style{Color: t.color}.Paint(c, text)
}

type colour = terminal.Colour

const (
	red    = terminal.Red
	green  = terminal.Green
	yellow = terminal.Yellow
	blue   = terminal.Blue
	cyan   = terminal.Cyan
	bold   = terminal.Bold
	dim    = terminal.Dim
)

// isTerminal reports whether data goes to a person.
func (t *talk) isTerminal() bool { return t.screen != nil || t.page > 0 }

// width is how many columns there are, or 0 for as many as one likes. That is so
// wherever data does not go to a terminal: a shell that exports COLUMNS must not
// change what a program reads.
func (t *talk) width() int {
	if t.page > 0 {
		return t.page
	}
	return t.columnsOf(t.screen)
}

// columnsOf is how many columns a terminal has, or 0 if there is none.
func (t *talk) columnsOf(screen *os.File) int {
	if screen == nil {
		return 0
	}
	if n, err := strconv.Atoi(t.getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	n, _, err := term.GetSize(int(screen.Fd()))
	if err != nil {
		return 0
	}
	return n
}

// when tells a time: as a person would on a terminal, exactly elsewhere.
func (t *talk) when(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	if !t.isTerminal() {
		return at.UTC().Format(time.RFC3339)
	}
	return render.Ago(at, now)
}

// wrap breaks text between words so that it fits the terminal, with something
// before each line. Elsewhere lines stay whole.
func (t *talk) wrap(text, before string) string {
	if width := t.width(); width > 0 {
		text = ansi.Wrap(text, max(width-ansi.StringWidth(before), 20), "")
	}
	return before + strings.ReplaceAll(text, "\n", "\n"+before)
}

// hanging breaks a line between words so that it fits a terminal. What does not fit the first line
// is indented more. With no width the text stays on one line. It does not break a long path, nor
// a command, which is there to be copied.
func (t *talk) hanging(line string, width int) string {
	if width == 0 || ansi.StringWidth(line) <= width {
		return line
	}
	before := line[:len(line)-len(strings.TrimLeft(line, " "))]
	broken := betweenWords(t.commands.glued(line), max(width-len(before)-2, 20))
	return before + strings.ReplaceAll(strings.ReplaceAll(broken, "\n", "\n  "+before), glue, " ")
}

// printHanging writes a line of data, on a terminal in several if it is long.
func (t *talk) printHanging(line string) error {
	return t.printText(t.hanging(plain.Flat(line), t.width()))
}

// rfc3339 writes a time for programs; "" for none.
func rfc3339(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}
