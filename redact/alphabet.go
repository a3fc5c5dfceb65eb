package redact

// alphabet is a set of bytes.
type alphabet [256]bool

// The alphabets of secrets.
var (
	digits       = newAlphabet("0-9")
	numberBytes  = newAlphabet("0-9eE.+-")
	hexDigits    = newAlphabet("0-9a-fA-F")
	hexDash      = newAlphabet("0-9a-fA-F-")
	dollarDigits = newAlphabet("a-z0-9$")
	base32       = newAlphabet("A-Z2-7")
	base32Fold   = newAlphabet("A-Za-z2-7")
	letterDigits = newAlphabet("A-Za-z0-9")
	lowerDigits  = newAlphabet("a-z0-9")
	word         = newAlphabet("A-Za-z0-9_")
	wordDash     = newAlphabet("A-Za-z0-9_-")
	wordDashDot  = newAlphabet("A-Za-z0-9_.-")
	base64Std    = newAlphabet("A-Za-z0-9+/=")
	base64Word   = newAlphabet("A-Za-z0-9+/=_-")
	bearerBytes  = newAlphabet("A-Za-z0-9._~+/=-")
	userBytes    = newAlphabet("A-Za-z0-9!$%&*+.:=@[]^_~-")    // of a URL's user, password and host
	bareBytes    = newAlphabet("A-Za-z0-9!#$%&*+./:=?@[^_{~-") // of a value without quotes
	bareNoAmp    = newAlphabet("A-Za-z0-9!#$%*+./:=?@[^_{~-")  // of one that is a parameter of a URL
	percentBytes = newAlphabet("A-Za-z0-9%")
	cookieBytes  = newAlphabet("A-Za-z0-9%_+/=-") // of a token in a cookie
	azureBytes   = newAlphabet("A-Za-z0-9_.~-")
	tokenBytes   = newAlphabet("A-Za-z0-9._~+/=%:!@#*$^-") // of a token that only its name gives away
	pathBytes    = newAlphabet("A-Za-z0-9_/-")
)

// newAlphabet returns a set of bytes and of ranges such as a-z. A dash at the end is a dash.
func newAlphabet(spec string) *alphabet {
	a := &alphabet{}
	for i := 0; i < len(spec); i++ {
		last := spec[i]
		if i+2 < len(spec) && spec[i+1] == '-' {
			last = spec[i+2]
		}
		for c := int(spec[i]); c <= int(last); c++ {
			a[c] = true
		}
		if last != spec[i] {
			i += 2
		}
	}
	return a
}

// run returns how many bytes at the beginning of a text are in the set.
func (a *alphabet) run(text []byte) int {
	for i, c := range text {
		if !a[c] {
			return i
		}
	}
	return len(text)
}

// has reports whether all of a text is in the set.
func (a *alphabet) has(text []byte) bool { return a.run(text) == len(text) }

// beginsAt reports whether something may begin at a place: what comes before is not part of
// it. The letter of an escape such as \n, in JSON within JSON, does not count as a letter.
func beginsAt(text []byte, at int) bool {
	return at == 0 || !word[text[at-1]] || isEscape(text, at)
}

// isAfterBase64 reports whether what comes before a place may be base64 that continues
// there. The plus sign that begins a line of a patch does not count.
func isAfterBase64(text []byte, at int) bool {
	switch {
	case at == 0:
		return false
	case text[at-1] == '+':
		return at > 1 && text[at-2] != '\n' && !isEscape(text, at-1)
	}
	return text[at-1] == '/'
}

// isEscape reports whether the bytes before a place are an escape sequence of a
// string: \n and the like, or \u and four digits.
func isEscape(text []byte, at int) bool {
	if at >= 2 && text[at-2] == '\\' {
		switch text[at-1] {
		case 'n', 'r', 't', 'b', 'f', 'v', '0':
			return true
		}
	}
	return at >= 6 && text[at-6] == '\\' && text[at-5] == 'u' && hexDigits.has(text[at-4:at])
}
