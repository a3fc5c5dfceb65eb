package redact

import (
	"bytes"
	"slices"
	"strings"
)

// nameAnchors are the words with which the name of a secret ends, or nearly.
var nameAnchors = []string{
	"passw", "passphrase", "pwd", "_pass", ".pass", "psk", "secret", "token", "apikey", "api_key", "api-key", "accesskey", "access_key", "access-key",
	"accountkey", "account_key", "privatekey", "private_key", "signingkey", "signing_key", "encryptionkey", "encryption_key", "auth_key", "authkey", "auth-key",
	"app_key", "app-key", "appkey", "application_key", "application-key", "credential", "__auth", "session_cookie", "session-cookie", "aws_session",
	"admin_key", "admin-key", "adminkey", "master_key", "master-key", "masterkey", "_pat",
}

// What a name suggests decides what its value must look like.
const (
	notSecret  = ""
	isPassword = "password"
	isToken    = "token"
	isKey      = "api-key"
	isSecret   = "secret"
)

// kindOfName returns the kind of secret in a variable, member or header with a name.
// Only the last word counts: a password is a secret, the length of a password is not.
func kindOfName(name []byte) string {
	words := splitName(name)
	if len(words) == 0 {
		return notSecret
	}
	last := words[len(words)-1]
	before := ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	switch {
	case last == "passphrase", last == "pwd", last == "psk", hasEnd(last, "password", "passwd"):
		return isPassword
	case last == "pass" && before != "" && !slices.Contains(notPass, before):
		return isPassword
	case hasEnd(last, "secret"), last == "base" && before == "key":
		return isSecret
	case hasEnd(last, "apikey", "accesskey", "secretkey", "accountkey", "authkey", "privatekey", "signingkey", "encryptionkey"):
		return isKey
	case last == "key" && slices.Contains(keyWords, before):
		return isKey
	case last == "pat" && len(words) > 2: // AZURE_DEVOPS_EXT_PAT: a personal access token
		return isToken
	case last == "token" && !slices.Contains(notToken, before), hasEnd(last, "accesstoken", "authtoken", "apitoken", "refreshtoken"):
		return isToken
	case last == "cookie" && before == "session", last == "session" && before == "aws", last == "auth" && before == "config":
		return isToken
	case last == "credential" || last == "credentials":
		return isSecret
	}
	return notSecret
}

// uuidWords are words after which a token may be a UUID. Otherwise a token that is one most
// likely names a request.
var uuidWords = []string{"auth", "access", "api", "personal", "deploy", "project"}

// mayBeUUID reports whether the value of a name may be a secret although it is a UUID. Such a
// name leaves no doubt: api_key, client_secret, _authToken, or the variable SNYK_TOKEN.
func mayBeUUID(kind string, name []byte) bool {
	words := splitName(name)
	last, before := words[len(words)-1], ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	switch kind {
	case isKey:
		return true
	case isSecret:
		return before != "" && hasEnd(last, "secret")
	case isToken:
		isVariable := before != "" && bytes.Equal(name, bytes.ToUpper(name)) && !slices.Contains([]string{"request", "client", "csrf", "trace"}, before)
		return last == "token" && (isVariable || slices.Contains(uuidWords, before)) || hasEnd(last, "authtoken", "accesstoken", "apitoken")
	}
	return false
}

// keyWords are words that make a key secret.
var keyWords = []string{"api", "app", "application", "access", "secret", "account", "auth", "private", "signing", "encryption", "master", "service", "admin", "subscription"}

// notToken are words with which a token is not a secret: places in lists, and what
// models read and write.
var notToken = []string{
	"next", "page", "nextpage", "continuation", "sync", "pagination", "cursor", "resume", "start", "end", "stop", "pad", "eos", "bos", "unk",
	"sep", "mask", "cls", "special", "max", "min", "num", "total", "input", "output", "prompt", "per", "last", "first", "cancel", "design",
	"color", "current", "peek", "syntax", "lex", "device", "scroll", "idempotency", "change", "position", "public",
}

// notPass are words with which a pass is not a password.
var notPass = []string{"render", "first", "second", "third", "one", "two", "by", "single", "multi", "compiler", "forward", "backward", "all", "tests"}

