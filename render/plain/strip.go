package plain

import "strings"

// Strip removes the sequences by which a program moves the cursor of a terminal, colours text or
// sets the title. Line ends and other control characters stay. A sequence that does not end
// reaches to the end of the text.
func Strip(text string) string {
	at := strings.IndexByte(text, escape)
	if at < 0 {
		return text
	}
	var out strings.Builder
	out.Grow(len(text))
	for ; at >= 0; at = strings.IndexByte(text, escape) {
		out.WriteString(text[:at])
		text = text[at+sequence(text[at:]):]
	}
	out.WriteString(text)
	return out.String()
}

const (
	bell   = 0x07
	cancel = 0x18 // ends a sequence at once
)

// sequence returns the length of the escape sequence at the beginning of a text (ECMA-48).
func sequence(text string) int {
	if len(text) == 1 {
		return 1
	}
	switch text[1] {
	case '[': // parameters and intermediate bytes, then a final byte
		return final(text, 2, '@')
	case ']', 'P', 'X', '^', '_': // a string, up to ESC \; a bell ends a title, too
		for i := 2; i < len(text); i++ {
			switch {
			case text[i] == bell && text[1] == ']', text[i] == cancel:
				return i + 1
			case text[i] == escape:
				if i+1 < len(text) && text[i+1] == '\\' {
					return i + 2
				}
				return i // another sequence begins
			}
		}
		return len(text)
	}
	return final(text, 1, '0')
}

// final returns the length of a sequence that ends with the first byte from first to ~. What
// cannot be in a sequence, such as a line end, is not part of it.
func final(text string, from int, first byte) int {
	for i := from; i < len(text); i++ {
		switch c := text[i]; {
		case c >= first && c <= '~', c == cancel:
			return i + 1
		case c < ' ' || c > '~':
			return i
		}
	}
	return len(text)
}
