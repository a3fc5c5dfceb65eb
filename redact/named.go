package redact

import (
	"bytes"
	"slices"
)

// nameAnchors are the words with which the name of a secret ends, or nearly.
var nameAnchors = []string{
	"passw", "passphrase", "pwd", "_pass", "secret", "token", "apikey", "api_key", "api-key", "accesskey", "access_key", "access-key",
	"accountkey", "account_key", "privatekey", "private_key", "signingkey", "signing_key", "encryptionkey", "encryption_key", "auth_key", "authkey", "credential",
}

// What a name promises decides what its value must look like.
const (
	notSecret  = ""
	isPassword = "password"
	isToken    = "token"
	isKey      = "api-key"
	isSecret   = "secret"
)

// kindOfName says what kind of secret a variable, member or header of that name
// has. Only the last word of the name counts: a password is one, the length of a
// password is not.
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
	case last == "password", last == "passwd", last == "passphrase", last == "pwd" && before != "", hasEnd(last, "password", "passwd"):
		return isPassword
	case last == "pass" && before != "" && !slices.Contains(notPass, before):
		return isPassword
	case last == "secret", hasEnd(last, "secret"), last == "base" && before == "key":
		return isSecret
	case hasEnd(last, "apikey", "accesskey", "secretkey", "accountkey", "authkey", "privatekey", "signingkey", "encryptionkey"):
		return isKey
	case last == "key" && slices.Contains(keyWords, before):
		return isKey
	case last == "token" && !slices.Contains(notToken, before), hasEnd(last, "accesstoken", "authtoken", "apitoken", "refreshtoken"):
		return isToken
	case last == "credential" || last == "credentials":
		return isSecret
	}
	return notSecret
}

// keyWords are what makes a key a secret one.
var keyWords = []string{"api", "access", "secret", "account", "auth", "private", "signing", "encryption", "master", "service", "admin", "subscription"}

// notToken are what makes a token no secret: places in lists, and what models
// read and write.
var notToken = []string{
	"next", "page", "nextpage", "continuation", "sync", "pagination", "cursor", "resume", "start", "end", "stop", "pad", "eos", "bos", "unk",
	"sep", "mask", "cls", "special", "max", "min", "num", "total", "input", "output", "prompt", "per", "last", "first", "cancel", "design",
	"color", "current", "peek", "syntax", "lex", "device", "scroll", "idempotency", "change", "position", "public",
}

// notPass are what makes a pass no password.
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
		return len(word) > len(end) && word[len(word)-len(end):] == end
	})
}

const (
	maxName  = 80
	maxValue = 4096
	// minRandom is the least length of a token that only its name tells.
	minRandom = 16
	// minPassword is the least length of a password.
	minPassword = 8
)

// matchAssignment looks at a word that ends the names of secrets: if it does end
// one, and a value that looks real follows, that is one. Values are those of
// .env lines, of source code, of JSON, YAML and headers, and of flags.
func matchAssignment(text []byte, at, n int) (candidate, bool) {
	start, end := at, at+n
	for start > 0 && at-start < maxName && wordDashDot[text[start-1]] {
		start--
	}
	for end < len(text) && end-at < maxName && wordDashDot[text[end]] {
		end++
	}
	if isEscape(text, start+1) { // \npassword=
		start++
	}
	v, ok := valueAfter(text, start, end) // first, because most words are not names
	if !ok {
		return candidate{}, false
	}
	name := text[start:end]
	kind := kindOfName(name)
	if kind == notSecret || !looksReal(kind, v.text(text), v.quoted) {
		return candidate{}, false
	}
	if bytes.HasSuffix(text[:start], []byte(mark)) {
		return candidate{}, false // it is the kind of one that was replaced
	}
	return candidate{Finding: Finding{
		Kind: kind, Start: v.start, End: v.end, Preview: preview(string(name)+"=", v.text(text)),
	}}, true
}

// namedValue looks at a text that is as a whole the value of a name: a string of
// a JSON object.
func namedValue(name string, text []byte) (candidate, bool) {
	if name == "" || len(text) > maxValue || len(text) < minPassword || !wordDashDot.has([]byte(name)) {
		return candidate{}, false
	}
	kind := kindOfName([]byte(name))
	if kind == notSecret || !looksReal(kind, text, true) {
		return candidate{}, false
	}
	return candidate{
		Finding{Kind: kind, Start: 0, End: len(text), Preview: preview(name+"=", text)},
		rankNamed,
	}, true
}

