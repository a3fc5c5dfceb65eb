package home_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// BenchmarkWindows looks at a session of a gigabyte and a million entries as a face does:
//
//	go test ./home -run '^$' -bench Windows -benchtime 1x
func BenchmarkWindows(b *testing.B) {
	const entries = 1_000_000
	h := must[*home.Home](b)(home.Open(b.Context(), b.TempDir(), &home.Options{Create: true}))
	defer h.Close()
	log := must[store.Log](b)(h.Store().Create(b.Context(), longID(0), longSession(entries)))
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	debug.FreeOSMemory()
	before := resident()
	random := rand.New(rand.NewPCG(1, 2))
	rows := func(r home.RowsRequest) {
		r.Session = longID(0)
		must[*home.RowsResult](b)(h.Entries.Rows(b.Context(), r))
	}
	draw := func(r home.MapRequest) {
		r.Session = longID(0)
		must[*home.MapResult](b)(h.Entries.Map(b.Context(), r))
	}
	seek := func(ctx context.Context, r home.SeekRequest) {
		r.Session = longID(0)
		must[*home.SeekResult](b)(h.Entries.Seek(ctx, r))
	}
	unfolded := 0
	works := []struct {
		name  string
		times int
		do    func()
	}{
		{"first", 1, func() { rows(home.RowsRequest{From: -100}) }},
		{"rows", 1000, func() { rows(home.RowsRequest{From: random.IntN(entries / 2)}) }},
		{"rows-at", 200, func() { rows(home.RowsRequest{At: longID(1 + random.IntN(entries)), From: -50}) }},
		{"map-first", 1, func() { draw(home.MapRequest{}) }},
		{"map", 1000, func() { draw(home.MapRequest{From: random.IntN(100_000)}) }},
		{"map-at", 200, func() { draw(home.MapRequest{At: longID(1 + random.IntN(entries)), From: -50}) }},
		{"unfolded-first", 1, func() { draw(home.MapRequest{Fold: &unfolded}) }},
		{"unfolded", 1000, func() { draw(home.MapRequest{Fold: &unfolded, From: random.IntN(entries / 2)}) }},
		{"unfolded-at", 200, func() { draw(home.MapRequest{Fold: &unfolded, At: longID(1 + random.IntN(entries)), From: -50}) }},
		{"append", 100, func() {
			message := &session.MessageEntry{Role: session.RoleUser, Content: []session.Content{session.Text("more")}}
			must[*home.AppendResult](b)(h.Entries.Append(b.Context(), home.AppendRequest{Session: longID(0), Message: message}))
		}},
		{"seek-kind", 20, func() { seek(b.Context(), home.SeekRequest{Kind: "compaction", From: random.IntN(entries / 2)}) }},
		{"seek-text", 1, func() { seek(b.Context(), home.SeekRequest{Text: "Nowhere in it"}) }},
		{"seek-umlaut", 1, func() { seek(b.Context(), home.SeekRequest{Text: "nirgends, ÜBERHAUPT"}) }},
	}
	for b.Loop() {
		for _, w := range works {
			took := make([]time.Duration, w.times)
			after := make([]time.Duration, w.times)
			for i := range took {
				begin := time.Now()
				w.do()
				took[i] = time.Since(begin)
				if w.name == "append" {
					begin = time.Now()
					rows(home.RowsRequest{From: -100})
					draw(home.MapRequest{Fold: &unfolded, From: -100})
					after[i] = time.Since(begin)
				}
			}
			if w.name == "append" {
				took = after // what the next two windows took
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1000, "ms-"+w.name)
			if w.times > 1 {
				b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "ms-"+w.name+"-p99")
			}
		}
		b.ReportMetric(before, "MB-before")
		b.ReportMetric(resident(), "MB-busy")
		debug.FreeOSMemory()
		b.ReportMetric(resident(), "MB-idle")
	}
}

// resident returns how much memory this process has, in megabytes, where the system says it.
func resident() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
	kilobytes := 0
	_, _ = fmt.Sscan(string(rest), &kilobytes)
	return float64(kilobytes) / 1000
}

func longID(n int) string { return fmt.Sprintf("01a00000-0000-7000-8000-%012x", n) }

// longSession yields the lines of a session with n entries of about a kilobyte: turns of an agent,
// with branches, notes, compactions and labels.
func longSession(n int) iter.Seq2[[]byte, error] {
	output := strings.Repeat(`=== RUN TestList/nested\n    list_test.go:41: unexpected end of file, want ]\n`, 25)
	answer := strings.Repeat("I found it. `parseList` forgets the token that ends the inner list. ", 13)
	const when, ids = `"timestamp":"2026-01-01T00:00:00.000Z"`, `"id":"ID","parent_id":PARENT,`
	said := func(role, block string) string {
		return `"message",` + ids + when + `,"message":{"role":"` + role + `","content":[` + block + `]}}`
	}
	bodies := []string{
		said("user", `{"type":"text","text":{"content":"Please look at the parser again."}}`),
		said("assistant", `{"type":"text","text":{"content":"`+answer+`"}},{"type":"tool_use","tool_use":{"id":"c","name":"bash","input":{"command":"go test ./..."}}}`),
		said("tool", `{"type":"tool_result","tool_result":{"tool_use_id":"c","content":"`+output+`"}}`),
		`"custom",` + ids + when + `,"custom":{"custom_type":"coppice.usage","data":{"input":1234}}}`,
		said("assistant", `{"type":"text","text":{"content":"`+answer+`"}}`),
	}
	return func(yield func([]byte, error) bool) {
		if !yield(fmt.Appendf(nil, `{"type":"session","id":%q,"version":1,%s}`, longID(0), when), nil) {
			return
		}
		parent, trunk := 0, 0 // a branch is ten entries, and the next one goes on with the trunk
		for i := 1; i <= n; i++ {
			body := bodies[i%len(bodies)]
			switch {
			case i%5000 == 500:
				body = `"compaction",` + ids + when + `,"compaction":{"summary":"` + answer + `","first_kept_entry_id":"","tokens_before":1}}`
			case i%50_000 == 501:
				body = `"label",` + ids + when + `,"label":{"target_id":"` + longID(max(i-1, 1)) + `","label":"here"}}`
			}
			if i%1000 == 10 {
				parent = trunk
			} else if i%1000 == 0 {
				trunk = parent
			}
			above := "null"
			if parent > 0 {
				above = `"` + longID(parent) + `"`
			}
			line := strings.Replace(strings.Replace(body, "PARENT", above, 1), "ID", longID(i), 1)
			if !yield([]byte(`{"type":`+line), nil) {
				return
			}
			parent = i
		}
	}
}
