// Package wiretest compares JSON and sends entries through a log, for the tests
// of the codecs.
package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// Diff returns how two JSON texts differ in value, or "" if they do not. Numbers
// are compared as they are written.
func Diff(want, got []byte) string {
	a, err := value(want)
	if err != nil {
		return fmt.Sprintf("want %s: %v", want, err)
	}
	b, err := value(got)
	if err != nil {
		return fmt.Sprintf("got %s: %v", got, err)
	}
	return cmp.Diff(a, b)
}

func value(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return v, d.Decode(&v)
}

// ThroughLog returns entries as a log gives them back.
func ThroughLog(entries []session.Entry) ([]session.Entry, error) {
	back := make([]session.Entry, len(entries))
	for i := range entries {
		line, err := entries[i].MarshalJSON() // as a log has it, without escapes for HTML
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte(line, '\n') >= 0 {
			return nil, fmt.Errorf("entry %d takes more than a line: %s", i, line)
		}
		if err := json.Unmarshal(line, &back[i]); err != nil {
			return nil, err
		}
	}
	return back, nil
}

// Samples returns the files of a kind of sample, or none where there are no
// samples: see CONTRIBUTING.
func Samples(pattern string) []string {
	dir := os.Getenv("COPPICE_SAMPLES")
	if dir == "" {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(dir, pattern))
	return files
}

// Counts are what a test counts on its own.
type Counts struct{ Messages, Calls, Results int }

// Count counts entries.
func Count(entries []session.Entry) Counts {
	var n Counts
	for i := range entries {
		if entries[i].Message == nil {
			continue
		}
		n.Messages++
		for _, c := range entries[i].Message.Content {
			if c.ToolUse != nil {
				n.Calls++
			}
			if c.ToolResult != nil {
				n.Results++
			}
		}
	}
	return n
}

// Ambiguous reports whether JSON readers disagree about a text: names that occur twice in an
// object, bytes that are not UTF-8, or halves of surrogate pairs.
func Ambiguous(raw []byte) bool {
	return !utf8.Valid(raw) || bytes.Contains(bytes.ToLower(raw), []byte(`\ud`)) || repeats(raw)
}

// repeats reports whether an object has two members of one name.
func repeats(raw []byte) bool {
	found := false
	_ = rawjson.Array(raw, func(value []byte) error {
		found = found || repeats(value)
		return nil
	})
	seen := map[string]bool{}
	_ = rawjson.Object(raw, func(key, value []byte) error {
		found = found || seen[string(key)] || repeats(value)
		seen[string(key)] = true
		return nil
	})
	return found
}
