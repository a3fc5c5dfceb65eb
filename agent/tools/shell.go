package tools

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// word is a word of a simple command: what the shell passes on, or the pattern for it in a
// rule (see anything and anyOne).
type word struct {
	text string
	wild bool // the shell expands it, or the pattern is more than its text
}

// errNotSimple means that the words of a command do not show what it does.
var errNotSimple = errors.New("it is more than words: it has a substitution, a redirection or the like")

const (
	// plainBytes are the bytes without a special meaning to a shell, wherever they are in a
	// word.
	plainBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:@%+,"
	// maxParsed is the longest line that is read: the parser calls itself for every
	// parenthesis.
	maxParsed = 8 << 10
	// maxUnwrapped is how many lines within lines are read.
	maxUnwrapped = 4
)

func parseLine(line string) (*syntax.File, error) {
	if len(line) > maxParsed {
		return nil, errNotSimple
	}
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
}

// simpleCommands splits a command line into the commands that it runs, each of them words. It
// takes only what cannot be misunderstood: plain words, quoted text, and commands joined by
// && || ; | or a newline. Of redirections there is 2>&1 alone. Any unlisted character outside
// of quotes is an error, and the call asks.
func simpleCommands(line string, pattern bool) ([][]word, error) {
	file, err := parseLine(line)
	// The parser leaves out a NUL, a carriage return and a line that is continued.
	odd := strings.Contains(line, "\\\n") || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f })
	if err != nil || odd || len(file.Stmts) == 0 || pattern && len(file.Stmts) > 1 {
		return nil, errNotSimple
	}
	l := &reader{pattern: pattern}
	for _, s := range file.Stmts {
		if !l.statement(s) {
			return nil, errNotSimple
		}
	}
	return l.commands, nil
}

// reader collects simple commands.
type reader struct {
	pattern  bool
	commands [][]word
}

// statement adds the commands of a statement, and returns false if it is not simple.
func (l *reader) statement(s *syntax.Stmt) bool {
	if s.Negated || s.Background || s.Coprocess || s.Disown {
		return false
	}
	for _, r := range s.Redirs {
		if l.pattern || r.N == nil || r.N.Value != "2" || r.Op != syntax.DplOut || r.Word.Lit() != "1" {
			return false
		}
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		return !l.pattern && c.Op != syntax.PipeAll && l.statement(c.X) && l.statement(c.Y)
	case *syntax.CallExpr:
		command, plain := l.words(c)
		// An = in the first word sets a variable for the others.
		if !plain || len(c.Assigns) > 0 || len(command) == 0 || strings.Contains(command[0].text, "=") {
			return false
		}
		l.commands = append(l.commands, command)
		return true
	}
	return false
}

// words returns the words of a command, and whether it consists of nothing else.
func (l *reader) words(c *syntax.CallExpr) (command []word, plain bool) {
	plain = true
	for _, arg := range c.Args {
		one := wordOf{pattern: l.pattern, plain: true}
		for _, part := range arg.Parts {
			one.part(part)
		}
		command, plain = append(command, one.word), plain && one.plain
	}
	return command, plain
}

// wordOf is a word that is being read.
type wordOf struct {
	word
	pattern bool
	plain   bool // the shell does not change it
}

func (w *wordOf) part(part syntax.WordPart) {
	switch p := part.(type) {
	case *syntax.Lit:
		w.literal(p.Value)
	case *syntax.SglQuoted:
		w.text, w.plain = w.text+p.Value, w.plain && !p.Dollar
	case *syntax.DblQuoted:
		w.plain = w.plain && !p.Dollar
		for _, inner := range p.Parts {
			lit, ok := inner.(*syntax.Lit)
			if !ok {
				w.part(inner)
				continue
			}
			w.text, w.plain = w.text+lit.Value, w.plain && !strings.ContainsAny(lit.Value, "$`\\!")
		}
	default: // unknown until the shell runs it
		w.wild, w.plain = true, false
	}
}

