package index

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Text is searched by its tokens, and the tokens are ours, not SQLite's, because
// the words of code and of languages without spaces need more than white space:
//
//	readFile, read_file, read-file  read file   and, as a whole, readfile
//	src/main.go                     src main go
//	Crème BRÛLÉE                    creme brulee
//	中文字                          中文 文字 字
//	🚀                              🚀
//	--no-verify                     no verify   and, as an option, __noverify
//
// The parts of a word are side by side, so that a phrase of them finds it. The whole goes
// into a column of its own, so that it does not separate the parts from what follows.

const (
	// maxToken is the greatest length of a token in bytes. A longer run is not a word but a
	// hash, a key or base64; only this much of it is kept, in one piece.
	maxToken = 64
	// maxChain is how many runs, joined by - or _, are taken for one identifier.
	maxChain = 8
)

// token is a word, a part of one, or two characters of a language without
// spaces, folded.
type token struct {
	text       string
	start, end int  // where it is in the text
	whole      bool // it is an identifier whose parts come before it as tokens
}

// canonical returns text as it is searched: offsets of tokens and highlights
// refer to this form.
func canonical(text string) string {
	if isASCII(text) {
		return text
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if norm.NFC.IsNormalString(text) {
		return text
	}
	return norm.NFC.String(text)
}

// class is how the tokeniser treats a character.
type class uint8

const (
	separator class = iota
	lower           // a letter without case, or lower case
	upper
	digit
	mark  // combines with the letter before it
	dense // of a script without spaces between words
	symbol
	// Classes of bytes only:
	joiner   // a separator that joins what is around it: - and _
	notASCII // part of a character
)

// byteClasses are the classes of bytes.
var byteClasses = func() (classes [256]class) {
	for c := range classes {
		switch {
		case 'a' <= c && c <= 'z':
			classes[c] = lower
		case 'A' <= c && c <= 'Z':
			classes[c] = upper
		case '0' <= c && c <= '9':
			classes[c] = digit
		case c == '-' || c == '_':
			classes[c] = joiner
		case c >= utf8.RuneSelf:
			classes[c] = notASCII
		}
	}
	return classes
}()

// classOf must give the same answer for a character wherever it is.
func classOf(r rune) class {
	switch {
	case r < 0 || r >= utf8.RuneSelf:
		return otherClass(r)
	case byteClasses[r] == joiner:
		return separator
	}
	return byteClasses[r]
}

// otherClass is the class of a character that is not ASCII.
func otherClass(r rune) class {
	switch {
	case IsDense(r):
		return dense
	case unicode.IsUpper(r), unicode.IsTitle(r):
		return upper
	case unicode.IsLetter(r):
		return lower
	case unicode.IsNumber(r):
		return digit
	case unicode.IsMark(r) && !isVariation(r):
		return mark
	case unicode.Is(unicode.So, r) && r != utf8.RuneError:
		return symbol
	}
	return separator
}

// isVariation reports whether a character only says how an emoji is drawn.
func isVariation(r rune) bool { return 0xFE00 <= r && r <= 0xFE0F }

// denseRanges are the blocks of the scripts that are written without spaces, and
// of Korean, whose words carry their particles with them.
var denseRanges = [][2]rune{
	{0x0E00, 0x0EFF}, // Thai, Lao
	{0x1000, 0x109F}, // Myanmar
	{0x1100, 0x11FF}, // Hangul
	{0x1780, 0x17FF}, // Khmer
	{0x2E80, 0x2FDF},
	{0x3005, 0x3007},
	{0x3031, 0x318F}, // kana, bopomofo, Hangul
	{0x31A0, 0x31BF},
	{0x31F0, 0x31FF},
	{0x3400, 0x4DBF},
	{0x4E00, 0x9FFF},
	{0xA960, 0xA97F},
	{0xAC00, 0xD7FF},
	{0xF900, 0xFAFF},
	{0xFF66, 0xFF9F},
	{0x20000, 0x3FFFF},
}

// IsDense reports whether a letter is of a script whose texts are indexed by pairs of
// letters, not by words.
func IsDense(r rune) bool {
	if r < 0x0E00 {
		return false
	}
	for _, block := range denseRanges {
		if r < block[0] {
			return false
		}
		if r <= block[1] {
			return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r)
		}
	}
	return false
}

// scanner cuts a text into tokens.
type scanner struct {
	text string // canonical
	// lower is the text with the letters of ASCII in lower case, so that most tokens are
	// parts of it and need no memory of their own.
	lower string
	emit  func(token)
	// emitShort, if it is set, is called instead of emit for a word of at most maxShort
	// bytes whose shortKey is known.
	emitShort func(key uint64, word string)
	// open means that the last run of dense characters may continue beyond the text, as in a
	// query, so its last character is not a token by itself.
	open bool

	// chain is the runs joined by - or _, up to where the scanner is. A single run is not a
	// chain, unless it is an option.
	chain struct {
		runs, start, end int
		text             []byte
	}
	fold, joined []byte
	cuts         []int
}

