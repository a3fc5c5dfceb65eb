package main

import (
	"strings"
	"testing"
)

func TestTour(t *testing.T) {
	var out strings.Builder
	if err := tour(&out, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  user       Why does TestParse fail?  [where it began]\n  ├─ assistant  Let me run it. (calls bash: go test -run TestParse)\n  │  tool ",
		"  └─ user       Do not run anything. Read the code.\n",
		"assistant  Fixed: the loop now ends at <=.  <- leaf\n",
		"A model would now be sent:\n\n  summary    TestParse fails because of an off-by-one.\n  user       Do not run anything.",
		"And with the compaction undone:\n\n  user       Why does TestParse fail?\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks\n%s\nin\n%s", want, out.String())
		}
	}
}
