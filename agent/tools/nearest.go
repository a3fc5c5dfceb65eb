package tools

import (
	"errors"
	"fmt"
	"strings"
)

const (
	maxNear = 40   // lines of a near match that are shown
	minDice = 0.5  // of a line that is shown as near
	maxSeek = 4096 // bytes of a line that are compared
)

// notFound returns an error that shows what in the file comes closest to the text:
// models mostly get white space or a word wrong.
func notFound(content, old string) error {
	have, want := trimmed(content), trimmed(old)
	for len(want) > 1 && want[0] == "" {
		want = want[1:]
	}
	for len(want) > 1 && want[len(want)-1] == "" {
		want = want[:len(want)-1]
	}
	lines := strings.Split(content, "\n")
	show := func(at int) string {
		n := min(len(want), maxNear, len(lines)-at)
		return strings.ReplaceAll(strings.Join(lines[at:at+n], "\n"), "\r", "")
	}
	if at := sameLines(have, want); at >= 0 {
		return fmt.Errorf("old_string was not found, but lines %d to %d differ from it only in white space. The file has:\n%s",
			at+1, at+len(want), show(at))
	}
	if at := likestLines(have, want); at >= 0 {
		return fmt.Errorf("old_string was not found. The closest text begins at line %d:\n%s", at+1, show(at))
	}
	return errors.New("old_string was not found, and nothing in the file is close to it: read the file again")
}

// trimmed returns lines with their white space normalised.
func trimmed(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return lines
}

// sameLines returns where all the lines occur in a row, or -1.
func sameLines(have, want []string) int {
	for at := range len(have) - len(want) + 1 {
		if countSame(have[at:], want) == len(want) {
			return at
		}
	}
	return -1
}

func countSame(have, want []string) int {
	n := 0
	for i := range min(len(have), len(want)) {
		if have[i] == want[i] {
			n++
		}
	}
	return n
}

// likestLines returns where the file is most similar to the wanted lines, or -1. It looks for
// lines that resemble the longest one: comparing all pairs takes too long in a large file.
func likestLines(have, want []string) int {
	longest := 0
	for i := range want {
		if len(want[i]) > len(want[longest]) {
			longest = i
		}
	}
	pairs := bigrams(want[longest])
	at, best := -1, 0.0
	for i, line := range have {
		score := dice(pairs, line)
		if score < minDice || i < longest {
			continue
		}
		score += float64(countSame(have[i-longest:], want))
		if score > best {
			at, best = i-longest, score
		}
	}
	return at
}

func bigrams(s string) map[string]int {
	pairs := make(map[string]int)
	s = s[:min(len(s), maxSeek)]
	for i := range len(s) - 1 {
		pairs[s[i:i+2]]++
	}
	return pairs
}

// dice returns how much of two lines is alike, from 0 to 1, by pairs of bytes.
func dice(pairs map[string]int, line string) float64 {
	line = line[:min(len(line), maxSeek)]
	if len(pairs) == 0 || len(line) < 2 {
		return 0
	}
	used := make(map[string]int)
	total, common := len(line)-1, 0
	for _, n := range pairs {
		total += n
	}
	for i := range len(line) - 1 {
		pair := line[i : i+2]
		if used[pair] < pairs[pair] {
			used[pair]++
			common++
		}
	}
	return 2 * float64(common) / float64(total)
}