// scan calls emit with the tokens of a canonical text, in order; a whole comes
// after its parts.
func scan(text string, emit func(token)) {
	s := scanner{text: text, emit: emit}
	s.run()
}

func (s *scanner) run() {
	s.lower = lowerASCII(s.text)
	for i := 0; i < len(s.text); {
		if i = s.easy(i); i == len(s.text) {
			break
		}
		switch byteClasses[s.text[i]] {
		case lower, upper, digit:
			i = s.word(i)
		case joiner:
			if s.chain.end != i {
				s.endChain()
			}
			i++
		case separator:
			s.endChain()
			i++
		default:
			i = s.other(i)
		}
	}
	s.endChain()
}

// easy emits words from i on as long as they are short, without parts, and joined to nothing,
// as most are, and returns where the first other one begins. It is only faster than word: the
// tokens are the same.
func (s *scanner) easy(i int) int {
	if s.chain.runs > 0 || i > 0 && s.text[i-1] == '-' {
		return i
	}
	for i+8 <= len(s.text) {
		x := load8(s.lower, i)
		n := plainBytes(x)
		if n == 8 || byteClasses[s.text[i+n]] != separator {
			return i
		}
		if n > 0 {
			key := x & (1<<(8*n) - 1)
			// In upper case are none, the first, or all.
			if cases := uppers(load8(s.text, i)) & (1<<(8*n) - 1); cases > 0x80 && cases != highBits&(1<<(8*n)-1) {
				return i
			}
			s.short(key, i, i+n)
		}
		i += n + 1
	}
	return i
}

// short emits a word that is short enough to be a number: see shortKey.
func (s *scanner) short(key uint64, start, end int) {
	if s.emitShort != nil {
		s.emitShort(key, s.lower[start:end])
		return
	}
	s.emit(token{text: s.lower[start:end], start: start, end: end})
}

// other handles a run that begins with a character outside ASCII, and returns where it ends.
func (s *scanner) other(i int) int {
	r, size := utf8.DecodeRuneInString(s.text[i:])
	switch otherClass(r) {
	case lower, upper, digit, mark:
		return s.foreign(i)
	case dense:
		s.endChain()
		return s.dense(i)
	case symbol:
		s.endChain()
		s.emit(token{text: s.text[i : i+size], start: i, end: i + size})
	default:
		s.endChain()
	}
	return i + size
}

func decode(s string, i int) (rune, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(s[i:])
}

// word emits the parts of the run of letters and digits that begins at i with one of
// ASCII, and returns where it ends.
func (s *scanner) word(i int) int {
	text, end, hasUpper := s.text, i, false
	for ; end < len(text); end++ {
		c := byteClasses[text[end]]
		if c == separator || c == joiner {
			break
		}
		if c == notASCII {
			return s.foreign(i)
		}
		hasUpper = hasUpper || c == upper
	}
	if end-i > maxToken {
		s.endChain()
		s.emit(token{text: s.lower[i : i+maxToken], start: i, end: end})
		return end
	}
	s.extendChain(i, end)
	folded := s.lower[i:end]
	if hasUpper {
		s.measure(i)
	}
	if !hasUpper || len(s.cuts) == 0 { // as most are
		s.emit(token{text: folded, start: i, end: end})
	} else {
		start := i
		for _, cut := range append(s.cuts, end) {
			s.emit(token{text: s.lower[start:cut], start: start, end: cut})
			start = cut
		}
		s.emit(token{text: folded, start: i, end: end, whole: true})
	}
	if s.chain.runs > 0 {
		s.chain.text = append(s.chain.text, folded...)
	}
	return end
}

// extendChain adds a run to the chain, or begins one if something may be joined to the
// run or it may be an option.
func (s *scanner) extendChain(i, end int) {
	if s.chain.runs > 0 && s.chain.end != i-1 {
		s.endChain()
	}
	if s.chain.runs == 0 {
		joins := end < len(s.text) && byteClasses[s.text[end]] == joiner
		if !joins && (i < 2 || s.text[i-1] != '-') {
			return
		}
		s.chain.start = i
	}
	s.chain.runs++
	s.chain.end = end
}

// foreign is word for a run that is not all ASCII.
func (s *scanner) foreign(i int) int {
	end := s.measure(i)
	if end-i > maxToken {
		s.endChain()
		if folded := s.folded(i, end); folded != "" {
			s.emit(token{text: folded, start: i, end: end})
		}
		return end
	}
	s.extendChain(i, end)
	s.parts(i, end)
	return end
}

// parts emits the parts of a word, and the word as a whole if there are several.
func (s *scanner) parts(i, end int) {
	s.joined = s.joined[:0]
	start := i
	for n := 0; n <= len(s.cuts); n++ {
		cut := end
		if n < len(s.cuts) {
			cut = s.cuts[n]
		}
		if part := s.folded(start, cut); part != "" {
			s.emit(token{text: part, start: start, end: cut})
			s.joined = append(s.joined, part...)
		}
		start = cut
	}
	if len(s.cuts) > 0 && len(s.joined) <= maxToken {
		s.emit(token{text: string(s.joined), start: i, end: end, whole: true})
	}
	if s.chain.runs > 0 {
		s.chain.text = append(s.chain.text, s.joined...)
	}
}

