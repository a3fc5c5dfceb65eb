package format_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/internal/jsonl"
	"github.com/coppice-dev/coppice/transcript/internal/loose"
)

// jsonlRead returns the member "a" of every object, and what was reported.
func jsonlRead(t *testing.T, text string) (got []string, problems []transcript.Problem) {
	t.Helper()
	format := &transcript.Format{Read: func(ctx context.Context, f *transcript.File, to transcript.Sink) error {
		for o, err := range jsonl.Objects(ctx, f, to) {
			if err != nil {
				return err
			}
			got = append(got, o.Get("a").Name())
		}
		return nil
	}}
	c, err := transcript.Collect(t.Context(), format, transcript.FileOf("x.jsonl", []byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	return got, c.Problems
}

func TestJSONLObjects(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text, want string
		problems         int
	}{
		{"plain", "{\"a\":1}\n{\"a\":2}\n", "1 2", 0},
		{"byte order mark, CRLF and empty lines", "\xef\xbb\xbf{\"a\":1}\r\n\r\n\n{\"a\":2}\r\n", "1 2", 0},
		{"torn end", "{\"a\":1}\n{\"a\":", "1", 0},
		{"whole last line without a line end", "{\"a\":1}\n{\"a\":2}", "1 2", 0},
		{"damage in the middle", "{\"a\":1}\n{\"a\":\n{\"a\":3}\n", "1 3", 1},
		{"two on a line", "{\"a\":1}{\"a\":2}\n{\"a\":3}\n", "1 2 3", 0},
		{"a torn piece and an object", "{\"a\":1}\n{\"a\":9,\"b\":\"to{\"a\":2}\n{\"a\":3}\n", "1 2 3", 1},
		{"an object and a piece that may grow", "{\"a\":1}{\"a\":2,", "1", 0},
		{"not an object", "[1]\n{\"a\":2}\n7\n", "2", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, problems := jsonlRead(t, tt.text)
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("objects are %q, want %q", s, tt.want)
			}
			if len(problems) != tt.problems {
				t.Errorf("problems are %v, want %d", problems, tt.problems)
			}
		})
	}
}

func TestJSONLObjectsKeepTheirMemory(t *testing.T) {
	t.Parallel()
	var kept []jsonl.Object
	f := transcript.FileOf("x", []byte(strings.Repeat("{\"a\":\"x\"}\n", 3)))
	for o, err := range jsonl.Objects(t.Context(), f, nil) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, o)
	}
	for i, o := range kept {
		if o.Get("a").Text() != "x" || o.No != int64(i+1) || o.Span.Len != 10 || o.Span.Pos != int64(10*i) {
			t.Errorf("object %d is %s at %+v, line %d", i, o.Value, o.Span, o.No)
		}
	}
}

func TestJSONLObjectsEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f := transcript.FileOf("x", []byte("{}\n{}\n"))
	for range jsonl.Objects(ctx, f, nil) {
		break
	}
	cancel()
	for _, err := range jsonl.Objects(ctx, f, nil) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v, want %v", err, context.Canceled)
		}
	}
}

// TestJSONLEachEnds: an error of the function and one of the file end the reading, and
// whoever reads learns of both.
func TestJSONLEachEnds(t *testing.T) {
	t.Parallel()
	f := transcript.FileOf("x", []byte("{}\n{}\n{}\n"))
	ctx, cancel := context.WithCancel(t.Context())
	enough := errors.New("enough")
	n := 0
	until := func(last int) func(jsonl.Object) error {
		n = 0
		return func(jsonl.Object) error {
			if n++; n == last {
				return enough
			}
			return nil
		}
	}
	if err := jsonl.Each(ctx, f, nil, until(2)); !errors.Is(err, enough) || n != 2 {
		t.Errorf("after %d objects the error is %v", n, err)
	}
	if err := jsonl.Each(ctx, f, nil, until(4)); err != nil || n != 3 {
		t.Errorf("after %d objects, all of them, the error is %v", n, err)
	}
	cancel()
	if err := jsonl.Each(ctx, f, nil, until(1)); !errors.Is(err, context.Canceled) || n != 0 {
		t.Errorf("after %d objects the error is %v, want %v", n, err, context.Canceled)
	}
}

// TestJSONLObjectsOfOneLineHaveTheirOwnPlaces: what is kept of an entry is its own
// object, not all of the line.
func TestJSONLObjectsOfOneLineHaveTheirOwnPlaces(t *testing.T) {
	t.Parallel()
	const text = "{\"a\":1}\n{\"a\":2}{\"a\":3}\n"
	var got []string
	for o, err := range jsonl.Objects(t.Context(), transcript.FileOf("x", []byte(text)), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, text[o.Span.Pos:o.Span.Pos+o.Span.Len])
	}
	if want := []string{"{\"a\":1}\n", "{\"a\":2}", "{\"a\":3}\n"}; !slices.Equal(got, want) {
		t.Errorf("the places hold %q, want %q", got, want)
	}
}

func TestJSONLHeadOfLinesThatRanTogether(t *testing.T) {
	t.Parallel()
	f := transcript.FileOf("x", []byte("{\"a\":1}{\"a\":2}\n{\"a\":3}\n"))
	if head := jsonl.Head(f, 3); len(head) != 3 || head[1].Get("a").Int() != 2 {
		t.Errorf("the head is %s", head)
	}
}

func TestJSONLHead(t *testing.T) {
	t.Parallel()
	f := transcript.FileOf("x", []byte("\xef\xbb\xbf{\"a\":1}\nnot JSON\n[]\n{\"a\":2}\n{\"a\":3}\n"))
	head := jsonl.Head(f, 2)
	if len(head) != 2 || head[0].Get("a").Int() != 1 || head[1].Get("a").Int() != 2 {
		t.Errorf("the head is %s", head)
	}
	var none []loose.Value
	if got := jsonl.Head(transcript.FileOf("x", nil), 2); len(got) != len(none) {
		t.Errorf("the head of nothing is %s", got)
	}
}

// TestJSONLHeadGoesOn: formats ask for one line, or for several, in any order.
func TestJSONLHeadGoesOn(t *testing.T) {
	t.Parallel()
	f := transcript.FileOf("x", []byte("\xef\xbb\xbf{\"a\":1}\n{\"a\n\n [2]\n {\"a\":2}\r\n{\"a\":3}"))
	for _, most := range []int{1, 20, 2, 1} {
		var got []string
		for _, v := range jsonl.Head(f, most) {
			got = append(got, v.Get("a").Name())
		}
		want := []string{"1", "2", "3"}
		if want = want[:min(most, 3)]; !slices.Equal(got, want) {
			t.Errorf("the first %d are %q, want %q", most, got, want)
		}
	}
}
