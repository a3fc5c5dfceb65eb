package chaingen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Spoil damages a log between two places, as disks, editors and careless copies do, and says
// what it did. The log itself stays as it is.
func Spoil(r *rand.Rand, log []byte, from, to int) (spoilt []byte, harm string) {
	data, rest := bytes.Clone(log[:to]), log[to:]
	if from >= to {
		return append(data, rest...), "nothing"
	}
	at := from + r.IntN(to-from)
	n := min(1+r.IntN(8000), to-at)
	if at+n == to && len(rest) > 0 { // or the next line would be joined to it
		at--
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	kinds := 8
	if len(lines) < 6 {
		kinds = 5
	}
	switch r.IntN(kinds) {
	case 0:
		harm = fmt.Sprintf("zeros from %d to %d", at, at+n)
		clear(data[at : at+n])
	case 1:
		harm = fmt.Sprintf("noise from %d to %d", at, at+n)
		for i := at; i < at+n; i++ {
			data[i] = byte(r.Uint32())
		}
	case 2:
		bit := r.IntN(8)
		harm = fmt.Sprintf("bit %d of byte %d flipped", bit, at)
		data[at] ^= 1 << bit
	case 3:
		harm = fmt.Sprintf("%d to %d cut out", at, at+n)
		data = append(data[:at:at], data[at+n:]...)
	case 4:
		n = min(512<<r.IntN(4), (to-from)/2)
		at = from + r.IntN(to-from-n)
		source := from + r.IntN(to-from-n)
		harm = fmt.Sprintf("%d to %d overwritten with %d to %d", at, at+n, source, source+n)
		copy(data[at:], log[source:source+n])
	case 5:
		i, j := 1+r.IntN(len(lines)-3), 1+r.IntN(len(lines)-3)
		harm = fmt.Sprintf("lines %d and %d swapped", i, j)
		lines[i], lines[j] = lines[j], lines[i]
		data = bytes.Join(lines, nil)
	case 6:
		i := 1 + r.IntN(len(lines)-2)
		j := min(i+1+r.IntN(3), len(lines)-1)
		harm = fmt.Sprintf("lines %d to %d lost", i, j)
		data = bytes.Join(slices.Delete(lines, i, j), nil)
	case 7:
		i := 1 + r.IntN(len(lines)-2)
		j := i + r.IntN(2)
		twice := [][]byte{lines[i], loseRest(lines[i])}
		there := r.IntN(2)
		harm = fmt.Sprintf("line %d comes twice; the rest of the %s is lost", i, []string{"second", "first"}[there])
		lines[i] = twice[there]
		data = bytes.Join(slices.Insert(lines, j, twice[1-there]), nil)
	}
	return append(data, rest...), harm
}

// loseRest returns a line of which only the head and the end are left.
func loseRest(line []byte) []byte {
	line = bytes.Clone(line)
	const lead = `"timestamp":"`
	if at := bytes.Index(line, []byte(lead)); at >= 0 {
		at += len(lead)
		if end := bytes.IndexByte(line[at:], ','); end >= 0 {
			rest := line[at+end+1 : max(at+end+1, len(line)-len("}\n"))]
			copy(rest, bytes.Repeat([]byte("#"), len(rest)))
		}
	}
	return line
}
