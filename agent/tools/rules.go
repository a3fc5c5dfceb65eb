package tools

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/render/plain"
)

// Rules allow and deny calls without asking. A rule is the name of a tool, or a name
// with a pattern for what is called:
//
//	read                 every call of the tool
//	github_*             every call of the tools with such names
//	write(docs/**)       files in docs and below
//	read(/usr/include/**)
//	bash(go test *)      go test, with any arguments
//	fetch(*.example.com) pages of these hosts, even if they are not public
//	fetch(localhost:8080)  the same at another port than 80 and 443; :* is every port
//
// A call that a rule denies is refused, whatever else allows it. Rules that allow are
// strict and rules that deny are broad: in doubt a call asks.
//
// In the pattern of a path, * and ? match anything within a name, and ** any number of names. In
// a rule that allows, they do not match a dot at the beginning of a name: write(**) does not
// reach .git or .env; write(.github/**) reaches .github. The same holds for files in which
// programs keep keys: write(**) does not reach a.pem; write(**/*.pem) does. A path is relative to
// the working directory. A file outside is reached only by an absolute pattern: "write" alone is
// write(**). If there are links on the way, both the path in the call and the file itself must be
// allowed.
//
// The pattern of a command is compared word by word. A * by itself matches one word, or at
// the end any number of words; in quotes it is just a character. A command line is allowed if
// it consists of plain commands, joined by && || ; | or a newline, each of which is allowed.
// With a substitution, a redirection, a variable and the like in it, it asks. Keep in mind
// what a command can do: "find *" can delete, and "go test *" runs any program by -exec.
//
// A rule that denies a command covers it wherever it is in a line, and in the words of
// programs that run others. It also limits the rule "bash", which allows all: a line that is
// more than plain commands, that has another program run its words, such as env, sh or find
// -exec, or that has the denied words in its arguments asks, because it may run what is
// denied. A rule with a pattern still allows it. This keeps a model away from a command, but
// it is not a sandbox: a script or a program that was just written can run anything.
//
// A nil *Rules has no rules. Methods may be called concurrently.
type Rules struct {
	dir  dir
	deny []rule

	mu    sync.RWMutex // guards what follows
	allow []rule
}

// rule is a rule that was read.
type rule struct {
	text    string
	name    string // pattern of the tool's name
	bare    bool   // there is no pattern for the call
	path    string // pattern of a path
	outside bool   // the pattern is absolute
	words   []word // pattern of a command
	host    string // pattern of a host
	port    string // pattern of its port; "" is the usual one
}

