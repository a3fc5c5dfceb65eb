package index_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/store/file"
)

// The corpus is written once for all benchmarks that want one of its size.
// go test ./index -bench . -benchtime 200x -timeout 30m
var benchMessages = flag.Int("messages", 1_000_000, "messages in the corpus of the search benchmarks")

const messagesPerSession = 100

// zipf draws words as people use them: a few of them nearly always.
type zipf struct {
	rand *rand.Rand
	dist *rand.Zipf
}

func newZipf(seed uint64) *zipf {
	r := rand.New(rand.NewPCG(seed, 1))
	return &zipf{r, rand.NewZipf(r, 1.1, 2, 50_000)}
}

func word(n uint64) string { return "w" + strconv.FormatUint(n, 36) }

// text returns about 60 to 300 bytes.
func (z *zipf) text(b []byte) []byte {
	for n := 15 + z.rand.IntN(60); n > 0; n-- {
		b = append(b, word(z.dist.Uint64())...)
		b = append(b, ' ')
	}
	return b
}

// writeCorpus writes sessions of messages into a directory.
func writeCorpus(tb testing.TB, dir string, sessions, messages int) {
	tb.Helper()
	z := newZipf(1)
	start := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	var buf []byte
	for s := range sessions {
		f, err := os.OpenFile(filepath.Join(dir, sessionName(s)+".jsonl"), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			tb.Fatal(err)
		}
		w := bufio.NewWriterSize(f, 1<<18)
		at := start.Add(time.Duration(s) * time.Hour)
		fmt.Fprintf(w, `{"type":"session","id":%q,"version":1,"timestamp":%q,"cwd":"/home/u/p%d","parent_session":"p%d"}`+"\n", sessionName(s), at.Format(time.RFC3339Nano), s%50, s%1000)
		parent := "null"
		for m := range messages {
			at = at.Add(20 * time.Second)
			id := fmt.Sprintf(`"%08x-%04x-7000-8000-%012x"`, s, m&0xffff, m)
			buf = z.text(buf[:0])
			role, extra := "user", ""
			if m%2 == 1 {
				role = "assistant"
				extra = fmt.Sprintf(`,"model":"model-%d","usage":{"input":%d,"output":%d},"response_id":"r%d-%d"`, s%5, 100+m, 10+m, s, m)
			}
			fmt.Fprintf(w, `{"type":"message","id":%s,"parent_id":%s,"timestamp":%q,"message":{"role":%q,"content":[{"type":"text","text":{"content":"%s"}}]%s}}`+"\n",
				id, parent, at.Format(time.RFC3339Nano), role, buf, extra)
			parent = id
		}
		if messages < messagesPerSession { // for the lists
			writeRemarks(w, s, parent, at)
		}
		if err := w.Flush(); err != nil {
			tb.Fatal(err)
		}
		if err := f.Close(); err != nil {
			tb.Fatal(err)
		}
		if err := os.Chtimes(f.Name(), at, at); err != nil {
			tb.Fatal(err)
		}
	}
}

// writeRemarks tags a session, one in fifty with the tag "mid", and pins one in a
// thousand.
func writeRemarks(w io.Writer, s int, parent string, at time.Time) {
	tags := `"all"`
	if s%50 == 9 {
		tags += `,"mid"`
	}
	fmt.Fprintf(w, `{"type":"custom","id":"tags","parent_id":%s,"timestamp":%q,"custom":{"custom_type":"coppice.tags","data":{"tags":[%s]}}}`+"\n",
		parent, at.Format(time.RFC3339Nano), tags)
	if s%1000 == 9 {
		fmt.Fprintf(w, `{"type":"custom","id":"pin","parent_id":"tags","timestamp":%q,"custom":{"custom_type":"coppice.pinned","data":{"pinned":true}}}`+"\n",
			at.Format(time.RFC3339Nano))
	}
}

func sessionName(n int) string { return fmt.Sprintf("s%07d", n) }

// corpus is a directory of sessions with an index that has caught up.
type corpus struct {
	dir    string
	st     *file.Store
	ix     *index.Index
	report index.Report
	rss    int64 // the most that the process had while indexing
	cpu    time.Duration
}

var (
	corporaMu sync.Mutex
	corpora   = map[[2]int]*corpus{}
)

