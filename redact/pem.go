package redact

import (
	"bytes"
	"encoding/base64"
)

// minKeyBody is the minimum length of a private key's base64. That of an Ed25519 key is a
// little longer.
const minKeyBody = 44

// matchPrivateKey looks at -----BEGIN. The key ends with its END line or, if the text was cut
// off before that, with its base64.
func matchPrivateKey(l *textScan, at, n int) (candidate, bool) {
	text := l.text
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
	end, ok := l.keyBody(from)
	if !ok || isStandInKey(text[from:min(len(text), from+80)]) {
		return candidate{}, false
	}
	return candidate{kind: "private-key", span: span{at, end}, shown: text[at:from], secret: from}, true
}

// isStandInKey is isStandIn for the beginning of a key, which may be quoted.
func isStandInKey(begin []byte) bool {
	return isStandIn(bytes.ReplaceAll(begin, []byte("\n>"), []byte("\n")))
}

// keyWalk is the latest walk over the base64 of a key: which bytes it covered, where the key
// ends, and the last place from which the key is long enough.
type keyWalk struct {
	span
	keyEnd, enough int
}

// keyBody returns the end of a key whose base64 begins at a place, and whether it is long
// enough.
//
// A key that begins inside another ends where that one ends: the earlier walk passes the
// place, because a dash comes before it and no backslash. So no byte is walked over twice.
func (l *textScan) keyBody(from int) (end int, ok bool) {
	if from < l.key.start || from >= l.key.end {
		l.key = walkKey(l.text, from)
		l.work += l.key.end - from
	}
	return l.key.keyEnd, from <= l.key.enough
}

// walkKey walks over the base64 of a key. Between its digits may be line ends (escaped ones
// too), what is before each line in a listing, and headers such as DEK-Info.
func walkKey(text []byte, from int) keyWalk {
	var latest [minKeyBody]int // where the latest digits are
	count, end, i := 0, from, from
walk:
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '-' && bytes.HasPrefix(text[i:], []byte("-----END")):
			if n := bytes.Index(text[i+8:min(len(text), i+60)], []byte("-----")); n >= 0 {
				end = i + 8 + n + 5
			}
			break walk
		case c == '\\' && i+1 < len(text):
			i++ // the escaped letter is no digit
		case base64Std[c]:
			latest[count%minKeyBody] = i
			count++
			end = i + 1
		case c > ' ' && !keyBytes[c]:
			break walk
		}
	}
	enough := -1
	if count >= minKeyBody {
		enough = latest[count%minKeyBody]
	}
	return keyWalk{span{from, max(i, from+1)}, end, enough}
}

// keyBytes may occur between the digits of a key: they join lines of source code, or
// listings, quotations and patches put them before each line. The bytes of → and │ are
// among them.
var keyBytes = newAlphabet("\xe2\x86\x92\x94\x82" + `"'+,:()._>|#*-`)

// matchKeyEnd looks at -----END: a listing may begin in the middle of a key. It goes back
// over the lines before it. The dashes of another key end them.
func matchKeyEnd(l *textScan, at, n int) (candidate, bool) {
	text := l.text
	rest := text[at+n : min(len(text), at+n+60)]
	head := bytes.Index(rest, []byte("PRIVATE KEY-----"))
	if head < 0 || bytes.IndexByte(rest[:head], '\n') >= 0 {
		return candidate{}, false
	}
	start, count := l.linesBefore(at)
	if count < minKeyBody || isStandInKey(text[start:min(at, start+80)]) {
		return candidate{}, false
	}
	end := at + n + head + len("PRIVATE KEY-----")
	return candidate{kind: "private-key", span: span{start, end}, secret: start}, true
}

// minKeyLine is the minimum length of a line of a key, unless it is the last one. Lines have
// 64 or more digits of base64; this distinguishes them from words.
const minKeyLine = 40

// isKeyLine reports whether a run of base64 digits is a line of a key.
func isKeyLine(run []byte, last bool) bool { return len(run) >= minKeyLine || last }