// splitName splits a name into its words, in lower case: API_KEY, api-key,
// apiKey and x.api.key all end in api and key.
func splitName(name []byte) []string {
	var words []string
	var cur []byte
	flush := func() {
		if len(cur) > 0 {
			words = append(words, string(cur))
			cur = nil
		}
	}
	for i, c := range name {
		switch {
		case !letterDigits[c]:
			flush()
			continue
		case c != lower(c) && i > 0 && letterDigits[name[i-1]] && name[i-1] == lower(name[i-1]):
			flush()
		}
		cur = append(cur, lower(c))
	}
	flush()
	return words
}

func hasEnd(word string, ends ...string) bool {
	return slices.ContainsFunc(ends, func(end string) bool {
		return strings.HasSuffix(word, end)
	})
}

const (
	maxName  = 80
	maxValue = 4096
	// minRandom is the minimum length of a token that only its name gives away.
	minRandom = 16
	// minPassword is the minimum length of a password.
	minPassword = 8
)

// matchAssignment looks at a word that may end the name of a secret. If it does, and a
// value that looks real follows, the value is a secret. It knows the values of .env
// lines, source code, JSON, YAML, headers and flags.
//
// A name may contain many anchors, but its length is limited, and what comes after it
// is examined once.
func matchAssignment(l *textScan, at, n int) (candidate, bool) {
	text := l.text
	start, end := at, at+n
	for start > 0 && at-start < maxName && wordDashDot[text[start-1]] {
		start--
	}
	for end < len(text) && end-at < maxName && wordDashDot[text[end]] {
		end++
	}
	l.work += end - start
	if isEscape(text, start+1) { // \npassword=
		start++
	}
	if l.name.start == start && l.name.end == end {
		return candidate{}, false // another word of the same name has already led here
	}
	l.name.start, l.name.end = start, end
	v, ok := l.valueAfter(start, end) // first, because most words are not names
	if !ok || v.end-v.start < minPassword && !l.mayContinue(v) {
		return candidate{}, false
	}
	name := text[start:end]
	kind := kindOfName(name)
	if kind == notSecret || l.overlapsMark(span{start, end}) { // a touched mark is the kind of a replaced secret
		return candidate{}, false
	}
	real, valueEnd := v.end-v.start >= minPassword && looksReal(kind, name, l.tailOfValue(v), v.start, v.quoted), v.end
	if kind == isPassword {
		if valueEnd = l.passwordEnd(start, v); valueEnd > v.end && !real {
			real = looksReal(kind, name, newTail(text, v.start, valueEnd, &l.work), v.start, false)
		}
	}
	if !real {
		return candidate{}, false
	}
	return candidate{kind: kind, span: span{v.start, valueEnd}, shown: name, named: true, secret: v.start}, true
}

// namedValue looks at a text that is as a whole the value of a name: a string of a JSON
// object. What comes before a replacement in it is a value, too.
func namedValue(name string, text []byte, marks *markSet) (candidate, bool) {
	if name == "" || len(text) > maxValue || len(text) < minPassword || !wordDashDot.has([]byte(name)) {
		return candidate{}, false
	}
	kind := kindOfName([]byte(name))
	if kind == notSecret {
		return candidate{}, false
	}
	if all := marks.in(text); len(all) > 0 {
		text = text[:all[0].start]
	}
	if len(text) == 0 {
		return candidate{}, false
	}
	if !looksReal(kind, []byte(name), newTail(text, 0, len(text), new(int)), 0, true) {
		return candidate{}, false
	}
	return candidate{kind: kind, span: span{0, len(text)}, shown: []byte(name), named: true}, true
}

// value is the place of a value.
type value struct {
	span
	quoted bool
	// bare is the alphabet of a value without quotes.
	bare *alphabet
}

// tailOfValue returns the tail that a value is. No token uses the alphabets of values
// without quotes, so the tail of their runs is always that of values.
func (l *textScan) tailOfValue(v value) *tail {
	if v.quoted {
		return l.tailOf(v.span)
	}
	r := l.run(v.bare, v.start)
	if r.tail == nil {
		r.tail = newTail(l.text, r.start, v.end, &l.work)
	}
	return r.tail
}

