package transcripttest

import (
	"testing"

	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
)

// Import imports files one after the other, and then once more, which must add nothing. It
// returns the ids of the resulting sessions, and how many entries each has.
func Import(t testing.TB, format *transcript.Format, paths ...string) map[string]int {
	t.Helper()
	return importFiles(t, format, Open, paths)
}

func importFiles(t testing.TB, format *transcript.Format, open opener, paths []string) map[string]int {
	t.Helper()
	im := &transcript.Importer{Store: memory.New(nil), Now: Now}
	sessions := make(map[string]int)
	for _, again := range []bool{false, true} {
		for _, path := range paths {
			report, err := im.Import(t.Context(), format, open(t, path))
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			for _, s := range report.Sessions {
				sessions[s.ID] += s.New
				if s.Revised > 0 {
					t.Errorf("%s: %d records were found changed in a file that did not change", path, s.Revised)
				}
			}
			if n := report.New(); again && n > 0 {
				t.Errorf("%s: importing it again added %d entries", path, n)
			}
		}
	}
	return sessions
}
