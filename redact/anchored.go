package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"
)

// minSegment is the minimum length of a part of a JWT.
const minSegment = 10

// matchJWT looks at eyJ, which is {" in base64. A JWT has three parts; the first two can be
// recognised by their beginning.
//
// The length of a part is not limited, and the second part of one token may be the
// first of another. But a head can begin at no more than three places in a part (see
// jwtHeads), so each part is looked at a few times at most.
func matchJWT(l *textScan, at, _ int) (candidate, bool) {
	text := l.text
	if !beginsAt(text, at) || isAfterBase64(text, at) {
		return candidate{}, false
	}
	head := l.run(wordDash, at)
	if !bytes.HasPrefix(text[head.end:], []byte(".eyJ")) || !l.mayBeHead(head.span, at) {
		return candidate{}, false
	}
	first := head.end
	body, ok := l.segment(first)
	if !ok || !isJWTHead(text[at:first]) {
		return candidate{}, false
	}
	end, ok := l.segment(body)
	if !ok || isExampleJWT(text[first+1:body]) {
		return candidate{}, false
	}
	l.work += body - at
	return candidate{kind: "jwt", span: span{at, end}, shown: []byte("eyJ"), secret: at}, true
}

// segment returns the end of the part that begins with a dot at a place.
func (l *textScan) segment(dot int) (end int, ok bool) {
	if dot >= len(l.text) || l.text[dot] != '.' {
		return dot, false
	}
	n := l.plain(wordDash, dot+1)
	return dot + 1 + n, n >= minSegment
}

// jwtHeads remembers where the head of a JWT may begin in a run.
type jwtHeads struct {
	span
	starts [4]lazyPlace // by how many digits of base64 are more than a multiple of four
}

// mayBeHead reports whether the head of a JWT that ends with a run may begin at a
// place. There may be an eyJ every few bytes, and decoding from each would take
// quadratic time. But a head is an object, and going back from its last bracket, only
// one bracket opens it, for each way in which the digits of base64 line up with bytes.
func (l *textScan) mayBeHead(head span, at int) bool {
	if l.jwt.span != head {
		l.jwt = jwtHeads{span: head}
	}
	over := (head.end - at) % 4
	p := &l.jwt.starts[over]
	if !p.known {
		*p = lazyPlace{-1, true}
		from := head.start + (head.end-head.start-over)%4
		l.work += head.end - from
		data, err := base64.RawURLEncoding.DecodeString(string(l.text[from:head.end]))
		if n := openingBracket(data); err == nil && n >= 0 && n%3 == 0 {
			p.at = from + n/3*4
		}
	}
	return p.at == at
}

// openingBracket returns where the object at the end of a text begins, or -1. It skips
// whole strings, in which brackets mean nothing.
func openingBracket(data []byte) int {
	data = bytes.TrimRight(data, " \t\r\n")
	depth, inString := 0, false
	for i := len(data) - 1; i >= 0; i-- {
		switch c := data[i]; {
		case c == '"' && (!inString || !isEscaped(data, i)):
			inString = !inString
		case inString:
		case c == '}':
			depth++
		case c == '{':
			if depth--; depth <= 0 {
				return i
			}
		}
		if depth == 0 && i == len(data)-1 {
			return -1 // it does not end with a bracket
		}
	}
	return -1
}