// bareEnd returns where the unquoted values in a run end, which is the same place for
// all of them. Dots and colons at the end are not part of them, nor is a secret at the
// end that was replaced. There can be only one, because its closing bracket ends the
// run.
func (l *textScan) bareEnd(r *run) int {
	if r.valueEnd < 0 {
		end := max(r.start, l.beforeMark(r.span))
		for end > r.start && (l.text[end-1] == '.' || l.text[end-1] == ':') {
			end--
		}
		r.valueEnd = end
	}
	return r.valueEnd
}

// valueAfter finds the value that is assigned to a name. It remembers the latest one,
// because names longer than maxName are cut at their beginning and so differ for each
// anchor.
func (l *textScan) valueAfter(nameStart, nameEnd int) (value, bool) {
	flag := l.text[nameStart] == '-'
	if m := &l.read; m.after != nameEnd || m.flag != flag {
		m.after, m.flag = nameEnd, flag
		m.result, m.ok = l.findValue(nameStart, nameEnd, flag)
	}
	return l.read.result, l.read.ok
}

func (l *textScan) findValue(nameStart, nameEnd int, flag bool) (value, bool) {
	text, i := l.text, nameEnd
	if i < len(text) && text[i] == '>' && nameStart > 0 && text[nameStart-1] == '<' {
		return l.readElement(i + 1)
	}
	closed := skipQuote(text, &i)
	if i < len(text) && text[i] == ']' { // config["password"] =
		i++
	}
	spaced := skipSpace(text, &i)
	l.work += i - nameEnd
	switch {
	case i >= len(text):
		return value{}, false
	case text[i] == ':' || text[i] == '=':
		colon, sign := text[i] == ':', i
		for i < len(text) && (text[i] == ':' || text[i] == '=' || text[i] == '>') {
			i++
		}
		spaced = skipSpace(text, &i) || spaced
		if colon && !closed && skipType(text, &i) {
			spaced = true
		}
		l.work += i - sign
	case flag && spaced && !closed:
	case spaced && !closed && isQuote(text[i]) && endsInPassword(text[nameStart:nameEnd]): // ALTER USER x PASSWORD 'y'
	default:
		return value{}, false
	}
	return l.readValue(i, spaced && !closed)
}

func endsInPassword(name []byte) bool {
	const word = "password"
	return len(name) >= len(word) && hasFold(name[len(name)-len(word):], word)
}

// readElement reads the content of an XML element up to its end. The bracket before the
// name of another element ends it.
func (l *textScan) readElement(from int) (value, bool) {
	rest := l.text[from:min(len(l.text), from+maxValue)]
	n := bytes.IndexByte(rest, '<')
	l.work += max(n, 0)
	if n <= 0 || n+1 >= len(rest) || rest[n+1] != '/' {
		return value{}, false
	}
	v := span{from, l.beforeMark(span{from, from + n})}
	return value{span: v, quoted: true}, v.end > v.start
}

// skipType passes over the type in "token: str = ".
func skipType(text []byte, i *int) bool {
	j := *i + wordDashDot.run(text[*i:])
	skipSpace(text, &j)
	if j == *i || j+1 >= len(text) || text[j] != '=' || text[j+1] == '=' {
		return false
	}
	j++
	skipSpace(text, &j)
	*i = j
	return true
}

// readValue reads a value in quotes, which may be escaped, or a bare one, which ends at
// the first byte that no value of a .env line or of a URL has.
func (l *textScan) readValue(i int, spaced bool) (value, bool) {
	text, slashes := l.text, i
	for slashes < len(text) && text[slashes] == '\\' {
		slashes++
	}
	l.work += slashes - i
	if slashes < len(text) && isQuote(text[slashes]) {
		return l.readQuoted(slashes, slashes-i)
	}
	bare := bareNoAmp
	if spaced { // otherwise & may begin the next parameter of a URL
		bare = bareBytes
	}
	r := l.run(bare, i)
	end := r.end
	if end-i > maxValue || end < len(text) && text[end] == '(' { // a call
		return value{}, false
	}
	if spaced && isSelector(text[i:end]) {
		return value{}, false
	}
	end = l.bareEnd(r)
	return value{span: span{i, end}, bare: bare}, end > i
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// isSelector reports whether a text is names joined by dots, as in x = a.b: code, and
// not a value. C is where Go has the names of C.
func isSelector(text []byte) bool {
	parts := bytes.Split(text, []byte("."))
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part []byte) bool {
		return len(part) < 2 && string(part) != "C" || digits[part[0]] || !word.has(part)
	})
}

