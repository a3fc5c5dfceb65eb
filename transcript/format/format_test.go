package format_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/transcript"
)

// TestMain makes the local time zone one that is the same everywhere: the times of some
// programs have none.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// env is a machine where nothing is set.
var env = transcript.Env{Home: "/home/u", Getenv: func(string) string { return "" }, GOOS: "linux"}

// value parses JSON, and keeps numbers as they are written.
func value(t *testing.T, raw []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
