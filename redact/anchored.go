package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"
)

// minKeyBody is the least length of a private key's base64: that of an Ed25519
// key is a little longer.
const minKeyBody = 44

// matchPrivateKey looks at -----BEGIN. The key ends with its END line; where that
// is missing, because the text was cut off, with its base64.
func matchPrivateKey(text []byte, at, n int) (candidate, bool) {
	rest := text[at+n:]
	head := bytes.Index(rest[:min(len(rest), 60)], []byte("PRIVATE KEY"))
	if head < 0 || bytes.IndexByte(rest[:head], '\n') >= 0 {
		return candidate{}, false
	}
	line := bytes.Index(rest[head:min(len(rest), head+40)], []byte("-----"))
	if line < 0 {
		return candidate{}, false
	}
	from := at + n + head + line + 5
	body, end := keyBody(text[from:])
	if body < minKeyBody || isStandIn(text[from:min(len(text), from+80)]) {
		return candidate{}, false
	}
	end += from
	return candidate{Finding: Finding{
		Kind: "private-key", Start: at, End: end, Preview: preview(string(text[at:from]), text[from:end]),
	}}, true
}

// keyBody returns how many digits of base64 a key has, and where it ends. Between
// the digits may be line ends, also escaped ones, quotes that join lines of
// source code, and headers such as DEK-Info.
func keyBody(text []byte) (count, end int) {
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case bytes.HasPrefix(text[i:], []byte("-----END")):
			if close := bytes.Index(text[i+8:min(len(text), i+60)], []byte("-----")); close >= 0 {
				return count, i + 8 + close + 5
			}
			return count, end
		case c == '\\' && i+1 < len(text):
			i++ // the escaped letter is no digit
		case base64Std[c]:
			count++
			end = i + 1
		case c > ' ' && c < utf8.RuneSelf && !bytes.ContainsRune([]byte(`"'+,:-()._`), rune(c)), c >= utf8.RuneSelf:
			return count, end
		}
		i++
	}
	return count, end
}

// minSegment is the least length of a part of a JWT.
const minSegment = 10

// matchJWT looks at eyJ, which is what {" is in base64. A JWT has three parts; of
// the first two, the beginning tells.
func matchJWT(text []byte, at, _ int) (candidate, bool) {
	if !beginsAt(text, at) || isAfterBase64(text, at) {
		return candidate{}, false
	}
	head := wordDash.run(text[at:])
	body, ok := segment(text, at+head)
	if !ok || !bytes.HasPrefix(text[at+head+1:], []byte("eyJ")) || !isJWTHead(text[at:at+head]) {
		return candidate{}, false
	}
	end, ok := segment(text, body)
	if !ok || isExampleJWT(text[at+head+1:body]) {
		return candidate{}, false
	}
	return candidate{Finding: Finding{
		Kind: "jwt", Start: at, End: end, Preview: preview("eyJ", text[at:end]),
	}}, true
}

