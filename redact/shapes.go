package redact

import (
	"bytes"
	"encoding/base64"
)

// This file has tokens whose beginning is not always the same.

// eachAfter returns a text followed by each of some bytes.
func eachAfter(text, bytes string) (all []string) {
	for i := range len(bytes) {
		all = append(all, text+bytes[i:i+1])
	}
	return all
}

// eachBefore returns each of some bytes followed by a text.
func eachBefore(bytes, text string) (all []string) {
	for i := range len(bytes) {
		all = append(all, bytes[i:i+1]+text)
	}
	return all
}

// matchShape returns a candidate if a place has a token: nothing that it could be part of
// is around it, and it looks random.
func matchShape(l *textScan, kind string, place span) (candidate, bool) {
	text := l.text
	if !beginsAt(text, place.start) || isAfterBase64(text, place.start) || place.end < len(text) && word[text[place.end]] {
		return candidate{}, false
	}
	value := text[place.start:place.end]
	l.work += len(value)
	if isStandIn(value) || !isVaried(value) || !isRandom(value) {
		return candidate{}, false
	}
	return candidate{kind: kind, span: place, secret: place.start}, true
}

// matchAzureSecret looks at the middle of a client secret: three bytes, a digit, Q~, and
// up to 34 more.
func matchAzureSecret(l *textScan, at, n int) (candidate, bool) {
	rest := l.text[at+n : min(len(l.text), at+n+36)]
	length := azureBytes.run(rest)
	l.work += length
	if at < 3 || !azureBytes.has(l.text[at-3:at]) || length < 31 || length > 34 {
		return candidate{}, false
	}
	return matchShape(l, "azure-client-secret", span{at - 3, at + n + length})
}

// matchTwilio looks at SK and 32 hexadecimal digits.
func matchTwilio(l *textScan, at, _ int) (candidate, bool) {
	const length = 34
	if at+length > len(l.text) || !hexDigits.has(l.text[at+2:at+length]) {
		return candidate{}, false
	}
	return matchShape(l, "twilio-key", span{at, at + length})
}

// matchAirtable looks at pat, 14 letters and digits, a dot, and 64 hexadecimal digits.
func matchAirtable(l *textScan, at, n int) (candidate, bool) {
	text, dot := l.text, at+n+14
	end := dot + 65
	if end > len(text) || text[dot] != '.' || !letterDigits.has(text[at+n:dot]) || !hexDigits.has(text[dot+1:end]) {
		return candidate{}, false
	}
	return matchShape(l, "airtable-token", span{at, end})
}

// matchMailgun looks at the name of the service. Its keys can be recognised only by their
// form, 32, 8 and 8 hexadecimal digits, so one counts if it comes soon after the name.
func matchMailgun(l *textScan, at, n int) (candidate, bool) {
	const near, first, length = 96, 32, 50
	text := l.text[at+n : min(len(l.text), at+n+near+length)]
	l.work += len(text)
	for dash := first; dash+length-first <= len(text); dash++ {
		if text[dash] != '-' || text[dash+9] != '-' {
			continue
		}
		key := text[dash-first : dash+length-first]
		if hexDigits.has(key[:first]) && hexDigits.has(key[first+1:first+9]) && hexDigits.has(key[first+10:]) {
			start := at + n + dash - first
			return matchShape(l, "mailgun-key", span{start, start + length})
		}
	}
	return candidate{}, false
}

// discordBegins are how the base64 of a number begins: the id of the bot that a token
// belongs to.
func discordBegins() (all []string) {
	seen := make(map[string]bool)
	for number := 100; number < 1000; number++ {
		digits := []byte{byte('0' + number/100), byte('0' + number/10%10), byte('0' + number%10)}
		if begin := base64.StdEncoding.EncodeToString(digits)[:minNeedle]; !seen[begin] {
			seen[begin] = true
			all = append(all, begin)
		}
	}
	return all
}

// matchDiscord looks at a number in base64. A bot's token has three parts with dots
// between them: the number, a time, and a signature.
func matchDiscord(l *textScan, at, _ int) (candidate, bool) {
	text := l.text[at:min(len(l.text), at+72)]
	dot := bytes.IndexByte(text, '.')
	if dot < 22 || dot > 27 || len(text) < dot+8 || text[dot+7] != '.' {
		return candidate{}, false
	}
	signature := wordDash.run(text[dot+8:])
	number, err := base64.RawStdEncoding.DecodeString(string(text[:dot]))
	l.work += dot + signature
	if err != nil || !digits.has(number) || !wordDash.has(text[dot+1:dot+7]) || signature < 27 || signature > 38 {
		return candidate{}, false
	}
	return matchShape(l, "discord-token", span{at, at + dot + 8 + signature})
}

// matchAuthMember looks at the member auth of Docker's settings and at _auth in those of
// npm: a user and a password in base64. A quote or an equals sign is part of the anchor and
// ends the value.
func matchAuthMember(l *textScan, at, n int) (candidate, bool) {
	text, i := l.text, at+n
	for i < len(text) && i-at < 24 && (isQuote(text[i]) || text[i] == '\\' || text[i] == ':' || text[i] == '=' || text[i] == ' ') {
		i++
	}
	end := i + l.plain(base64Std, i)
	value := text[i:end]
	if len(value) < 12 || isStandIn(value) || !isBasic(value) {
		return candidate{}, false
	}
	return candidate{kind: "basic-auth", span: span{i, end}, shown: text[at:i], secret: i}, true
}