func getCorpus(b *testing.B, sessions, messages int) *corpus {
	b.Helper()
	corporaMu.Lock()
	defer corporaMu.Unlock()
	key := [2]int{sessions, messages}
	if c := corpora[key]; c != nil {
		return c
	}
	dir, err := os.MkdirTemp("", "coppice-index-bench-")
	if err != nil {
		b.Fatal(err)
	}
	benchDirs = append(benchDirs, dir)
	writeCorpus(b, dir, sessions, messages)
	c := &corpus{dir: dir}
	if c.st, err = file.Open(dir, nil); err != nil {
		b.Fatal(err)
	}
	if c.ix, err = index.Open(context.Background(), c.st, filepath.Join(dir, ".coppice", "index.db"), nil); err != nil {
		b.Fatal(err)
	}
	start := cpuTime()
	c.report, err = c.ix.CatchUp(context.Background(), func(_, _ int64) { c.rss = max(c.rss, residentBytes()) })
	if err != nil {
		b.Fatal(err)
	}
	c.rss, c.cpu = max(c.rss, residentBytes()), cpuTime()-start
	corpora[key] = c
	return c
}

// benchDirs are removed by TestMain.
var benchDirs []string

func searchCorpus(b *testing.B) *corpus {
	return getCorpus(b, *benchMessages/messagesPerSession, messagesPerSession)
}

