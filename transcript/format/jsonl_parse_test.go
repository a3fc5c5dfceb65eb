package format_test

import (
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
)

func TestJSONLParseLineTooLong(t *testing.T) {
	t.Parallel()
	objects, problems := jsonl.Parse(transcript.Line{Data: []byte(`{"a":`), Cut: true})
	if len(objects) > 0 || len(problems) != 1 || !strings.Contains(problems[0].Reason, "longer than 256 MiB") {
		t.Errorf("a line that was cut is %v, problems %v", objects, problems)
	}
}
