package render_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/render"
)

// The beginning of a long text is all that a line looks at.
func TestOneLineOfALongText(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("word ", 1000):                  "word word…",
		"\n\t " + strings.Repeat(" word", 1000):        "word word…",
		"e" + strings.Repeat("\u0301", 1000) + " word": "e" + strings.Repeat("\u0301", 1000) + " word",
		"two\r\nlines": "two lines",
		"short":        "short", "": "", " \n ": "",
	} {
		if got := render.OneLine(text, 10); got != want {
			t.Errorf("%.20q: %.40q, want %.40q", text, got, want)
		}
	}
	long := strings.Repeat("a b ", 1<<20)
	if n := testing.AllocsPerRun(2, func() { render.OneLine(long, 80) }); n > 50 {
		t.Errorf("%v allocations for the beginning of a text", n)
	}
}

func TestShortIDsMeanOneID(t *testing.T) {
	t.Parallel()
	const hash = "5357f8ac0f148d989c2953c11466b940"
	ids := []string{"0123456789a", "0123456789b", "0123456", "nightly-build-20", "nightly-build-20", "tokenizer-20", "tokenizer-2", hash}
	want := render.Names{
		"0123456789a": "0123456789a", "0123456789b": "0123456789b", "0123456": "0123456", "nightly-build-20": "nightly-buil",
		"tokenizer-20": "tokenizer-20", "tokenizer-2": "tokenizer-2", hash: "5357f8ac",
	}
	got := render.ShortIDs(ids)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if got.Name("other") != "other" || got.Shown("o\x1bther") != "o�ther" {
		t.Errorf("an id without a name is %q, %q", got.Name("other"), got.Shown("o\x1bther"))
	}
}

func TestNumbersAsPeopleSayThem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 20, 12, 0, 0, 0, time.Local)
	for got, want := range map[string]string{
		render.Counted(1, "entry", "entries"):       "1 entry",
		render.Counted(0, "entry", "entries"):       "0 entries",
		render.Counted(1234567, "entry", "entries"): "1,234,567 entries",
		render.Thousands(-1000):                     "-1,000",
		render.Bytes(999):                           "999 B",
		render.Bytes(1000):                          "1.0 kB",
		render.Bytes(340_000_000):                   "340 MB",
		render.Count(0):                             "-",
		render.Count(1234):                          "1.2k",
		render.Count(12_749):                        "12.7k",
		render.Count(99_960):                        "100k",
		render.Count(123_456):                       "123k",
		render.Count(170_900):                       "171k",
		render.Count(999_700):                       "1.0M",
		render.Count(52_206_525):                    "52.2M",
		render.Count(152_206_525):                   "152M",
		render.Count(1_040_000_000):                 "1.0B",
		render.Count(2_500_000_000_000):             "2.5T",
		render.Bytes(1_040_000_000):                 "1.0 GB",
		render.Bytes(99_960):                        "100 kB",
		render.Bytes(999_700):                       "1.0 MB",
		render.Count(1_234_567):                     "1.2M",
		render.Money(1200):                          "$0.0012",
		render.Money(0):                             "$0",
		render.Money(40):                            "<$0.0001",
		render.Money(3_400_000):                     "$3.40",
		render.Ago(now.Add(-5*time.Minute), now):    "5 min ago",
		render.Ago(now.Add(-3*time.Hour), now):      "3 h ago",
		render.Ago(now.AddDate(0, 0, -1), now):      "Thu 12:00",
		render.Ago(now.AddDate(0, -1, 0), now):      "20 Feb 12:00",
		render.Ago(now.AddDate(-1, 0, 0), now):      "20 Mar 2025",
		render.Ago(now.Add(time.Hour), now):         "20 Mar 2026 13:00",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The id of a revision is its entry's with something behind it. Both get short
// names, and each name means one entry.
func TestRevisionsHaveShortNames(t *testing.T) {
	t.Parallel()
	const entry, other = "0190a1b2-0000-7000-8000-00000000000a", "0190a1b2-0000-7000-8000-00000000000b"
	ids := []string{entry, entry + "~89abcdef", entry + "~89ab0000", entry + "~2", other, "zzzzzzzzzzzz", "a~b", "~", "tail~"}
	names := render.ShortEntryIDs(ids)
	want := render.Names{
		entry: "00000000000a", other: "00000000000b", "zzzzzzzzzzzz": "zzzzzzzzzzzz",
		entry + "~89abcdef": "00000000000a~89abc", entry + "~89ab0000": "00000000000a~89ab0", entry + "~2": "00000000000a~2",
		"a~b": "a~b", "~": "~", "tail~": "tail~",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	names = render.ShortEntryIDs([]string{entry, entry + "~89abcdef", "zzzzzzzzzzzz"})
	if a, b := names[entry], names[entry+"~89abcdef"]; a != "00000000" || b != "00000000~89ab" {
		t.Errorf("the entry is %q, its revision %q", a, b)
	}
	for _, ids := range [][]string{ids, {entry, entry + "~89abcdef"}, {entry + "~1", entry + "~2"}, {"ab~1", "abc~1", "ab", "abc"}} {
		for id, name := range render.ShortEntryIDs(ids) {
			found := render.EntriesNamed(name, ids)
			if !slices.Contains(ids, name) && !slices.Equal(found, []string{id}) {
				t.Errorf("%q, the name of %q, means %q", name, id, found)
			}
		}
	}
	for _, given := range []string{"0190a1b2", "00000000000a"} {
		if found := render.EntriesNamed(given, []string{entry + "~1", entry + "~2"}); len(found) != 2 {
			t.Errorf("without the entry itself %q means %q, not both revisions", given, found)
		}
	}
}