// NewRules reads rules for a working directory. Default for the directory: the current
// one.
func NewRules(workDir string, allow, deny []string) (*Rules, error) {
	d, err := openDir(workDir)
	if err != nil {
		return nil, err
	}
	r := &Rules{dir: d}
	var errs []error
	for _, text := range allow {
		one, err := r.parse(text)
		r.allow, errs = append(r.allow, one), append(errs, err)
	}
	for _, text := range deny {
		one, err := r.parse(text)
		r.deny, errs = append(r.deny, one), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// Allow adds a rule that allows calls, from now on.
func (r *Rules) Allow(text string) error {
	one, err := r.parse(text)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allow = append(r.allow, one)
	return nil
}

// parse reads one rule.
func (r *Rules) parse(text string) (rule, error) {
	text = strings.TrimSpace(text)
	bad := func(why string) (rule, error) {
		return rule{}, fmt.Errorf("the rule %q: %s", plain.Line(text), why)
	}
	name, pattern, has := strings.Cut(text, "(")
	one := rule{text: text, name: pathPattern(strings.TrimSpace(name)), bare: !has}
	switch {
	case strings.ContainsFunc(text, unicode.IsControl):
		return bad("it has a control character")
	case one.name == "" || strings.ContainsAny(name, " /)"):
		return bad("it must begin with the name of a tool")
	case !has:
		return one, nil
	case !strings.HasSuffix(pattern, ")"):
		return bad("the parenthesis is not closed")
	}
	pattern = strings.TrimSpace(strings.TrimSuffix(pattern, ")"))
	switch name = strings.TrimSpace(name); {
	case pattern == "":
		return bad("there is nothing in the parentheses")
	case name == Bash:
		commands, err := simpleCommands(pattern, true)
		if err != nil {
			return bad("the pattern must be the words of one command; put other characters in quotes")
		}
		one.words = commands[0]
	case pathTools[name] != nil:
		p, err := r.dir.locate(pattern)
		if err != nil {
			return bad(err.Error())
		}
		one.path, one.outside = pathPattern(filepath.ToSlash(p.name)), p.outside
	case name == Fetch:
		host, port := splitPort(strings.ToLower(pattern))
		one.host, one.port = pathPattern(host), pathPattern(port)
		if strings.ContainsAny(pattern, "/ ") || strings.Trim(port, "0123456789*") != "" {
			return bad("the pattern must be a host, such as *.example.com, or a host with a port, such as localhost:8080")
		}
	default:
		return bad("only bash, fetch and the tools for files take a pattern")
	}
	return one, nil
}

// Check returns an error for each rule that matches none of the tools with these names: most
// likely the name is misspelt, and a call that should be denied is not. A name with a * or ?
// may be meant for tools that are not present, and is not an error.
func (r *Rules) Check(names []string) error {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	var errs []error
	check := func(list []rule, same func(a, b string) bool) {
		for _, one := range list {
			if strings.ContainsAny(one.name, string([]byte{anything, anyOne})) || slices.ContainsFunc(names, func(n string) bool { return same(one.name, n) }) {
				continue
			}
			errs = append(errs, fmt.Errorf("the rule %q: there is no such tool: the tools are %s", plain.Line(one.text), strings.Join(names, ", ")))
		}
	}
	check(r.allow, func(a, b string) bool { return a == b })
	check(r.deny, func(a, b string) bool { return folded(a) == folded(b) })
	return errors.Join(errs...)
}

// Decide returns what the rules say about a call, with the rule that says it, or "" if
// they say nothing.
func (r *Rules) Decide(call agent.Call) (d agent.Decision, rule string) {
	if r == nil {
		return "", ""
	}
	s := r.subject(call)
	for _, one := range r.deny {
		if s.denied(one) {
			return agent.Deny, one.text
		}
	}
	s.doubtful = r.mayRunDenied(&s)
	r.mu.RLock()
	defer r.mu.RUnlock()
	return s.allowed(r.allow)
}

// mayRunDenied reports which commands of a call may run something that a rule denies. A line that
// is not simple counts as one command.
func (r *Rules) mayRunDenied(s *subject) []bool {
	if s.name != Bash || !slices.ContainsFunc(r.deny, func(one rule) bool { return len(one.words) > 0 }) {
		return nil
	}
	list := make([]bool, max(len(s.commands), 1))
	for i, command := range s.commands {
		command = foldedWords(command)
		list[i] = slices.ContainsFunc(r.deny, func(one rule) bool { return len(one.words) > 0 && mayRun(command, foldedWords(one.words)) })
	}
	list[0] = list[0] || !s.simple
	return list
}

// subject is a call as rules see it.
type subject struct {
	name     string
	paths    []path   // the path, and the file itself if there are links on the way
	commands [][]word // that it runs, if it is simple
	simple   bool
	host     site
	hidden   [][]word // everything that it may run, folded
	doubtful []bool   // the commands that the rule "bash" alone does not allow; nil: none
}

func (r *Rules) subject(call agent.Call) subject {
	s := subject{name: call.Name}
	switch {
	case pathTools[call.Name] != nil:
		if p, err := r.dir.pathIn(call.Name, call.Input); err == nil {
			s.paths = []path{p}
			if at, err := r.dir.open(p); err == nil {
				at.close()
				if !p.outside && at.full != p.name {
					s.paths = append(s.paths, path{name: at.full})
				}
			}
		}
	case call.Name == Fetch:
		s.host = hostOf(call)
	case call.Name == Bash:
		command := commandOf(call)
		var err error
		s.commands, err = simpleCommands(command, false)
		s.simple = err == nil
		s.hidden, _ = allCommands(command, 0)
	}
	return s
}

// allowed reports whether there is a rule for each part of a call, and returns the one
// for the first part.
func (s *subject) allowed(rules []rule) (agent.Decision, string) {
	by := func(covers func(one rule) bool) (string, bool) {
		i := slices.IndexFunc(rules, func(one rule) bool { return matchName(one.name, s.name, false) && covers(one) })
		if i < 0 {
			return "", false
		}
		return rules[i].text, true
	}
	whole := func(one rule) bool { return one.bare }
	var parts []func(one rule) bool
	switch {
	case pathTools[s.name] != nil:
		for _, p := range s.paths {
			parts = append(parts, func(one rule) bool { return one.allowsPath(p) })
		}
	case s.name == Bash:
		bare := func(one rule, i int) bool { return one.bare && (s.doubtful == nil || !s.doubtful[i]) }
		if !s.simple {
			parts = append(parts, func(one rule) bool { return bare(one, 0) })
			break
		}
		for i, command := range s.commands {
			parts = append(parts, func(one rule) bool { return bare(one, i) || !one.bare && matchCommand(one.words, command, false) })
		}
	case s.name == Fetch:
		if s.host.name != "" {
			parts = append(parts, func(one rule) bool { return one.bare && !s.host.isPrivate() || one.allowsSite(s.host) })
		}
	default:
		parts = append(parts, whole)
	}
	var first string
	for i, part := range parts {
		text, ok := by(part)
		if !ok {
			return "", ""
		}
		if i == 0 {
			first = text
		}
	}
	if len(parts) == 0 { // the call is invalid, and will be refused
		return "", ""
	}
	return agent.Allow, first
}

func (one *rule) allowsPath(p path) bool {
	if one.bare {
		return !p.outside && matchPath(manyNames, p.String(), false)
	}
	return p.outside == one.outside && matchPath(one.path, p.String(), false)
}

// denied reports whether a rule covers any part of a call.
func (s *subject) denied(one rule) bool {
	if !matchName(folded(one.name), folded(s.name), true) {
		return false
	}
	if one.bare {
		return true
	}
	if slices.ContainsFunc(s.paths, func(p path) bool {
		return p.outside == one.outside && matchPath(folded(one.path), folded(p.String()), true)
	}) {
		return true
	}
	if one.host != "" && matchName(one.host, s.host.name, true) && (one.port == "" || matchName(one.port, s.host.anyPort(), true)) {
		return true
	}
	pattern := foldedWords(one.words)
	return len(pattern) > 0 && slices.ContainsFunc(s.hidden, func(command []word) bool {
		command = slices.Clone(command[:min(len(command), len(pattern)+1)]) // a pattern does not look further
		if matchCommand(pattern, command, true) {
			return true
		}
		command[0].text = program(command)
		return matchCommand(pattern, command, true)
	})
}

func (one *rule) allowsSite(s site) bool {
	return one.host != "" && matchName(one.host, s.name, false) && (one.port == s.port || matchName(one.port, s.anyPort(), false)) &&
		(!s.isPrivate() || one.namesHost())
}

// namesHost reports whether a rule is for certain hosts, and not just for every host.
func (one *rule) namesHost() bool { return strings.Trim(one.host, string(anything)) != "" }

// names reports whether a rule allows a host by its name.
func (r *Rules) names(s site) bool {
	if r == nil {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.ContainsFunc(r.allow, func(one rule) bool { return one.namesHost() && one.allowsSite(s) })
}

// deniesRead reports whether a rule keeps a file from being read.
func (r *Rules) deniesRead(p path) bool {
	if r == nil {
		return false
	}
	s := subject{name: Read, paths: []path{p}}
	return slices.ContainsFunc(r.deny, s.denied)
}

// folded returns a name as compared by file systems that ignore case and the encoding
// of accents.
func folded(s string) string { return strings.ToLower(norm.NFC.String(s)) }

func foldedWords(words []word) []word {
	words = slices.Clone(words)
	for i := range words {
		words[i].text = folded(words[i].text)
	}
	return words
}

// Apply returns tools that obey the rules: an allowed call does not ask, and a denied
// one is refused without asking.
func (r *Rules) Apply(list ...agent.Tool) []agent.Tool {
	list = slices.Clone(list)
	if r == nil {
		return list
	}
	for i := range list {
		ask, run, name := list[i].Ask, list[i].Run, list[i].Name
		// A tool may be renamed later, because another tool has its name. A rule for the
		// old name still denies it, but no longer allows it: that name now belongs to
		// the other tool.
		decide := func(call agent.Call) (agent.Decision, string) {
			first := call
			first.Name = name
			if d, text := r.Decide(first); d == agent.Deny {
				return d, text
			}
			return r.Decide(call)
		}
		if ask != nil {
			list[i].Ask = func(call agent.Call) (bool, string) {
				asks, reason := ask(call) // even if a rule decides, because it records which file the call names
				if d, _ := decide(call); d != "" {
					return false, ""
				}
				if asks && reason == "" && slices.Contains(r.mayRunDenied(new(r.subject(call))), true) {
					reason = "it may run a command that a rule denies"
				}
				return asks, reason
			}
		}
		if check := list[i].Check; check != nil {
			list[i].Check = func(call agent.Call) error {
				if d, _ := decide(call); d == agent.Deny {
					return nil // Run reports it
				}
				return check(call)
			}
		}
		list[i].Run = func(ctx context.Context, call agent.Call) (agent.Result, error) {
			if d, text := decide(call); d == agent.Deny {
				return refused(fmt.Errorf("the user does not allow this: the rule %s denies it", text))
			}
			return run(ctx, call)
		}
	}
	return list
}

// RulesFor returns the rules that together allow calls like this one and no others: the same
// path or the same command, one for each of several commands, or for other tools every
// call. The error says why there are none.
func (r *Rules) RulesFor(call agent.Call) ([]string, error) {
	if r == nil {
		return nil, errors.New("there are no rules")
	}
	s := r.subject(call)
	texts := []string{call.Name}
	switch {
	case pathTools[call.Name] != nil:
		p, err := r.dir.pathIn(call.Name, call.Input)
		if err != nil {
			return nil, err
		}
		if strings.ContainsAny(p.String(), "*?()") {
			return nil, errors.New("the path has characters with a special meaning in a rule")
		}
		texts[0] += "(" + p.String() + ")"
	case call.Name == Fetch:
		if s.host.isPrivate() {
			return nil, fmt.Errorf("it is not a public address; only a rule that you write yourself allows it, such as fetch(%s)", s.host)
		}
		texts[0] += "(" + s.host.String() + ")"
	case call.Name == Bash:
		if !s.simple {
			return nil, errors.New("a rule can only hold a command of plain words and quoted text, and this is more")
		}
		texts = nil
		for _, words := range s.commands {
			if slices.ContainsFunc(words, func(w word) bool { return w.wild }) {
				return nil, errors.New("in a rule, * and ? match other commands too")
			}
			if err := r.isSafeAlone(words, len(s.commands) == 1); err != nil {
				return nil, err
			}
			if text := Bash + "(" + quoted(words) + ")"; !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	var all []rule
	for _, text := range texts {
		one, err := r.parse(text)
		if err != nil {
			return nil, errors.New("it has characters that no rule can have")
		}
		all = append(all, one)
	}
	if d, _ := s.allowed(all); d != agent.Allow {
		return nil, errors.New("there is a link on the way, and the file it leads to needs a rule too")
	}
	return texts, nil
}

// isSafeAlone returns why a rule for a command would allow more than the line that it is in:
// the parts of a line can be combined in other ways. whole means that the line has no other
// command.
func (r *Rules) isSafeAlone(command []word, whole bool) error {
	folded := foldedWords(command)
	name := program(folded)
	switch {
	case runsInput(folded), !whole && (isRunner(folded) || runsInside(folded) || isInterpreter(folded)):
		return fmt.Errorf("%s can run anything, and a rule for it would hold in other lines too", name)
	case name == "cd" || name == "pushd" || name == "popd":
		if len(command) == 2 {
			p, err := r.dir.locate(command[1].text)
			if err == nil && !p.outside && !strings.HasPrefix(command[1].text, "-") {
				at, err := r.dir.open(p) // which follows links
				if err == nil {
					at.close()
				}
				return err
			}
		}
		return fmt.Errorf("%s leads out of the working directory, and a rule for it would hold in other lines too", name)
	}
	return nil
}

// quoted writes the words of a command as in a rule. A rule has no backslash outside of
// quotes.
func quoted(words []word) string {
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'" }
	texts := make([]string, len(words))
	for i, w := range words {
		if texts[i] = plain.ShellWord(w.text); texts[i] != w.text {
			texts[i] = quote(w.text)
		}
	}
	if _, err := simpleCommands(strings.Join(texts, " "), true); err != nil {
		texts[0] = quote(words[0].text) // without quotes it is a word of the shell, such as time
	}
	return strings.Join(texts, " ")
}