// literal adds what is not in quotes.
func (w *wordOf) literal(value string) {
	for i := range len(value) {
		switch c := value[i]; {
		case c == '*' || c == '?':
			if w.pattern {
				c = map[byte]byte{'*': anything, '?': anyOne}[c]
			}
			w.text, w.wild = w.text+string([]byte{c}), true
		case c == '\\':
			w.plain = false
		default:
			w.text += string([]byte{c})
			w.plain = w.plain && strings.IndexByte(plainBytes, c) >= 0
			w.wild = w.wild || strings.IndexByte("[{~", c) >= 0
		}
	}
}

// allCommands returns every command anywhere in a line, including those that programs in it
// run, with folded words. It is for rules that deny, so it may return words that are not a
// command. ok is false if the line cannot be read.
func allCommands(line string, depth int) (commands [][]word, ok bool) {
	file, err := parseLine(line)
	if err != nil {
		return nil, false
	}
	ok = true
	syntax.Walk(file, func(node syntax.Node) bool {
		if call, is := node.(*syntax.CallExpr); is && len(call.Args) > 0 {
			command, _ := (&reader{}).words(call)
			command = foldedWords(command)
			commands = append(commands, command)
			if isRunner(command) {
				inner, understood := unwrapped(command, depth)
				commands, ok = append(commands, inner...), ok && understood
			}
		}
		return true
	})
	return commands, ok
}

// unwrapped returns what a program that runs other commands may run: each of its words may
// begin a command, or be a whole line.
func unwrapped(command []word, depth int) (commands [][]word, ok bool) {
	if depth == maxUnwrapped {
		return nil, false
	}
	for i, w := range command[1:] {
		commands = append(commands, command[i+1:])
		if strings.ContainsAny(w.text, " \t\n;&|(`$<>") {
			inner, _ := allCommands(w.text, depth+1)
			commands = append(commands, inner...)
		}
	}
	return commands, true
}

// matchCommand reports whether a command matches a pattern. A * by itself matches one word,
// or at the end any number of words. The shell changes words that it expands, so only a * at
// the end covers them.
func matchCommand(pattern, command []word, dots bool) bool {
	for i, p := range pattern {
		lone := p.wild && p.text == string(anything)
		switch {
		case lone && i == len(pattern)-1:
			return true
		case i >= len(command) || command[i].wild:
			return false
		case !lone && !matchPath(p.text, command[i].text, dots):
			return false
		}
	}
	return len(command) == len(pattern)
}

// program returns the name of the program that a command runs: rm of /bin/rm.
func program(command []word) string { return base(command[0].text) }

func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

var (
	// runners are programs and words of the shell that run the command in their arguments,
	// their input or a file.
	runners = slices.Concat(shells, []string{
		"busybox", "toybox", "env", "xargs", "parallel", "nohup", "sudo", "doas",
		"pkexec", "su", "runuser", "setpriv", "exec", "eval", "source", ".", "command", "builtin", "enable", "trap", "alias", "time", "timeout", "nice", "ionice",
		"chrt", "taskset", "setsid", "stdbuf", "watch", "chroot", "unshare", "nsenter", "script", "strace", "flock", "ssh", "at", "batch", "crontab", "run-parts",
	})
	shells = []string{"bash", "sh", "dash", "zsh", "ksh", "mksh", "csh", "tcsh", "rbash", "ash", "fish"}
	// interpreters run programs from their arguments, their input or a file.
	interpreters = []string{
		"python", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "tclsh", "rscript", "osascript", "pwsh", "powershell",
		"r", "irb", "ghci", "julia", "octave", "jshell", "scala", "groovy", "guile", "racket", "sbcl", "iex", "erl", "expect",
	}
	// feeders take the commands that they run, or the files that they change, from their input.
	feeders = []string{"xargs", "parallel", "at", "batch", "crontab", "ed", "ex", "vi", "vim", "lldb", "dc", "m4", "gnuplot", "ftp", "sftp", "telnet", "mail", "mailx", "patch"}
	// consoles do the same, unless their arguments have the commands.
	consoles = map[string][]string{
		"gdb": {"-batch", "--batch"}, "sqlite3": {}, "psql": {"-c", "-f"}, "mysql": {"-e"}, "mariadb": {"-e"}, "mongosh": {"--eval"}, "redis-cli": {},
	}
	// scripted run a file, which may be their input.
	scripted = []string{"awk", "gawk", "mawk", "nawk", "sed", "make", "gmake", "ninja", "just", "kubectl", "oc"}
	// containers run commands elsewhere, perhaps with a shell that reads its input.
	containers = []string{"docker", "podman", "nerdctl", "kubectl", "oc", "lxc", "incus", "machinectl"}
	// printers are programs that never run what is in their arguments.
	printers = []string{"echo", "printf", "grep", "cat", "ls", "cd", "test", "["}
)

