package all_test

import (
	"os"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	_ "github.com/coppice-dev/coppice/transcript/all"
)

// TestDocs holds docs/formats.md against the code.
func TestDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string][]string)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) == 8 && strings.HasPrefix(cells[1], " `") {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows[strings.Trim(cells[1], "`")] = cells
		}
	}
	tick := map[bool]string{true: "✓"}
	for _, f := range transcript.Formats() {
		row := rows[f.Name]
		delete(rows, f.Name)
		if row == nil {
			t.Errorf("docs/formats.md does not have %s", f.Name)
			continue
		}
		if row[3] != "✓" || row[4] != tick[f.Write != nil] || row[5] != tick[f.Places != nil] || row[2] == "" || row[6] == "" {
			t.Errorf("docs/formats.md: the row of %s is %q; written: %v, found: %v", f.Name, row, f.Write != nil, f.Places != nil)
		}
	}
	for name := range rows {
		t.Errorf("docs/formats.md has %s, and the code has not", name)
	}
}
