package jsonl

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
)

func TestParseLineTooLong(t *testing.T) {
	v, reason := parse(transcript.Line{Data: []byte(`{"a":`), Cut: true})
	if v != nil || !strings.Contains(reason, "longer than 256 MiB") {
		t.Errorf("a line that was cut is %s, reason %q", v, reason)
	}
}