// isRunner reports whether a command, with folded words, may run others.
func isRunner(command []word) bool {
	name := program(command)
	return slices.Contains(runners, name) || name == "find" && slices.ContainsFunc(command, func(w word) bool {
		return strings.HasPrefix(w.text, "-exec") || strings.HasPrefix(w.text, "-ok")
	})
}

// runsInside reports whether a command, with folded words, runs another one in a container.
func runsInside(command []word) bool {
	return slices.Contains(containers, program(command)) && slices.ContainsFunc(command, func(w word) bool { return w.text == "exec" || w.text == "run" })
}

// isInterpreter reports whether a command, with folded words, is one of interpreters:
// python3.12 is python.
func isInterpreter(command []word) bool {
	return slices.Contains(interpreters, strings.TrimRight(program(command), "0123456789."))
}

// runsInput reports whether a command, with folded words, may run commands from its
// input: a rule for it would allow everything.
func runsInput(command []word) bool {
	for i := range command {
		if readsInputAsCommands(command[i:]) {
			return true
		}
		if !isRunner(command) && !runsInside(command) {
			return false
		}
	}
	return false
}

// readsInputAsCommands is runsInput without a look at what the command runs.
func readsInputAsCommands(command []word) bool {
	name, given := program(command), command[1:]
	has := func(is func(text string) bool) bool {
		return slices.ContainsFunc(given, func(w word) bool { return is(w.text) })
	}
	plain := 0 // arguments that are no flags
	for _, w := range given {
		if !strings.HasPrefix(w.text, "-") {
			plain++
		}
	}
	flags, isConsole := consoles[name]
	switch {
	case slices.Contains(feeders, name):
		return true
	case isConsole:
		return plain < 2 && !has(func(text string) bool { return slices.Contains(flags, text) })
	case isInterpreter(command), slices.Contains(shells, name):
		return plain == 0 || has(isInput) || has(func(text string) bool { return text == "-s" })
	case slices.Contains(scripted, name) && has(isInput):
		return true
	case name == "git":
		return has(func(text string) bool { return text == "apply" || text == "am" }) && (plain == 1 || has(isInput))
	}
	return runsInside(command) && has(func(text string) bool { // with -i it reads its input
		return strings.HasPrefix(text, "--interactive") || text == "--stdin" || strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && strings.Contains(text, "i")
	})
}

// isInput reports whether an argument names the input, perhaps after the name of a flag.
func isInput(text string) bool {
	for _, name := range []string{"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"} {
		if strings.HasSuffix(text, name) {
			return true
		}
	}
	return text == "-" || text == "-f-" || strings.HasSuffix(text, "=-")
}

// mayRun reports whether a simple command may run a denied one that it does not begin with:
// it runs others, the shell expands a * in it, or its arguments contain the denied words, as
// in "setarch rm x" and "git -C . push". All words must be folded.
func mayRun(command, denied []word) bool {
	isWild := slices.ContainsFunc(command, func(w word) bool { return w.wild })
	switch {
	case command[0].wild, isRunner(command), isWild && matchPath(base(denied[0].text), program(command), true):
		return true
	}
	return !slices.Contains(printers, program(command)) && mentions(command, denied)
}

// mentions reports whether the words of a pattern occur in a command, in this order and
// whatever is between them.
func mentions(command, pattern []word) bool {
	pattern = slices.DeleteFunc(slices.Clone(pattern), func(w word) bool { return w.text == string(anything) })
	for _, w := range command {
		for token := range strings.FieldsFuncSeq(w.text, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
		}) {
			if len(pattern) > 0 && matchName(base(pattern[0].text), token, true) {
				pattern = pattern[1:]
			}
		}
	}
	return len(pattern) == 0
}
