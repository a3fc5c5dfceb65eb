package redact

import (
	"bytes"
	"slices"
)

// standInWords are found in what stands in for a secret and not in secrets. Each
// has at least four letters: shorter ones occur by chance.
var standInWords = []string{
	"xxxx", "your", "example", "placeholder", "redacted", "changeme", "change_me", "change-me", "dummy", "sample",
	"insert", "replace", "todo", "fake", "mock", "notreal", "not-real", "not_real", "****", "....", "----", "____",
	"<", ">", "${", "{{", "$(", "%s", "%v", "process.env", "os.environ", "getenv", "…", "•",
}

// isStandIn reports whether something stands in for a secret: xxxx, YOUR_API_KEY,
// <token>, ${VAR}, or letters and digits in their order.
func isStandIn(value []byte) bool {
	folded := bytes.ToLower(value)
	for _, w := range standInWords {
		if bytes.Contains(folded, []byte(w)) {
			return true
		}
	}
	return longestSequence(folded) >= 8
}

// longestSequence returns the length of the longest part in which each byte
// follows the one before (abcd, 4567, and 90 too) or repeats it.
func longestSequence(value []byte) int {
	longest, rising, same := 0, 1, 1
	for i := 1; i < len(value); i++ {
		before, c := value[i-1], value[i]
		if c == before+1 || before == '9' && c == '0' {
			rising++
		} else {
			rising = 1
		}
		if c == before {
			same++
		} else {
			same = 1
		}
		longest = max(longest, rising, same)
	}
	return longest
}

// isVaried reports whether a text has as many different bytes as chance gives.
func isVaried(value []byte) bool {
	return distinct(value) >= min(8, len(value)*2/3)
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

// mixed reports whether a text has both letters and digits, as nearly all that is
// random has and words have not.
func mixed(value []byte) bool {
	return slices.ContainsFunc(value, func(c byte) bool { return digits[c] }) &&
		slices.ContainsFunc(value, func(c byte) bool { return letterDigits[c] && !digits[c] })
}

// isRandom reports whether a text looks as if a machine had made it up.
func isRandom(value []byte) bool {
	return mixed(value) && isVaried(value) && !isSlug(value) && !isUUID(value) && changes(value)*5 >= len(value)
}

// changes returns how often a text goes from small letters to capitals, or from
// letters to digits or back. Names such as testP256PrivateKey change rarely; of
// what is random, nearly every other byte is of another class.
func changes(value []byte) int {
	n, before := 0, byte(0)
	for _, c := range value {
		class := classOf(c)
		if before != 0 && class != before && !(before == 'A' && class == 'a') {
			n++
		}
		before = class
	}
	return n
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

// isSlug reports whether a text is made of words and numbers: every part between
// dashes, dots and the like is one or the other.
func isSlug(value []byte) bool {
	for len(value) > 0 {
		n := letterDigits.run(value)
		if part := value[:n]; n > 0 && !isWord(part) && !isNumber(part) {
			return false
		}
		value = value[min(n+1, len(value)):]
	}
	return true
}

// isWord reports whether a text is letters with at most a few digits at the end,
// and of one case but for the letters that begin a word: token, Token2, TOKEN,
// nextPageToken.
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

// isDigest reports whether a text says itself that it is a hash: sha256:…, as the
// names of images and of blobs are, or sha512-….
func isDigest(value []byte) bool {
	rest, ok := bytes.CutPrefix(bytes.ToLower(value), []byte("sha"))
	n := digits.run(rest)
	return ok && n > 0 && n < len(rest) && (rest[n] == ':' || rest[n] == '-')
}

// isUUID reports whether a text is a UUID, with or without a prefix of letters.
func isUUID(value []byte) bool {
	if len(value) < 36 {
		return false
	}
	id := value[len(value)-36:]
	for i, c := range id {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !hexDigits[c] {
			return false
		}
	}
	return true
}