// segment returns the end of the part that begins with a dot at a place.
func segment(text []byte, dot int) (end int, ok bool) {
	if dot >= len(text) || text[dot] != '.' {
		return dot, false
	}
	n := wordDash.run(text[dot+1:])
	return dot + 1 + n, n >= minSegment
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

// matchAuthorization looks at Bearer and Basic.
func matchAuthorization(text []byte, at, n int) (candidate, bool) {
	from := at + n
	end := from + bearerBytes.run(text[from:])
	value := bytes.TrimRight(text[from:end], ".")
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
	return candidate{Finding: Finding{
		Kind: kind, Start: from, End: from + len(value), Preview: preview(string(text[at:from]), value),
	}}, true
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

// matchWebhook looks at the address of a webhook, whose path is the secret.
func matchWebhook(text []byte, at, n int) (candidate, bool) {
	from := at + n
	path := text[from:]
	end := 0
	for end < len(path) && (wordDash[path[end]] || path[end] == '/') {
		end++
	}
	path = path[:end]
	last := path[bytes.LastIndexByte(path, '/')+1:]
	if len(path) < 30 || len(last) < 20 || isStandIn(path) || !isVaried(last) {
		return candidate{}, false
	}
	return candidate{Finding: Finding{
		Kind: "webhook-url", Start: from, End: from + end, Preview: preview(string(text[at:from]), path),
	}}, true
}

// matchTelegram looks at the middle of a bot's token: a number, :AA, and 33 more.
func matchTelegram(text []byte, at, _ int) (candidate, bool) {
	start := at
	for start > 0 && at-start < 12 && digits[text[start-1]] {
		start--
	}
	end := at + 1 + wordDash.run(text[at+1:])
	if at-start < 8 || at-start > 10 || end-at-1 != 35 || !beginsAt(text, start) || isStandIn(text[at+1:end]) || !isVaried(text[at+1:end]) {
		return candidate{}, false
	}
	return candidate{Finding: Finding{
		Kind: "telegram-token", Start: start, End: end, Preview: preview("", text[start:end]),
	}}, true
}

// matchAzureSignature looks at the signature of a shared access signature: 32
// bytes in base64, percent-encoded.
func matchAzureSignature(text []byte, at, n int) (candidate, bool) {
	from := at + n
	value := text[from : from+percentBytes.run(text[from:])]
	folded := bytes.ToUpper(value)
	if len(value) < 43 || len(value) > 80 || !bytes.HasSuffix(folded, []byte("%3D")) || !beginsAt(text, at) {
		return candidate{}, false
	}
	return candidate{Finding: Finding{
		Kind: "azure-sas", Start: from, End: from + len(value), Preview: preview("sig=", value),
	}}, true
}

// matchURL looks at the user and the password before a URL's host.
func matchURL(text []byte, at, n int) (candidate, bool) {
	from := at + n
	rest := text[from:min(len(text), from+512)]
	at2, colon := -1, -1
	for i, c := range rest {
		if !userBytes[c] {
			break
		}
		if c == ':' && colon < 0 {
			colon = i
		}
		if c == '@' {
			at2 = i
		}
	}
	if colon < 0 || at2 < colon {
		return candidate{}, false
	}
	user, password := rest[:colon], rest[colon+1:at2]
	host := rest[at2+1:]
	if len(password) < 4 || isWeak(user, password) || isStandIn(password) || isExampleHost(host) {
		return candidate{}, false
	}
	start := from + colon + 1
	scheme := at
	for scheme > 0 && wordDashDot[text[scheme-1]] {
		scheme--
	}
	return candidate{Finding: Finding{
		Kind: "url-password", Start: start, End: from + at2, Preview: preview(string(text[scheme:start]), password),
	}}, true
}

// isExampleHost reports whether a URL goes to one of the hosts that are reserved
// for manuals.
func isExampleHost(rest []byte) bool {
	host := bytes.ToLower(rest[:wordDashDot.run(rest)])
	for _, name := range []string{"example.com", "example.org", "example.net", "example", "host", "hostname", "server"} {
		if string(host) == name || bytes.HasSuffix(host, []byte("."+name)) {
			return true
		}
	}
	return bytes.HasSuffix(host, []byte(".test")) || bytes.HasSuffix(host, []byte(".invalid"))
}

// weakPasswords are what tests, manuals and containers use where a password must
// be. None of them protects anything.
var weakPasswords = []string{
	"pass", "password", "passwd", "passw0rd", "p@ssw0rd", "p@ssword", "pwd", "secret", "s3cret", "s3cr3t", "token", "test", "testing", "admin",
	"administrator", "root", "user", "username", "guest", "demo", "default", "changeit", "changethis", "letmein", "welcome",
	"qwerty", "abc", "foo", "bar", "baz", "foobar", "hello", "postgres", "mysql", "mongo", "redis", "rabbitmq",
	"minio", "minioadmin", "dev", "development", "local", "prod", "production", "apikey", "api_key", "key", "mypassword", "mysecret",
	"supersecret", "topsecret", "opensesame", "open sesame", "hunter", "none", "null", "undefined", "anonymous", "pserver:anoncvs", "string", "credentials", "value", "port",
}

// isWeak reports whether a password is the user's name, or a well-known one with
// at most a few digits or marks after it.
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
