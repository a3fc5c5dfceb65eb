package format_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/format/openagent"
	"github.com/coppice-dev/coppice/transcript/format/penguin"
	"github.com/coppice-dev/coppice/transcript/format/picoclaw"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// A program that was killed while it wrote its one JSON file leaves the beginning of it.
func TestTornSessionIsReadAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		format *transcript.Format
		path   string
	}{
		"openagent": {openagent.Format(), openagentFixture},
		"penguin":   {penguin.Format(), first},
		"picoclaw":  {picoclaw.Format(), document},
	} {
		data, err := os.ReadFile(test.path)
		if err != nil {
			t.Fatal(err)
		}
		whole := transcripttest.Collect(t, test.format, transcript.FileOf("/d/x.json", data)).Conversations[0]
		torn := data[:bytes.LastIndex(data, []byte(`"role"`))+4]
		f := transcript.FileOf("/d/x.json", torn)
		if !test.format.Detect(f) {
			t.Errorf("%s: it is not recognised", name)
		}
		all, err := transcript.Collect(t.Context(), test.format, f)
		if err != nil || len(all.Problems) != 1 || len(all.Conversations) != 1 {
			t.Errorf("%s: %+v, %v", name, all, err)
			continue
		}
		got := all.Conversations[0]
		if n := len(got.Records); got.ID != whole.ID || n == 0 || n >= len(whole.Records) || got.Records[0].ID != whole.Records[0].ID {
			t.Errorf("%s: %s with %d of %d records", name, got.ID, n, len(whole.Records))
		}
	}
}
