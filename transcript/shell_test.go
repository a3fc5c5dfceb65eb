package transcript_test

import (
	"testing"

	"github.com/coppice-dev/coppice/transcript"
)

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{
		"":                 "''",
		"telegram:123":     "telegram:123",
		"/a/b-c_d.e+f@g%h": "/a/b-c_d.e+f@g%h",
		"two words":        "'two words'",
		"it's":             `'it'\''s'`,
		"$(rm -rf ~)":      "'$(rm -rf ~)'",
		"a;b":              "'a;b'",
		"größe":            "'größe'",
	} {
		if got := transcript.ShellWord(in); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}
