package transcript

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// FileFrom returns a file whose content comes from a reader, for tests.
func FileFrom(name string, open func() (io.ReadCloser, error)) *File {
	return &File{Path: name, open: open}
}

// TestLongLines: a line above the limit is cut, also if all of it was read at
// once.
func TestLongLines(t *testing.T) {
	t.Parallel()
	const limit = 100
	text := strings.Repeat("a", limit) + "\n" + strings.Repeat("b", limit+1) + "\n" + "c\n" + strings.Repeat("d", limit+1)
	for name, from := range map[string]io.Reader{"at once": strings.NewReader(text), "by bytes": iotest.OneByteReader(strings.NewReader(text))} {
		l := lineReader{from: from, max: limit}
		var got []string
		for {
			line, err := l.next()
			if err != nil {
				break
			}
			got = append(got, fmt.Sprintf("%c %d+%d %v", line.Data[0], line.Pos, line.Len, line.Cut))
		}
		want := []string{"a 0+101 false", "b 101+102 true", "c 203+2 false", "d 205+101 true"}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the lines are %q, want %q", name, got, want)
		}
	}
}
