package session

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A time is the same whether it is read alone or after others of its minute, and
// what is no time is none.
func TestTimesInARow(t *testing.T) {
	t.Parallel()
	var row decoder
	read := func(d *decoder, text string) string {
		var at time.Time
		d.r.Reset([]byte(`"` + text + `"`))
		ok := d.timestamp(&at)
		return fmt.Sprint(ok, at.Format(time.RFC3339Nano), at.Location())
	}
	for _, text := range []string{
		"2026-03-01T12:34:05.123Z", "2026-03-01T12:34:05.123Z", "2026-03-01T12:34:06Z", "2026-03-01T12:34:59.999999999Z",
		"2026-03-01T12:34:60Z", "2026-03-01T12:34:5Z", "2026-03-01T12:34:05.Z", "2026-03-01T12:34:05.1234567891Z",
		"2026-03-01T12:34:05,5Z", "2026-03-01T12:34:05.-5Z", "2026-03-01T12:34:+5Z", "2026-03-01T12:34:Z", "2026-03-01T12:34:05",
		"2026-03-01T12:34:05.5+02:00", "2026-03-01T12:34:05.5z", "2026-03-01T12:34:05ZZ", "2026-03-01T12:34:0５Z",
		"2026-03-01T12:35:05.5Z", "2026-03-01T12:35:07.000001Z", "2026-03-01 12:35:07.000001", "2026-02-30T12:35:07Z",
		"0000-01-01T00:00:00Z", "0000-01-01T00:00:01Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:01.5Z",
	} {
		if got, want := read(&row, text), read(&decoder{}, text); got != want {
			t.Errorf("%s: %s in a row, %s alone", text, got, want)
		}
	}
	if got := read(&decoder{}, strings.Repeat(`\u0000`, 17)+"05Z"); !strings.HasPrefix(got, "false") {
		t.Errorf("NULs are read as %s", got)
	}
}