// isLineNumber reports whether a run of base64 digits is the number of a line in a listing.
func isLineNumber(run []byte) bool { return len(run) <= 6 && digits.has(run) }

// linesBefore returns the start of the key lines that end before a place, and how many
// digits they have.
func (l *textScan) linesBefore(at int) (start, count int) {
	text, i := l.text, at
	start = at
	for {
		for i > 0 && !base64Std[text[i-1]] && (text[i-1] <= ' ' || keyBytes[text[i-1]] || text[i-1] == '\\') && !bytes.HasSuffix(text[:i], []byte("--")) {
			i--
		}
		end := i
		for i > 0 && base64Std[text[i-1]] {
			i--
		}
		run := text[i:end]
		if isEscape(text, i+1) && len(run) > 0 { // \nMII…
			run = run[1:]
		}
		l.work += end - i + 1
		switch {
		case i == end:
			return start, count
		case isKeyLine(run, count == 0):
			start, count = end-len(run), count+len(run)
		case len(run) > 0 && !isLineNumber(run):
			return start, count
		}
	}
}

// keyBodies are how keys begin after their first line: those of RSA, whose first bytes
// give a length, and those of other kinds, which always have the same.
var keyBodies = []string{
	"IBAAK", "IBADANBgkqhkiG9w0BAQEFAASC",
	"MHcCAQEEI", "MIGHAgEAMBMGByqGSM49", "MC4CAQAwBQYDK2VwBCIEI", "b3BlbnNzaC1rZXktdjEA",
}

// matchKeyBody looks at how the base64 of a key begins. What comes after it is examined
// once, whatever else in it looks like the beginning of a key.
func matchKeyBody(l *textScan, at, _ int) (candidate, bool) {
	text, start := l.text, at
	if text[at] == 'I' { // the length comes before it
		if start -= len("MIIEpA"); start < 0 || !bytes.HasPrefix(text[start:], []byte("MII")) {
			return candidate{}, false
		}
	}
	if start < l.bodyEnd || !beginsAt(text, start) || isAfterBase64(text, start) {
		return candidate{}, false
	}
	end, count := l.linesAfter(start)
	l.bodyEnd = end
	if count < minKeyBody || isStandInKey(text[start:min(len(text), start+80)]) {
		return candidate{}, false
	}
	return candidate{kind: "private-key", span: span{start, end}, shown: []byte("MII"), secret: start}, true
}

// linesAfter is linesBefore in the other direction. A short line belongs to the key only
// if it is padded.
func (l *textScan) linesAfter(from int) (end, count int) {
	text, i := l.text, from
	end = from
	for {
		start := i
		i += base64Std.run(text[i:])
		run := text[start:i]
		l.work += len(run) + 1
		switch {
		case len(run) == 0:
			return end, count
		case isKeyLine(run, bytes.HasSuffix(run, []byte("="))):
			end, count = i, count+len(run)
		case !isLineNumber(run):
			return end, count
		}
		for i < len(text) && !base64Std[text[i]] && (text[i] <= ' ' || keyBytes[text[i]] || text[i] == '\\') {
			if i++; text[i-1] == '\\' && i < len(text) {
				i++ // the escaped letter is no digit
			}
			l.work++
		}
	}
}

// encodedBegin is how the base64 of -----BEGIN begins. Kubernetes keeps keys like this.
const encodedBegin = "LS0tLS1CRUdJTi"

// matchEncodedKey looks at a whole key that is in base64 once more. Many anchors may be in
// one run, which is remembered, and only the first bytes after each are decoded.
func matchEncodedKey(l *textScan, at, n int) (candidate, bool) {
	text, end := l.text, l.run(base64Std, at).end
	head := make([]byte, 48)
	m, _ := base64.StdEncoding.Decode(head, text[at:min(end, at+64)]) // decodes the part of a run before the cut
	l.work += 64
	if end-at < 100 || !beginsAt(text, at) || !bytes.Contains(head[:m], []byte("PRIVATE KEY")) {
		return candidate{}, false
	}
	return candidate{kind: "private-key", span: span{at, end}, shown: text[at : at+n], secret: at}, true
}
