package format_test

import (
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/place"
)

func TestPlaceMatches(t *testing.T) {
	tests := []struct {
		name  string
		match func(string) bool
		file  string
		want  bool
	}{
		{"a name", place.Named("wire.jsonl"), "wire.jsonl", true},
		{"a name in a directory", place.Named("wire.jsonl"), "a/b/wire.jsonl", true},
		{"a part of a name", place.Named("wire.jsonl"), "a/hardwire.jsonl", false},
		{"a pattern", place.Named("T-*.json"), "a/T-1.json", true},
		{"one of several patterns", place.Named("*.json", "*.jsonl"), "a.jsonl", true},
		{"none of them", place.Named("*.json", "*.jsonl"), "a.json.gz", false},
		{"below a directory", place.Below("chats", "*.jsonl"), "p/chats/q/a.jsonl", true},
		{"in the directory itself", place.Below("chats", "*.jsonl"), "chats/a.jsonl", true},
		{"elsewhere", place.Below("chats", "*.jsonl"), "p/mychats/a.jsonl", false},
		{"another file below it", place.Below("chats", "*.jsonl"), "chats/a.txt", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.match(tt.file); got != tt.want {
				t.Errorf("%s matches: %t", tt.file, got)
			}
		})
	}
}

func TestPlaceConfig(t *testing.T) {
	set := func(name string) string {
		return map[string]string{"XDG_CONFIG_HOME": "/cfg", "APPDATA": "/roaming"}[name]
	}
	for goos, want := range map[string]string{
		"linux": "/cfg", "darwin": "/home/u/Library/Application Support", "windows": "/roaming",
	} {
		if got := place.Config(transcript.Env{Home: "/home/u", GOOS: goos, Getenv: set}); got != want {
			t.Errorf("%s: %s", goos, got)
		}
	}
	if got := place.Config(env); got != "/home/u/.config" {
		t.Errorf("nothing is set: %s", got)
	}
}
