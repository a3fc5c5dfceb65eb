package plain

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"strings"
)

const escape = 0x1b

// mark begins the styles of this process. The author of a session cannot know the
// number in it, so an escape sequence that has it is ours. As it looks like a style to
// programs that measure and wrap text, painted text can be measured.
var mark = "\x1b[" + secret() + ";"

func secret() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it cannot fail
	return strconv.FormatUint(binary.LittleEndian.Uint64(b[:])>>1, 10)
}

// Paint gives text a style: the parameters of the ANSI sequence, such as "31" for
// red or "1;31" for bold red. A [Writer] recognises the style by a mark that only this
// process can make; anywhere else the text is not fit for a terminal.
func Paint(style, text string) string {
	if style == "" || text == "" {
		return text
	}
	return mark + style + "m" + text + mark + "0m"
}

// Again prepares what a [Writer] has written, and so has cleaned, for another one: its styles are
// kept.
func Again(written string) string { return strings.ReplaceAll(written, "\x1b[", mark) }

// maxStyle is the length of the longest style that is understood.
const maxStyle = 64

// style reads the style at the beginning of src, and returns what to write for it and
// its length: 0 if it is not one of ours. more means that src ends before that is
// certain.
func (c *cleaner) style(src []byte) (written []byte, n int, more bool) {
	ours := min(len(src), len(mark))
	if string(src[:ours]) != mark[:ours] {
		return nil, 0, false
	}
	if ours < len(mark) {
		return nil, 0, true
	}
	for i := ours; i < len(src) && i < maxStyle; i++ {
		switch b := src[i]; {
		case b == 'm' && c.unmark:
			return append([]byte("\x1b["), src[ours:i+1]...), i + 1, false
		case b == 'm':
			return src[:i+1], i + 1, false
		case b != ';' && b != ':' && (b < '0' || b > '9'):
			return nil, 0, false
		}
	}
	return nil, 0, len(src) < maxStyle
}