// isEscaped reports whether an odd number of backslashes comes before a place.
func isEscaped(data []byte, at int) bool {
	n := 0
	for at-1-n >= 0 && data[at-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

func isJWTHead(part []byte) bool {
	var head struct {
		Alg string `json:"alg"`
	}
	data, err := base64.RawURLEncoding.DecodeString(string(part))
	return err == nil && json.Unmarshal(data, &head) == nil && head.Alg != ""
}

// isExampleJWT recognises the claims of the token that every manual shows.
func isExampleJWT(part []byte) bool {
	claims, _ := base64.RawURLEncoding.DecodeString(string(part))
	return bytes.Contains(claims, []byte("1234567890")) || bytes.Contains(claims, []byte("John Doe"))
}

// matchAuthorization looks at Bearer and Basic. Their space ends the value after
// another one.
func matchAuthorization(l *textScan, at, n int) (candidate, bool) {
	text, from := l.text, at+n
	value := bytes.TrimRight(text[from:from+l.plain(bearerBytes, from)], ".")
	if !beginsAt(text, at) || isStandIn(value) {
		return candidate{}, false
	}
	kind := "bearer-token"
	if lower(text[at+1]) == 'a' { // basic
		kind = "basic-auth"
		if !isBasic(value) {
			return candidate{}, false
		}
	} else if len(value) < minRandom || !isRandom(value) {
		return candidate{}, false
	}
	return candidate{kind: kind, span: span{from, from + len(value)}, shown: text[at:from], secret: from}, true
}

// schemes are what may come before a token in the header Authorization, besides Bearer and
// Basic.
var schemes = []string{"token", "apikey", "api-key", "key", "oauth", "ssws", "splunk", "geniekey"}

// matchAuthorizationHeader looks at the name of the header. Its value is a token, perhaps after
// a scheme. What comes before the value has a limit, and the run of the value is remembered.
func matchAuthorizationHeader(l *textScan, at, n int) (candidate, bool) {
	text, i := l.text, at+n
	skip := func() {
		for i < len(text) && i-at < 40 && (text[i] == ' ' || text[i] == ':' || text[i] == '=' || text[i] == '\\' || isQuote(text[i])) {
			i++
		}
	}
	if skip(); i == at+n {
		return candidate{}, false
	}
	for _, scheme := range schemes {
		if after := i + len(scheme); hasFold(text[i:], scheme) && after < len(text) && text[after] == ' ' {
			i = after
			skip()
			break
		}
	}
	l.work += i - at
	run := l.run(tokenBytes, i)
	if run.end-i < minRandom || run.start > i {
		return candidate{}, false
	}
	if tail := l.bodyTail(run); tail.hasStandIn(i) || tail.hasScheme(i) || !tail.isRandom(i) {
		return candidate{}, false
	}
	return candidate{kind: "bearer-token", span: span{i, run.end}, shown: text[at:i], secret: i}, true
}

// matchOTP looks at the address of a one-time password, which has its secret. What it examines
// has a limit, and each address is examined once.
func matchOTP(l *textScan, at, n int) (candidate, bool) {
	const most = 300
	text := l.text[:min(len(l.text), at+n+most)]
	if at < l.otpEnd {
		return candidate{}, false
	}
	end := at + n
	for end < len(text) && text[end] > ' ' && !isQuote(text[end]) {
		end++
	}
	l.otpEnd = end
	l.work += end - at
	name := bytes.Index(text[at:end], []byte("secret="))
	if name < 0 {
		return candidate{}, false
	}
	from := at + name + len("secret=")
	value := text[from : from+base32Fold.run(text[from:end])]
	l.otpEnd = from + len(value)
	if len(value) < minRandom || isStandIn(value) || !isVaried(value) {
		return candidate{}, false
	}
	return candidate{kind: "otp-secret", span: span{from, from + len(value)}, shown: text[at : at+n], secret: from}, true
}

// isBasic reports whether a text is a user and a password in base64.
func isBasic(value []byte) bool {
	if len(value) < 8 {
		return false
	}
	data, err := base64.StdEncoding.DecodeString(string(value))
	user, password, ok := bytes.Cut(data, []byte(":"))
	if err != nil || !ok || !utf8.Valid(data) || bytes.ContainsFunc(data, func(r rune) bool { return r < ' ' }) {
		return false
	}
	return len(user) > 0 && !isWeak(user, password)
}

var webhooks = []string{
	"hooks.slack.com/services/", "hooks.slack.com/workflows/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/",
}

// matchWebhook looks at the address of a webhook, whose path is the secret. The
// dot of another address ends it.
func matchWebhook(l *textScan, at, n int) (candidate, bool) {
	text, from := l.text, at+n
	end := from + l.plain(pathBytes, from)
	path := text[from:end]
	last := path[bytes.LastIndexByte(path, '/')+1:]
	if len(path) < 30 || len(last) < 20 || isStandIn(path) || !isVaried(last) {
		return candidate{}, false
	}
	return candidate{kind: "webhook-url", span: span{from, end}, shown: text[at:from], secret: from}, true
}

// matchTelegram looks at the middle of a bot's token: a number, :AA, and 33 more.
// The colon of another one ends it.
func matchTelegram(l *textScan, at, _ int) (candidate, bool) {
	text, start := l.text, at
	for start > 0 && at-start < 12 && digits[text[start-1]] {
		start--
	}
	end := at + 1 + l.plain(wordDash, at+1)
	if at-start < 8 || at-start > 10 || end-at-1 != 35 || !beginsAt(text, start) || isStandIn(text[at+1:end]) || !isVaried(text[at+1:end]) {
		return candidate{}, false
	}
	return candidate{kind: "telegram-token", span: span{start, end}, secret: start}, true
}

// matchAzureSignature looks at the signature of a shared access signature: 32
// bytes in base64, percent-encoded. The equals sign of another one ends it.
func matchAzureSignature(l *textScan, at, n int) (candidate, bool) {
	text, from := l.text, at+n
	value := text[from : from+l.plain(percentBytes, from)]
	if len(value) < 43 || len(value) > 80 || !bytes.EqualFold(value[len(value)-3:], []byte("%3D")) || !beginsAt(text, at) {
		return candidate{}, false
	}
	return candidate{kind: "azure-sas", span: span{from, from + len(value)}, shown: []byte("sig="), secret: from}, true
}

// matchURL looks at the user and the password before a URL's host. The slash of another
// URL ends it, and its colon ends what comes before it.
func matchURL(l *textScan, at, n int) (candidate, bool) {
	text, from := l.text, at+n
	rest := text[from:min(len(text), from+maxValue)]
	rest = rest[:userBytes.run(rest)]
	l.work += len(rest)
	colon, at2 := bytes.IndexByte(rest, ':'), bytes.LastIndexByte(rest, '@')
	if at2 < 0 {
		return candidate{}, false
	}
	if colon < 0 || colon > at2 {
		colon = at2
	}
	user, host := rest[:colon], rest[at2+1:]
	password := rest[min(colon+1, at2):at2]
	start := from + at2 - len(password)
	switch {
	case isUserSecret(user): // and so is the password beside it
		start = from
	case len(password) < 4 || isWeak(user, password) || isStandIn(password) || isExampleHost(host, password):
		return candidate{}, false
	}
	scheme := at
	for scheme > 0 && at-scheme <= maxShown && wordDashDot[text[scheme-1]] {
		scheme--
	}
	return candidate{kind: "url-password", span: span{start, from + at2}, shown: text[scheme:start], secret: start}, true
}

// isUserSecret reports whether the user of a URL is the secret: the key in the address of
// Sentry is 32 hexadecimal digits.
func isUserSecret(user []byte) bool {
	return len(user) == 32 && hexDigits.has(user) && isRandom(user)
}

// isExampleHost reports whether a URL goes to one of the hosts that are reserved for manuals,
// or to one of the names that manuals use, with a password that may be made up, too.
func isExampleHost(rest, password []byte) bool {
	host := bytes.ToLower(rest[:wordDashDot.run(rest)])
	for _, name := range []string{"example.com", "example.org", "example.net", "example"} {
		if string(host) == name || bytes.HasSuffix(host, []byte("."+name)) {
			return true
		}
	}
	for _, name := range []string{"host", "hostname", "server"} {
		if string(host) == name {
			return !looksLikePassword(newTail(password, 0, len(password), new(int)), 0, true)
		}
	}
	return bytes.HasSuffix(host, []byte(".test")) || bytes.HasSuffix(host, []byte(".invalid"))
}

// weakPasswords are what tests, manuals and containers use as passwords. None of them
// protects anything.
var weakPasswords = []string{
	"pass", "password", "passwd", "passw0rd", "p@ssw0rd", "p@ssword", "pwd", "secret", "s3cret", "s3cr3t", "token", "test", "testing", "admin",
	"administrator", "root", "user", "username", "guest", "demo", "default", "changeit", "changethis", "letmein", "welcome",
	"qwerty", "abc", "foo", "bar", "baz", "foobar", "hello", "postgres", "mysql", "mongo", "redis", "rabbitmq",
	"minio", "minioadmin", "dev", "development", "local", "prod", "production", "apikey", "api_key", "key", "mypassword", "mysecret",
	"supersecret", "topsecret", "opensesame", "open sesame", "hunter", "none", "null", "undefined", "anonymous", "pserver:anoncvs", "string", "credentials", "value", "port",
}

// isWeak reports whether a password is the user's name, or a well-known one followed by
// at most a few digits or marks.
func isWeak(user, password []byte) bool {
	if bytes.Equal(bytes.ToLower(user), bytes.ToLower(password)) {
		return true
	}
	folded := bytes.ToLower(password)
	bare := bytes.TrimRight(folded, "0123456789!?@#$*._-")
	for _, weak := range weakPasswords {
		if string(folded) == weak || string(bare) == weak {
			return true
		}
	}
	return len(bare) == 0 || password[0] == '$' || password[0] == '%' && password[len(password)-1] == '%'
}