// readQuoted reads a value up to its closing quote, which has no more backslashes
// before it than the opening one had.
//
// A value that contains others has only quotes with more backslashes than its own, and
// those others only quotes with still more. Values are limited in length, and
// backslashes fill them up, so there are at most a few dozen.
func (l *textScan) readQuoted(quote, slashes int) (value, bool) {
	text := l.text
	for i := quote + 1; i < len(text) && i-quote <= maxValue && text[i] != '\n'; i++ {
		l.work++
		if text[i] != text[quote] {
			continue
		}
		before := 0
		for before < i-quote-1 && text[i-1-before] == '\\' {
			before++
		}
		if before <= slashes {
			v := span{quote + 1, i - before}
			v.end = l.beforeMark(v)
			return value{span: v, quoted: true}, v.end > v.start
		}
	}
	return value{}, false
}

// skipQuote passes over a closing quote, which may be escaped.
func skipQuote(text []byte, i *int) bool {
	j := *i
	for j < len(text) && text[j] == '\\' {
		j++
	}
	if j < len(text) && isQuote(text[j]) {
		*i = j + 1
		return true
	}
	return false
}

func skipSpace(text []byte, i *int) bool {
	from := *i
	for *i < len(text) && (text[*i] == ' ' || text[*i] == '\t') {
		*i++
	}
	return *i > from
}

// looksReal reports whether a value, which begins at a place of a tail and ends with
// it, is what its name suggests.
func looksReal(kind string, name []byte, t *tail, from int, quoted bool) bool {
	v := t.text[from:]
	if kind == isPassword {
		return looksLikePassword(t, from, quoted)
	}
	if len(v) == lengthOfUUID && isUUID(v) {
		return mayBeUUID(kind, name) && !t.hasStandIn(from)
	}
	if len(v) < minRandom || !t.isTokenLike(from) || isNoValue(t, from) || !t.isRandom(from) {
		return false
	}
	return quoted || v[0] != '$' && v[0] != '/'
}

// isNoValue reports whether something in the place of a value is not one.
func isNoValue(t *tail, from int) bool {
	v := t.text[from:]
	return v[0] == '[' || isDigest(v) || t.hasStandIn(from) || t.hasScheme(from)
}

const maxPassword = 128

// looksLikePassword requires three of small letters, capitals, digits and marks, or
// something that looks random. Passwords are short, so it may look at the whole value.
func looksLikePassword(t *tail, from int, quoted bool) bool {
	v := t.text[from:]
	if len(v) < minPassword || len(v) > maxPassword || isNoValue(t, from) || bytes.ContainsAny(v, " \t\n\r") {
		return false
	}
	*t.work += len(v)
	if isWeak(nil, v) || isSlug(v) && !hasMark(v) || isUUID(v) || distinct(v) < enoughInPassword {
		return false
	}
	if bytes.Count(v, []byte("/")) > 1 || v[0] == '/' || v[0] == '~' || bytes.ContainsAny(v, "(){}") && !quoted {
		return false // a path, or code
	}
	var classes [256]bool
	for _, c := range v {
		classes[classOf(c)] = true
	}
	return classes['0'] && distinctOf(classes) >= 3 && isVaried(v) || len(v) >= 10 && t.changesOften(from)
}

// enoughInPassword is how many different bytes a password has at least: hunter2hunter2 has
// seven.
const enoughInPassword = 6

// hasMark reports whether a value has a mark that passwords have and names, paths,
// addresses and expressions do not: Summer2026! is not a word.
func hasMark(v []byte) bool {
	for i, c := range v {
		rest := v[i+1:]
		switch c {
		case '!':
			if len(rest) == 0 || rest[0] != '=' {
				return true
			}
		case '#', '^':
			return true
		case '$':
			if len(rest) == 0 || !word[rest[0]] {
				return true
			}
		case '@':
			if bytes.IndexByte(rest, '.') < 0 {
				return true
			}
		case '?': // in a question, an expression or an address it is something else
			if len(rest) > 0 && !bytes.ContainsAny(rest, ".:=?[&/") && bytes.IndexByte(v[:i], '/') < 0 {
				return true
			}
		}
	}
	return false
}

func distinctOf(classes [256]bool) int {
	n := 0
	for _, c := range "0Aa-" {
		if classes[c] {
			n++
		}
	}
	return n
}
