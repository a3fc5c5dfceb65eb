package index_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

// utterance is a message of a dialogue, whoever wrote it down.
type utterance struct{ role, text string }

// dialogues finds the dialogues in a JSON value: lists of objects that say who
// spoke and what, and objects with an instruction and its output.
func dialogues(v any, found func([]utterance)) {
	switch v := v.(type) {
	case []any:
		var said []utterance
		for _, elem := range v {
			if u, ok := utteranceOf(elem); ok {
				said = append(said, u)
			} else {
				dialogues(elem, found)
			}
		}
		if len(said) > 1 {
			found(said)
		}
	case map[string]any:
		in, _ := v["instruction"].(string)
		if out, _ := v["output"].(string); in != "" && out != "" {
			found([]utterance{{"user", in}, {"assistant", out}})
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			dialogues(v[key], found)
		}
	}
}

func utteranceOf(v any) (u utterance, ok bool) {
	m, _ := v.(map[string]any)
	text := func(names ...string) string {
		for _, name := range names {
			if s, _ := m[name].(string); s != "" {
				return s
			}
		}
		return ""
	}
	roles := map[string]string{"human": "user", "gpt": "assistant", "function_call": "assistant", "observation": "tool"}
	role := text("role", "from")
	u = utterance{cmp.Or(roles[role], role), text("content", "value", "text")}
	return u, u.role != "" && u.text != ""
}

// readDialogues reads all dialogues below a directory.
func readDialogues(b *testing.B, dir string) [][]utterance {
	b.Helper()
	var all [][]utterance
	paths := must[[]string](b)(filepath.Glob(filepath.Join(dir, "*", "*.json*")))
	for _, path := range paths {
		f := must[*os.File](b)(os.Open(path))
		dec := json.NewDecoder(f)
		for {
			var v any
			err := dec.Decode(&v)
			if err == io.EOF { //nolint:errorlint // it comes unwrapped
				break
			}
			if err != nil {
				b.Fatal(path, err)
			}
			dialogues(v, func(said []utterance) { all = append(all, said) })
		}
		f.Close()
	}
	return all
}

// vocabulary returns the words of dialogues, the most frequent first.
func vocabulary(all [][]utterance) []string {
	counts := make(map[string]int)
	for _, said := range all {
		for _, u := range said {
			parts, _ := index.Tokens(u.text)
			for _, part := range parts {
				counts[part]++
			}
		}
	}
	words := slices.Collect(maps.Keys(counts))
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	return words
}

// BenchmarkSearchCorpus asks for the best 20 hits in real dialogues, those below
// the directory COPPICE_CORPUS. Goal: p95 of at most 50 ms for every query.
func BenchmarkSearchCorpus(b *testing.B) {
	dir := os.Getenv("COPPICE_CORPUS")
	if dir == "" {
		return
	}
	all := readDialogues(b, dir)
	words := vocabulary(all)
	f := newFixture(b)
	messages := 0
	for i, said := range all {
		s := f.create(session.Header{CWD: fmt.Sprintf("/corpus/%d", i%20)})
		for _, u := range said {
			f.append(s, u.role, session.Text(u.text))
			messages++
		}
		s.Close()
		f.now = f.now.Add(time.Minute)
	}
	ix := f.open(b)
	b.Logf("%d dialogues, %d messages, %d words", len(all), messages, len(words))
	text := func(r *rand.Rand) []string {
		said := all[r.IntN(len(all))]
		parts, _ := index.Tokens(said[r.IntN(len(said))].text)
		return append(parts, "the", "of")
	}
	among := func(r *rand.Rand, from, to int) string { return words[from+r.IntN(to-from)] }
	for _, q := range []struct {
		name  string
		query func(r *rand.Rand) string
	}{
		{"rare", func(r *rand.Rand) string { return among(r, len(words)/2, len(words)) }},
		{"mid", func(r *rand.Rand) string { return among(r, 300, 2000) }},
		{"common", func(r *rand.Rand) string { return among(r, 10, 100) }},
		{"stopword", func(r *rand.Rand) string { return words[r.IntN(3)] }},
		{"two words of a text", func(r *rand.Rand) string {
			parts := text(r)
			return parts[r.IntN(len(parts))] + " " + parts[r.IntN(len(parts))]
		}},
		{"three common words", func(r *rand.Rand) string {
			return among(r, 0, 100) + " " + among(r, 0, 100) + " " + among(r, 0, 100)
		}},
		{"phrase of a text", func(r *rand.Rand) string {
			parts := text(r)
			at := r.IntN(len(parts) - 1)
			return fmt.Sprintf("%q", parts[at]+" "+parts[at+1])
		}},
		{"or", func(r *rand.Rand) string { return among(r, 0, 10) + " OR " + among(r, 0, 1000) }},
		{"not", func(r *rand.Rand) string { return words[0] + " -" + among(r, 1, 50) }},
		{"prefix", func(r *rand.Rand) string { return string([]rune(among(r, 0, 2000))[:1]) + "*" }},
		{"role filter", func(r *rand.Rand) string { return among(r, 0, 100) + " role:user" }},
		{"directory filter", func(r *rand.Rand) string { return fmt.Sprintf("%s cwd:/corpus/%d", among(r, 0, 100), r.IntN(20)) }},
		{"live branch", func(r *rand.Rand) string { return among(r, 0, 100) + " branch:live" }},
	} {
		b.Run(q.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(7, 7))
			durations := make([]time.Duration, 0, 1000)
			for b.Loop() {
				query := q.query(r)
				start := time.Now()
				if _, err := ix.Search(context.Background(), index.SearchOptions{Query: query}); err != nil {
					b.Fatal(query, err)
				}
				durations = append(durations, time.Since(start))
			}
			reportPercentiles(b, durations)
		})
	}
}
