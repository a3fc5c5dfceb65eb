package transcript_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/transcript"
)

func TestCollect(t *testing.T) {
	t.Parallel()
	text := lines(toyLine{Conv: "a", Title: "First"}, said("1", "one"), toyLine{Conv: "b"}, toyLine{ID: "2", Text: "two", Row: "row"},
		toyLine{Conv: "a", Title: "Last", Leaf: "1"}, said("3", "three")) + "garbage\n"
	got, err := transcript.Collect(context.Background(), toy(), transcript.FileOf("x", []byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Conversations) != 2 || got.Conversations[0].Title != "Last" || got.Conversations[0].Leaf != "1" || len(got.Conversations[0].Records) != 2 {
		t.Errorf("conversations: %+v", got.Conversations)
	}
	want := map[transcript.Became]int{{What: "head", Became: transcript.OnlyKept}: 3, {What: "line", Became: "message"}: 3}
	if diff := cmp.Diff(want, got.Counts); diff != "" {
		t.Error(diff)
	}
	if got.Kept != 3 || len(got.Problems) != 1 || got.Problems[0].Line != 7 {
		t.Errorf("%d bytes kept, problems %v", got.Kept, got.Problems)
	}
}

func TestCollectFails(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	format := &transcript.Format{Read: func(context.Context, *transcript.File, transcript.Sink) error { return boom }}
	if _, err := transcript.Collect(context.Background(), format, transcript.FileOf("x", nil)); !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
}

// TestCollectLearns: what a reader says later completes what it said first.
func TestCollectLearns(t *testing.T) {
	t.Parallel()
	now := time.Now()
	format := &transcript.Format{Read: func(_ context.Context, _ *transcript.File, to transcript.Sink) error {
		for _, c := range []transcript.Conversation{
			{ID: "a", Title: "T", Created: now},
			{ID: "a", Created: now.Add(time.Hour), CWD: "/x", Tags: []string{"t"}, Extra: map[string]any{"k": "v"}},
			{ID: "a", Parent: "p", Relation: "fork"},
		} {
			if err := to.Begin(c); err != nil {
				return err
			}
		}
		return nil
	}}
	got, err := transcript.Collect(context.Background(), format, transcript.FileOf("x", nil))
	if err != nil {
		t.Fatal(err)
	}
	want := transcript.Conversation{
		ID: "a", Title: "T", Created: now, CWD: "/x", Tags: []string{"t"}, Extra: map[string]any{"k": "v"}, Parent: "p", Relation: "fork",
	}
	if diff := cmp.Diff(want, got.Conversations[0].Conversation); diff != "" || strings.Contains(diff, "x") {
		t.Error(diff)
	}
}
