package file_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/storetest"
)

// A long scan reads ahead. It sees every line once, in order, those included that
// come while it reads, and may stop anywhere.
func TestReadAhead(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	log := storetest.MustCreate(t, st, "a", "line 0")
	const written = 3_000
	text := strings.Repeat("x", 900)
	var lines [][]byte
	for i := 1; i < written; i++ {
		if i%500 == 7 {
			lines = append(lines, fmt.Appendf(nil, "line %d %s", i, strings.Repeat(text, 400))) // longer than a chunk
			continue
		}
		lines = append(lines, fmt.Appendf(nil, "line %d %s", i, text))
	}
	end, err := log.End(t.Context())
	must(t, err)
	_, err = log.Append(t.Context(), end, lines...)
	must(t, err)
	for _, stop := range []int{1, 400, 2_000, 1 << 30} {
		n := 0
		for line, err := range log.Forward(t.Context(), 0) {
			must(t, err)
			if !strings.HasPrefix(string(line.Data)+" ", fmt.Sprintf("line %d ", n)) {
				t.Fatalf("line %d is %.20q", n, line.Data)
			}
			if n++; n == stop {
				break
			}
			if n == written-1 { // the last chunk has been read by now
				storetest.MustAppend(t, log, fmt.Sprintf("line %d", written))
			}
		}
		if stop > written && n != written+1 {
			t.Errorf("%d lines, want %d", n, written+1)
		}
	}
	must(t, log.Close())
	for _, err := range log.Forward(t.Context(), 0) {
		wantKind(t, err, store.ErrClosed)
	}
}
