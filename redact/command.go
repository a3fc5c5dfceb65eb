package redact

import "bytes"

// Commands that take a password as an argument, without a name that says so.

// command is a program and the flags that its password follows.
type command struct {
	name     string
	flags    []string // with the space, if there is one, between the flag and its value
	withUser bool     // the value is a user, a colon and the password
	attached bool     // nothing is between the flag and its value, so that it may be another flag
}

var commands = []command{
	{name: "curl", flags: []string{" -u ", " -u", " --user ", " --user="}, withUser: true},
	{name: "mysql", flags: []string{" -p"}, attached: true},
	{name: "mariadb", flags: []string{" -p"}, attached: true},
	{name: "sshpass", flags: []string{" -p ", " -p"}},
	{name: "redis-cli", flags: []string{" -a "}},
	{name: "docker login", flags: []string{" -p "}},
}

func commandNames() (all []string) {
	for _, c := range commands {
		all = append(all, c.name)
	}
	return all
}

// maxCommand is how far after the name of a program its flags are searched.
const maxCommand = 200

// matchCommand looks at the name of a program. What it examines has a limit, and each line
// is examined once, however often it names a program.
func matchCommand(l *textScan, at, n int) (candidate, bool) {
	text := l.text
	if at < l.commandEnd {
		return candidate{}, false
	}
	line := text[at+n : min(len(text), at+n+maxCommand)]
	if end := bytes.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	l.commandEnd = at + n + len(line)
	for i := range commands {
		c := &commands[i]
		if !bytes.HasPrefix(text[at:], []byte(c.name)) {
			continue
		}
		for _, flag := range c.flags {
			l.work += len(line)
			if j := bytes.Index(line, []byte(flag)); j >= 0 {
				if found, ok := c.password(l, at, at+n+j+len(flag)); ok {
					return found, true
				}
			}
		}
	}
	return candidate{}, false
}

// password returns the password in the argument at a place.
func (c *command) password(l *textScan, at, from int) (candidate, bool) {
	v := l.argument(from)
	var user []byte
	if c.withUser {
		var ok bool
		if user, _, ok = bytes.Cut(l.text[v.start:v.end], []byte(":")); !ok {
			return candidate{}, false
		}
		v.start += len(user) + 1
	}
	if value := l.text[v.start:v.end]; c.attached && isSlug(value) && !hasMark(value) {
		return candidate{}, false
	}
	return l.placedPassword(user, v, l.text[at:v.start])
}

// argument returns an argument of a command, without its quotes.
func (l *textScan) argument(from int) span {
	rest := l.text[from:min(len(l.text), from+maxPassword)]
	l.work += len(rest)
	quote := bytes.TrimLeft(rest, `\`)
	if len(quote) > 0 && isQuote(quote[0]) {
		start := len(rest) - len(quote) + 1
		end := bytes.IndexByte(rest[start:], quote[0])
		if end < 0 {
			return span{from, from}
		}
		value := bytes.TrimRight(rest[start:start+end], `\`)
		return span{from + start, from + start + len(value)}
	}
	end := 0
	for end < len(rest) && rest[end] > ' ' && bytes.IndexByte([]byte(";|)<>"), rest[end]) < 0 && !closesAt(rest[end:]) {
		end++
	}
	return span{from, from + end}
}

// closesAt reports whether a text begins with a quote, which may be escaped, that ends what
// is before it, or with an escaped line end. A quote before a letter is part of a word.
func closesAt(text []byte) bool {
	i := 0
	if text[0] == '\\' {
		i = 1
		if len(text) == 1 || !isQuote(text[1]) {
			return true
		}
	}
	return isQuote(text[i]) && (i+1 == len(text) || !word[text[i+1]])
}

// placedPassword returns a candidate if the value in the place of a password is one.
// The place itself is evidence, so less is required than of the value of a name.
func (l *textScan) placedPassword(user []byte, v span, shown []byte) (candidate, bool) {
	value := l.text[v.start:v.end]
	if len(value) < minPlaced || isWeak(user, value) || isStandIn(value) || bytes.ContainsAny(value, " \t(){}[") || bytes.Contains(value, []byte(`\u00`)) || digits.has(value) {
		return candidate{}, false
	}
	return candidate{kind: isPassword, span: v, shown: shown, secret: v.start}, true
}

// minPlaced is the minimum length of a password in a place where only passwords occur.
const minPlaced = 6

// matchIdentified looks at IDENTIFIED BY 'password' and IDENTIFIED WITH … BY 'password'.
func matchIdentified(l *textScan, at, n int) (candidate, bool) {
	text, from := l.text, at+n
	rest := text[from:min(len(text), from+64)]
	l.work += len(rest)
	by := indexFold(rest, "by ")
	if by < 0 || bytes.IndexByte(rest[:by], '\n') >= 0 {
		return candidate{}, false
	}
	i := from + by + len("by ")
	skipSpace(text, &i)
	v := l.argument(i)
	if value := text[v.start:v.end]; v.start == i || isSlug(value) && !hasMark(value) { // prose
		return candidate{}, false
	}
	return l.placedPassword(nil, v, text[at:i])
}

// matchNetrc looks at an entry of a .netrc file: machine, login and password, each with a
// value, on one line or on three. What it examines has a limit.
func matchNetrc(l *textScan, at, n int) (candidate, bool) {
	text, i := l.text, at+n
	end := min(len(text), at+maxCommand)
	var words [5]span // a host, login, a user, password, and the password
	for w := range words {
		if words[w] = nextWord(text[:end], &i); words[w].start == words[w].end {
			return candidate{}, false
		}
	}
	l.work += i - at
	said := func(w int) string { return string(text[words[w].start:words[w].end]) }
	if said(1) != "login" || said(3) != "password" {
		return candidate{}, false
	}
	v := l.argument(words[4].start)
	v.end -= len(l.text[v.start:v.end]) - len(bytes.TrimRight(l.text[v.start:v.end], ","))
	return l.placedPassword([]byte(said(2)), v, []byte("password "))
}

// nextWord returns the next word of a text. It skips what a listing has before a line, and
// escaped line ends.
func nextWord(text []byte, i *int) span {
	for *i < len(text) {
		switch {
		case text[*i] == '\\':
			*i = min(*i+2, len(text))
			continue
		case text[*i] <= ' ':
			*i++
			continue
		}
		start := *i
		for *i < len(text) && text[*i] > ' ' && text[*i] != '\\' {
			*i++
		}
		if said := text[start:*i]; !isMargin(said) {
			if _, word, ok := bytes.Cut(said, []byte("→")); ok {
				start = *i - len(word)
			}
			return span{start, *i}
		}
	}
	return span{*i, *i}
}

// isMargin reports whether a word is what a listing, a quotation or a patch has before a
// line.
func isMargin(said []byte) bool {
	said = bytes.TrimRight(said, ":|→")
	return digits.has(said) || len(said) == 1 && bytes.IndexByte([]byte(">+-"), said[0]) >= 0
}
