package redact

import "bytes"

// standInWords are found in placeholders for secrets but not in secrets. Each has at
// least four letters, because shorter ones occur by chance.
var standInWords = []string{
	"xxxx", "your", "example", "placeholder", "redacted", "changeme", "change_me", "change-me", "dummy", "sample",
	"insert", "replace", "todo", "fake", "mock", "notreal", "not-real", "not_real", "****", "....", "----", "____",
	"<", ">", "&lt;", "&#x3c;", "${", "{{", "$(", "process.env", "os.environ", "getenv", "…", "•",
}

var standIns = newWordSet(standInWords)

// isVerb reports whether a text begins with a place for a value, as in fmt.Printf: %s. With a
// letter or a digit after it, it is part of a password.
func isVerb(text []byte) bool {
	return text[0] == '%' && len(text) > 1 && (text[1] == 's' || text[1] == 'v') && (len(text) == 2 || !letterDigits[text[2]])
}

// minSequence is how many letters or digits in order cannot be a coincidence.
const minSequence = 8

// isStandIn reports whether a value is a placeholder for a secret: xxxx, YOUR_API_KEY,
// <token>, ${VAR}, or letters and digits in order (abcd…, 4567…, and 90 too) or
// repeated.
func isStandIn(value []byte) bool { return lastStandIn(value) >= 0 }

// enoughDistinct is how many different bytes any random text has, unless it is short.
const enoughDistinct = 8

// isVaried reports whether a text has as many different bytes as chance gives.
func isVaried(value []byte) bool {
	return distinct(value) >= min(enoughDistinct, len(value)*2/3)
}

func distinct(value []byte) int {
	var seen [256]bool
	n := 0
	for _, c := range value {
		if !seen[c] {
			seen[c] = true
			n++
		}
	}
	return n
}

// isRandom reports whether a text looks random.
func isRandom(value []byte) bool {
	return newTail(value, 0, len(value), new(int)).isRandom(0)
}

// classOf returns 0 for digits, A for capitals, a for small letters and - for the
// rest, as characters.
func classOf(c byte) byte {
	switch {
	case digits[c]:
		return '0'
	case !letterDigits[c]:
		return '-'
	case c == lower(c):
		return 'a'
	}
	return 'A'
}

// isSlug reports whether a text is made of words and numbers.
func isSlug(value []byte) bool { return lastUnword(value) < 0 }

func isWordOrNumber(part []byte) bool { return len(part) == 0 || isWord(part) || isNumber(part) }

// isWord reports whether a text is letters with at most a few digits at the end, of one
// case except for the letters that begin a word: token, Token2, TOKEN, nextPageToken.
func isWord(part []byte) bool {
	part = bytes.TrimRight(part, "0123456789")
	turns := 0 // from small letters to capitals: where a word begins
	caps := 0
	for i, c := range part {
		if digits[c] {
			return false
		}
		if upper(c) == c {
			caps++
			if i > 0 && lower(part[i-1]) == part[i-1] {
				turns++
			}
		}
	}
	return caps == len(part) || caps <= 1+turns && turns <= len(part)/4
}

func isNumber(part []byte) bool { return digits.has(part) }

// isDigest reports whether a text calls itself a hash: sha256:…, as in the names of
// images and blobs, or sha512-….
func isDigest(value []byte) bool {
	if !hasFold(value, "sha") {
		return false
	}
	rest := value[len("sha"):]
	n := digits.run(rest[:min(len(rest), 9)]) // no hash has a longer number
	return n > 0 && n < len(rest) && (rest[n] == ':' || rest[n] == '-')
}

const lengthOfUUID = 36

// isUUID reports whether a text is a UUID, with or without a prefix of letters.
func isUUID(value []byte) bool {
	if len(value) < lengthOfUUID {
		return false
	}
	id := value[len(value)-lengthOfUUID:]
	for i, c := range id {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !hexDigits[c] {
			return false
		}
	}
	return true
}