// residentBytes is how much memory the process has, or 0 where it cannot be told.
func residentBytes() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// cpuTime is how long the process has computed, or 0 where it cannot be told. On
// a machine that is busy with other things it says more than the clock.
func cpuTime() time.Duration {
	data, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// reportCPU reports the time computed for each operation since a start.
func reportCPU(b *testing.B, start time.Duration) {
	b.ReportMetric((cpuTime()-start).Seconds()*1000/float64(b.N), "cpu-ms/op")
}

// BenchmarkIndexing reads the whole corpus. Goal: at most 200 MB resident.
func BenchmarkIndexing(b *testing.B) {
	c := searchCorpus(b)
	for b.Loop() {
	}
	status, err := c.ix.Status(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(c.report.Entries)/c.report.Duration.Seconds(), "entries/s")
	b.ReportMetric(float64(c.report.Entries)/c.cpu.Seconds(), "entries/cpu-s")
	b.ReportMetric(float64(c.rss)/1e6, "MB-resident")
	b.ReportMetric(float64(status.Size)/1e6, "MB-index")
	b.ReportMetric(float64(c.report.Bytes)/1e6, "MB-logs")
}

// BenchmarkCatchUpUntouched confirms that nothing has changed in 10,000 sessions, of
// which none is marked. Goal: what it takes does not depend on how many there are.
func BenchmarkCatchUpUntouched(b *testing.B) {
	c := getCorpus(b, 10_000, 3)
	start := cpuTime()
	defer func() { reportCPU(b, start) }()
	for b.Loop() {
		report, err := c.ix.CatchUp(context.Background(), nil)
		if err != nil || report.Changed > 0 || report.Sessions > 0 {
			b.Fatalf("%+v, %v", report, err)
		}
	}
}

// BenchmarkSweep compares all of 10,000 sessions. Goal: well under 100 ms.
func BenchmarkSweep(b *testing.B) {
	c := getCorpus(b, 10_000, 3)
	start := cpuTime()
	defer func() { reportCPU(b, start) }()
	for b.Loop() {
		report, err := c.ix.Sweep(context.Background(), nil)
		if err != nil || report.Changed > 0 || report.Sessions != 10_000 {
			b.Fatalf("%+v, %v", report, err)
		}
	}
}

// BenchmarkStats adds up what 10,000 sessions cost, by everything. Goal: 50 ms for 6,000.
func BenchmarkStats(b *testing.B) {
	c := getCorpus(b, 10_000, 3)
	if _, err := c.ix.Stats(context.Background(), index.StatsOptions{}); err != nil { // makes the sums
		b.Fatal(err)
	}
	start := cpuTime()
	defer func() { reportCPU(b, start) }()
	for b.Loop() {
		if _, err := c.ix.Stats(context.Background(), index.StatsOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCatchUpOne reads one new message in one of 10,000 sessions.
func BenchmarkCatchUpOne(b *testing.B) {
	c := getCorpus(b, 10_000, 3)
	ctx := context.Background()
	log, err := c.st.Open(ctx, sessionName(77))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	z := newZipf(9)
	end, err := log.End(ctx)
	if err != nil {
		b.Fatal(err)
	}
	start := cpuTime()
	defer func() { reportCPU(b, start) }()
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		line := fmt.Appendf(nil, `{"type":"message","id":"n%d-%d","parent_id":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":{"content":"%s"}}]}}`,
			time.Now().UnixNano(), n, z.text(nil))
		if end, err = log.Append(ctx, end, line); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		report, err := c.ix.CatchUp(ctx, nil)
		if err != nil || report.Changed != 1 {
			b.Fatalf("%+v, %v", report, err)
		}
	}
}

// BenchmarkList lists 50 of 100,000 sessions. Goal: at most 1 ms.
func BenchmarkList(b *testing.B) {
	c := getCorpus(b, 100_000, 1)
	yes, no := true, false
	for _, filter := range []struct {
		name string
		index.ListOptions
	}{
		{"all", index.ListOptions{}},
		{"fold", index.ListOptions{Fold: true}},
		{"not archived", index.ListOptions{Archived: &no}},
		{"pinned", index.ListOptions{Pinned: &yes}},
		{"tag of all", index.ListOptions{Tags: []string{"all"}}},
		{"tag of 2,000", index.ListOptions{Tags: []string{"mid"}}},
		{"cwd of 2,000", index.ListOptions{CWD: "/home/u/p7"}},
		{"cwd of all, 50 below", index.ListOptions{CWD: "/home/u"}},
		{"parent of 100", index.ListOptions{Parent: "p7"}},
	} {
		for _, sort := range []index.Sort{index.ByUpdated, index.ByCreated, index.ByTitle, index.ByMessages, index.ByTokens, index.BySize} {
			o := filter.ListOptions
			o.Sort, o.Desc = sort, sort != index.ByTitle
			b.Run(filter.name+"/"+string(sort), func(b *testing.B) { benchList(b, c.ix, o) })
		}
	}
}

// benchList walks through the pages, and begins anew at the end.
func benchList(b *testing.B, ix *index.Index, o index.ListOptions) {
	durations := make([]time.Duration, 0, 1000)
	began := cpuTime()
	for b.Loop() {
		start := time.Now()
		page, next, err := ix.List(context.Background(), o)
		if err != nil || len(page) != 50 {
			b.Fatal(len(page), err)
		}
		durations = append(durations, time.Since(start))
		o.After = next
	}
	reportPercentiles(b, durations)
	reportCPU(b, began)
}

func reportPercentiles(b *testing.B, durations []time.Duration) {
	slices.Sort(durations)
	at := func(p float64) float64 { return durations[int(p*float64(len(durations)-1))].Seconds() * 1000 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.95), "p95-ms")
}

// BenchmarkSearch asks for the best 20 of a million messages. Goal: p95 of at
// most 50 ms for every query.
func BenchmarkSearch(b *testing.B) {
	c := searchCorpus(b)
	for _, q := range []struct {
		name  string
		query func(z *zipf) string
	}{
		{"rare", func(z *zipf) string { return word(30_000 + z.rand.Uint64N(20_000)) }},
		{"mid", func(z *zipf) string { return word(300 + z.rand.Uint64N(700)) }},
		{"common", func(z *zipf) string { return word(10 + z.rand.Uint64N(20)) }},
		{"stopword", func(z *zipf) string { return word(z.rand.Uint64N(3)) }},
		{"two words", func(z *zipf) string { return word(z.dist.Uint64()) + " " + word(z.dist.Uint64()) }},
		{"three words", func(z *zipf) string {
			return word(z.dist.Uint64()) + " " + word(z.dist.Uint64()) + " " + word(z.dist.Uint64())
		}},
		{"phrase of stopwords", func(z *zipf) string { return `"w0 w1"` }},
		{"phrase of common words", func(z *zipf) string {
			return fmt.Sprintf("%q", word(5+z.rand.Uint64N(20))+" "+word(5+z.rand.Uint64N(20)))
		}},
		{"or", func(z *zipf) string { return "w0 OR w1 OR " + word(z.rand.Uint64N(1000)) }},
		{"not", func(z *zipf) string { return "w0 -w1 -" + word(z.rand.Uint64N(50)) }},
		{"prefix", func(z *zipf) string { return "w1*" }},
		{"prefix of two", func(z *zipf) string { return word(36+z.rand.Uint64N(36*36)) + "*" }},
		{"role filter", func(z *zipf) string { return "w0 role:user" }},
		{"model filter", func(z *zipf) string { return "w1 model:model-3 role:assistant" }},
		{"session filter", func(z *zipf) string { return "w0 session:" + sessionName(z.rand.IntN(c.report.Sessions)) }},
		{"directory filter", func(z *zipf) string { return "w0 cwd:/home/u/p" + strconv.Itoa(z.rand.IntN(50)) }},
		{"time filter", func(z *zipf) string { return "w0 since:2025-02-01 until:2025-02-02" }},
		{"old times", func(z *zipf) string { return "w20 until:2025-02-01" }},
		{"live branch", func(z *zipf) string { return "w0 branch:live" }},
		{"filters only", func(z *zipf) string { return "role:user" }},
	} {
		b.Run(q.name, func(b *testing.B) {
			z := newZipf(5)
			durations := make([]time.Duration, 0, 1000)
			began := cpuTime()
			for b.Loop() {
				query := q.query(z)
				start := time.Now()
				if _, err := c.ix.Search(context.Background(), index.SearchOptions{Query: query}); err != nil {
					b.Fatal(query, err)
				}
				durations = append(durations, time.Since(start))
			}
			reportPercentiles(b, durations)
			reportCPU(b, began)
		})
	}
}