// measure finds the end of a run of letters and digits, and where in it a new
// part begins, which it leaves in cuts: readFile, HTTPServer.
func (s *scanner) measure(from int) (end int) {
	var before, last class // the two classes before the character looked at
	lastAt := from
	s.cuts = s.cuts[:0]
	for i := from; i < len(s.text); {
		r, size := decode(s.text, i)
		c := classOf(r)
		switch {
		case c == mark:
			i += size
			continue
		case c != lower && c != upper && c != digit:
			return i
		case c == upper && (last == lower || last == digit):
			s.cuts = append(s.cuts, i)
		case c == lower && last == upper && before == upper:
			s.cuts = append(s.cuts, lastAt)
		}
		before, last, lastAt = last, c, i
		i += size
	}
	return len(s.text)
}

// endChain emits the whole of an identifier of several runs.
func (s *scanner) endChain() {
	c := &s.chain
	if c.runs == 0 {
		return
	}
	if c.runs <= maxChain && len(c.text) > 0 && len(c.text) <= maxToken {
		if c.runs > 1 {
			s.emit(token{text: string(c.text), start: c.start, end: c.end, whole: true})
		}
		if s.isOption(c.start) {
			s.emit(token{text: optionMark + string(c.text), start: c.start - 2, end: c.end, whole: true})
		}
	}
	c.runs, c.end = 0, 0
	c.text = c.text[:0]
}

// optionMark is what the token of an option of a command begins with instead of its
// dashes. No word has an underscore, and no facet has two.
const optionMark = "__"

// isOption reports whether a word has two dashes before it, and nothing before them that
// they could belong to.
func (s *scanner) isOption(start int) bool {
	if start < 2 || s.text[start-2:start] != "--" {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(s.text[:start-2])
	return start == 2 || before != '-' && classOf(before) == separator
}

// dense emits the characters of a run two by two, and the last one by itself, so
// that any single character, too, begins a token.
func (s *scanner) dense(i int) int {
	prev := -1
	for i < len(s.text) {
		r, size := decode(s.text, i)
		if classOf(r) != dense {
			break
		}
		if prev >= 0 {
			s.emit(token{text: s.text[prev : i+size], start: prev, end: i + size})
		}
		prev = i
		i += size
	}
	if s.open && i == len(s.text) && prev > 0 && s.isDenseBefore(prev) {
		return i
	}
	s.emit(token{text: s.text[prev:i], start: prev, end: i})
	return i
}

func (s *scanner) isDenseBefore(i int) bool {
	r, _ := utf8.DecodeLastRuneInString(s.text[:i])
	return classOf(r) == dense
}

// folded returns a part of the text without case and accents, at most maxToken
// bytes of it.
func (s *scanner) folded(start, end int) string {
	s.fold = s.fold[:0]
	for i := start; i < end && len(s.fold) < maxToken; {
		r, size := decode(s.text, i)
		s.fold = appendFolded(s.fold, r)
		i += size
	}
	return string(s.fold)
}

// foldings are letters that people write with others when they cannot type them, and that
// Unicode does not decompose.
var foldings = map[rune]string{
	'ß': "ss", 'ẞ': "ss", 'æ': "ae", 'Æ': "ae", 'œ': "oe", 'Œ': "oe", 'ø': "o", 'Ø': "o",
	'ł': "l", 'Ł': "l", 'đ': "d", 'Đ': "d", 'ð': "d", 'Ð': "d", 'þ': "th", 'Þ': "th", 'ı': "i", 'ħ': "h", 'Ħ': "h",
}

func appendFolded(dst []byte, r rune) []byte {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(dst, byte(r))
	}
	if s, ok := foldings[r]; ok {
		return append(dst, s...)
	}
	var buf [utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], r)
	parts := norm.NFKD.Properties(buf[:n]).Decomposition()
	if parts == nil {
		parts = buf[:n]
	}
	for len(parts) > 0 {
		r, size := utf8.DecodeRune(parts)
		parts = parts[size:]
		// A compatibility form may decompose into characters that no word has; a token must
		// be one for SQLite, too.
		if !isAccent(r) && classOf(r) != separator {
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		}
	}
	return dst
}

// isAccent reports whether a mark may be left out of a word without making it
// another one: those of Latin, Greek and Cyrillic, and the points of Hebrew and
// Arabic, but not the vowels of Indian scripts.
func isAccent(r rune) bool {
	return 0x0300 <= r && r <= 0x036F || 0x0591 <= r && r <= 0x05C7 || 0x0610 <= r && r <= 0x061A ||
		0x064B <= r && r <= 0x065F || r == 0x0670
}

// foldTitle returns a title as it is sorted.
func foldTitle(title string) string {
	var b []byte
	for _, r := range canonical(clip(title, maxSortTitle)) {
		if classOf(r) == separator {
			b = utf8.AppendRune(b, r)
			continue
		}
		b = appendFolded(b, r)
	}
	return string(b)
}
