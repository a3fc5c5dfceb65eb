package redact

const escapeByte = 0x1b

// maxColour limits the numbers in a sequence and the backslashes before it. Terminals
// know no longer ones.
const maxColour = 48

// colourAt returns the sequence whose bracket is at a place, if there is one that begins
// at from or later. Only colours and what erases the rest of a line count: others move
// things.
func colourAt(text []byte, from, bracket int) span {
	start := bracket - escapeBefore(text[from:bracket])
	if start == bracket {
		return span{}
	}
	end := bracket + 1
	for end < len(text) && end-bracket < maxColour && (digits[text[end]] || text[end] == ';' || text[end] == ':') {
		end++
	}
	if end == len(text) || text[end] != 'm' && text[end] != 'K' {
		return span{}
	}
	return span{start, end + 1}
}

// escapeBefore returns the length of the escape that ends a text, or 0: the byte itself, or
// \u001b, \x1b or \033 with any number of backslashes.
func escapeBefore(text []byte) int {
	n := len(text)
	if n == 0 {
		return 0
	}
	switch text[n-1] {
	case escapeByte:
		return 1
	case 'b', 'B', '3':
	default:
		return 0
	}
	for _, name := range []string{"u001b", "x1b", "033"} {
		at := n - len(name)
		if at <= 0 || text[at-1] != '\\' || !hasFold(text[at:], name) {
			continue
		}
		for most := maxColour; most > 0 && at > 0 && text[at-1] == '\\'; most-- {
			at--
		}
		return n - at
	}
	return 0
}
