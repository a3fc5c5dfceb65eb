package storetest

import (
	"testing"

	"github.com/coppice-dev/coppice/store"
)

// Torn is a store in which a test can leave what a writer that was killed leaves.
type Torn struct {
	store.Store
	// Leave puts bytes after the last line end of a log, as if a writer had been
	// killed after them.
	Leave func(name, tail string) error
}

// RunTorn checks that the bytes after the last line end are a line if they are
// one for store.IsLine, to every reader and every writer, and otherwise are not there. It is
// for stores that can be left in that state. open returns a new, empty store.
func RunTorn(t *testing.T, open func(t *testing.T) Torn) {
	for _, tail := range []string{`{"id":"b"}`, " {\"id\":\"käse\"} \r", `{}`, `{"id":"b"`, `{"id":"b"}x`, `"b"`, "\x00", `{"id":"` + "\x00" + `"}`, "{\"id\":\x00\x00x"} {
		t.Run(tail, func(t *testing.T) {
			s := open(t)
			before := MustCreate(t, s, "a", "0")
			if err := s.Leave("a", tail); err != nil {
				t.Fatal(err)
			}
			want := []string{"0"}
			if store.IsLine([]byte(tail)) {
				want = append(want, tail)
			}
			after := MustOpen(t, s, "a")
			for _, log := range []store.Log{before, after} {
				wantTorn(t, log, want...)
			}
			want = append(want, "1", "2")
			MustAppend(t, after, "1") // at what End says
			MustAppend(t, before, "2")
			for _, log := range []store.Log{before, after} {
				wantTorn(t, log, want...)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// wantTorn checks that a log holds these lines, read in any way.
func wantTorn(t *testing.T, log store.Log, want ...string) {
	t.Helper()
	wantLines(t, log, want...)
	end := MustEnd(t, log)
	if more := MustRead(t, log, end); len(more) > 0 {
		t.Fatalf("after the end is %q", more[0].Data)
	}
	var watched []string
	within(t, "watch", func() error {
		for line, err := range log.Watch(t.Context(), 0) {
			if watched = append(watched, string(line.Data)); err != nil || line.Next == end {
				return err
			}
		}
		return nil
	})
	wantTexts(t, "watched", watched, want)
}