// value is where a value stands.
type value struct {
	start, end int
	quoted     bool
}

func (v value) text(of []byte) []byte { return of[v.start:v.end] }

// valueAfter finds the value that is given to a name.
func valueAfter(text []byte, nameStart, nameEnd int) (value, bool) {
	i := nameEnd
	closed := skipQuote(text, &i)
	if i < len(text) && text[i] == ']' { // config["password"] =
		i++
	}
	spaced := skipSpace(text, &i)
	flag := text[nameStart] == '-'
	switch {
	case i >= len(text):
		return value{}, false
	case text[i] == ':' || text[i] == '=':
		colon := text[i] == ':'
		for i < len(text) && (text[i] == ':' || text[i] == '=' || text[i] == '>') {
			i++
		}
		spaced = skipSpace(text, &i) || spaced
		if colon && !closed && skipType(text, &i) {
			spaced = true
		}
	case flag && spaced && !closed:
	default:
		return value{}, false
	}
	return readValue(text, i, spaced && !closed)
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

// readValue reads a value in quotes, which may be escaped, or a bare one, which
// ends where no value of a .env line or of a URL goes on.
func readValue(text []byte, i int, spaced bool) (value, bool) {
	slashes := i
	for slashes < len(text) && text[slashes] == '\\' {
		slashes++
	}
	if slashes < len(text) && (text[slashes] == '"' || text[slashes] == '\'' || text[slashes] == '`') {
		return readQuoted(text, slashes, slashes-i)
	}
	end := i
	for end < len(text) && bareBytes[text[end]] {
		if text[end] == '&' && !spaced { // the next parameter of a URL
			break
		}
		end++
	}
	if end-i > maxValue || end < len(text) && text[end] == '(' { // a call
		return value{}, false
	}
	if spaced && isSelector(text[i:end]) {
		return value{}, false
	}
	end = i + len(bytes.TrimRight(text[i:end], ".:"))
	return value{start: i, end: end}, end > i
}

// isSelector reports whether a text is names joined by dots, as in x = a.b: code,
// and not a value.
func isSelector(text []byte) bool {
	parts := bytes.Split(text, []byte("."))
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(part []byte) bool {
		return len(part) < 2 || digits[part[0]] || !word.has(part)
	})
}

func readQuoted(text []byte, quote, slashes int) (value, bool) {
	for i := quote + 1; i < len(text) && i-quote <= maxValue && text[i] != '\n'; i++ {
		if text[i] != text[quote] {
			continue
		}
		before := 0
		for before < i-quote-1 && text[i-1-before] == '\\' {
			before++
		}
		if before <= slashes {
			return value{quote + 1, i - before, true}, i-before > quote+1
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
	if j < len(text) && (text[j] == '"' || text[j] == '\'' || text[j] == '`') {
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

// looksReal reports whether a value is what its name promises.
func looksReal(kind string, v []byte, quoted bool) bool {
	if isStandIn(v) || isDigest(v) || bytes.ContainsAny(v, " \t\n\r") || bytes.Contains(v, []byte("://")) || bytes.HasPrefix(v, []byte("[")) {
		return false
	}
	if kind == isPassword {
		return looksLikePassword(v, quoted)
	}
	if len(v) < minRandom || !bearerOrPercent(v) || !isRandom(v) {
		return false
	}
	return quoted || !bytes.HasPrefix(v, []byte("$")) && !bytes.HasPrefix(v, []byte("/"))
}

// bearerOrPercent reports whether a value has only what tokens are made of.
func bearerOrPercent(v []byte) bool {
	for _, c := range v {
		if !bearerBytes[c] && c != '%' && c != ':' && c != '!' && c != '@' && c != '#' && c != '*' && c != '$' && c != '^' {
			return false
		}
	}
	return true
}

// looksLikePassword wants three of small letters, capitals, digits and marks, or
// what a machine has made up.
func looksLikePassword(v []byte, quoted bool) bool {
	if len(v) < minPassword || len(v) > 128 || isWeak(nil, v) || isSlug(v) || isUUID(v) || !isVaried(v) {
		return false
	}
	if bytes.IndexByte(v, '/') >= 0 && bytes.Count(v, []byte("/")) > 1 || bytes.ContainsAny(v, "(){}") && !quoted {
		return false // a path, or code
	}
	classes := make(map[byte]bool)
	for _, c := range v {
		classes[classOf(c)] = true
	}
	return len(classes) >= 3 && classes['0'] || len(v) >= 10 && isRandom(v)
}
