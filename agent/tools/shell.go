package tools

import (
	"errors"
	"slices"
	"strings"
)

// word is a word of a simple command: what the shell passes on, or the pattern for it in
// a rule, see anything and anyOne.
type word struct {
	text string
	wild bool // the shell expands it, or the pattern is more than its text
}

// errNotSimple means that the words of a command do not show what it does.
var errNotSimple = errors.New("it is more than words: it has a substitution, a redirection or the like")

// plainBytes are those without a special meaning to a shell, wherever they are in a
// word.
const plainBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:@%+,"

// simpleCommands splits a command line into the commands that it runs, each of them
// words. It knows only what cannot be misunderstood: plain words, quoted text, and
// commands joined by && || ; and |. It lists what is allowed, so anything that was
// forgotten is an error, and the call asks. In particular there is no $, no backtick,
// no backslash, no & of its own, no newline, no parenthesis or brace, no redirection
// except for 2>&1, no ~, no comment, no variable that is set for a command, and outside
// of quotes nothing that is not ASCII.
func simpleCommands(line string, pattern bool) ([][]word, error) {
	l := &lexer{line: line, pattern: pattern}
	for l.at < len(l.line) {
		if err := l.step(); err != nil {
			return nil, err
		}
	}
	if err := l.endCommand(); err != nil {
		return nil, err
	}
	return l.commands, nil
}

type lexer struct {
	line     string
	pattern  bool
	at       int
	commands [][]word
	words    []word
	current  *word
}

// step takes the next piece of the line.
func (l *lexer) step() error {
	c, rest := l.line[l.at], l.line[l.at:]
	switch {
	case c == ' ' || c == '\t':
		l.endWord()
		l.at++
	case c == '\'' || c == '"':
		return l.quoted(c)
	case l.current == nil && (rest == "2>&1" || strings.HasPrefix(rest, "2>&1 ")) && !l.pattern:
		l.at += len("2>&1")
	case strings.HasPrefix(rest, "&&") || strings.HasPrefix(rest, "||"):
		return l.operator(2)
	case c == ';' || c == '|':
		return l.operator(1)
	case c == '*' || c == '?':
		if l.pattern {
			c = map[byte]byte{'*': anything, '?': anyOne}[c]
		}
		l.add(c, true)
	case strings.IndexByte(plainBytes, c) >= 0:
		l.add(c, false)
	default:
		return errNotSimple
	}
	return nil
}

func (l *lexer) add(c byte, wild bool) {
	if l.current == nil {
		l.current = &word{}
	}
	l.current.text += string([]byte{c})
	l.current.wild = l.current.wild || wild
	l.at++
}

func (l *lexer) endWord() {
	if l.current != nil {
		l.words = append(l.words, *l.current)
		l.current = nil
	}
}

// operator ends a command; |& and ;; are other operators.
func (l *lexer) operator(size int) error {
	l.at += size
	if l.pattern || l.at < len(l.line) && strings.IndexByte("&|;", l.line[l.at]) >= 0 {
		return errNotSimple
	}
	return l.endCommand()
}

// endCommand ends a command. It must have a first word, and that must be the program:
// not a variable that is set for it, nor a word of the shell that changes what the
// others mean.
func (l *lexer) endCommand() error {
	l.endWord()
	if len(l.words) == 0 || strings.Contains(l.words[0].text, "=") || slices.Contains(reserved, l.words[0].text) {
		return errNotSimple
	}
	l.commands, l.words = append(l.commands, l.words), nil
	return nil
}

// reserved are the reserved words of bash that consist of letters.
var reserved = []string{
	"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select", "function", "time", "coproc",
}

// quoted takes text in quotes. In double quotes, $ ` \ and ! still mean something.
func (l *lexer) quoted(quote byte) error {
	if l.current == nil {
		l.current = &word{}
	}
	for l.at++; l.at < len(l.line); {
		c := l.line[l.at]
		switch {
		case c == quote:
			l.at++
			return nil
		case c < ' ' && c != '\n' && c != '\t', c == 0x7f, quote == '"' && strings.IndexByte("$`\\!", c) >= 0:
			return errNotSimple
		}
		l.add(c, false)
	}
	return errNotSimple
}

// matchCommand reports whether the words of a command are what a pattern says. A * of
// its own is one word, or at the end any number of words. Words that the shell expands
// become others, so only such an end covers them.
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

// roughCommands splits a line at everything that might begin another command. It is for
// rules that deny: it may find things that are not commands.
func roughCommands(line string) [][]word {
	var commands [][]word
	clean := strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(line)
	for piece := range strings.FieldsFuncSeq(clean, func(r rune) bool { return strings.ContainsRune(";&|\n\r(){}`$<>", r) }) {
		var words []word
		for _, text := range strings.Fields(piece) {
			words = append(words, word{text: text})
		}
		if len(words) > 0 {
			commands = append(commands, words)
		}
	}
	return commands
}

// program returns the name of the program that a command runs: rm of /bin/rm.
func program(command []word) string {
	name := command[0].text
	return name[strings.LastIndexByte(name, '/')+1:]
}

// runners are programs and words of the shell that run the command in their arguments,
// their input or a file.
var runners = []string{
	"bash", "sh", "dash", "zsh", "ksh", "ash", "fish", "busybox", "env", "xargs", "parallel", "nohup", "sudo", "doas", "su", "exec", "eval", "source", ".",
	"command", "builtin", "time", "timeout", "nice", "ionice", "setsid", "stdbuf", "watch", "chroot", "script", "strace", "flock", "trap", "alias", "ssh",
}

// mayRunOthers reports whether a simple command may run one of the denied ones although
// it is not written like it: as the argument of a program that runs commands, or because
// the shell expands a * in it. All words must be folded.
func mayRunOthers(command []word, denied [][]word) bool {
	name := program(command)
	isWild := func(w word) bool { return w.wild }
	switch {
	case command[0].wild, slices.Contains(runners, name):
		return true
	case name == "find":
		return slices.ContainsFunc(command, func(w word) bool { return strings.HasPrefix(w.text, "-exec") || strings.HasPrefix(w.text, "-ok") })
	}
	return slices.ContainsFunc(command, isWild) &&
		slices.ContainsFunc(denied, func(pattern []word) bool { return matchPath(pattern[0].text, name, true) })
}
