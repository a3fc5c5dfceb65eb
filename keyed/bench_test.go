package keyed_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/keyed"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

var newMessages = strings.Repeat("something that a user might say. ", 8)

// heart returns appends to a session, without a manager around it.
func heart(b *testing.B, dir, id string) func() {
	b.Helper()
	st, err := file.Open(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { st.Close() })
	s, err := session.Create(context.Background(), st, session.Header{ID: id}, nil)
	if err != nil {
		b.Fatal(err)
	}
	return func() {
		if _, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(newMessages)}); err != nil {
			b.Error(err)
		}
	}
}

// beside measures two pieces of work in turns, and reports how much dearer the
// second is.
func beside(b *testing.B, raw, ours func()) {
	b.Helper()
	const each = 20
	var rawTime, oursTime time.Duration
	raw()
	ours()
	b.ResetTimer()
	for range b.N {
		start := time.Now()
		for range each {
			raw()
		}
		between := time.Now()
		for range each {
			ours()
		}
		rawTime += between.Sub(start)
		oursTime += time.Since(between)
	}
	n := float64(b.N * each)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(rawTime.Nanoseconds())/n, "heart-ns")
	b.ReportMetric(float64(oursTime.Nanoseconds())/n, "keyed-ns")
	b.ReportMetric(float64(oursTime)/float64(rawTime), "times")
}

func BenchmarkAddMessage(b *testing.B) {
	m := inDir(b, b.TempDir())
	beside(b, heart(b, b.TempDir(), "raw"), func() { m.AddMessage(key, "user", newMessages) })
	m.save(key)
}

func BenchmarkAddMessageAndSave(b *testing.B) {
	m := inDir(b, b.TempDir())
	beside(b, heart(b, b.TempDir(), "raw"), func() {
		m.AddMessage(key, "user", newMessages)
		m.save(key)
	})
}

// BenchmarkKeys64 has 64 goroutines that talk to a key each, beside as many that
// append to a session each. More is better here: times is of the throughput.
func BenchmarkKeys64(b *testing.B) {
	const keys, each = 64, 20
	m := inDir(b, b.TempDir())
	dir := b.TempDir()
	var raw, ours []func()
	for i := range keys {
		raw = append(raw, heart(b, dir, fmt.Sprint("raw", i)))
		key := fmt.Sprint("chat:", i)
		ours = append(ours, func() { m.AddMessage(key, "user", newMessages) })
	}
	atOnce := func(calls []func()) time.Duration {
		var wait sync.WaitGroup
		start := time.Now()
		for _, call := range calls {
			wait.Go(func() {
				for range each {
					call()
				}
			})
		}
		wait.Wait()
		return time.Since(start)
	}
	atOnce(raw)
	atOnce(ours)
	var rawTime, oursTime time.Duration
	b.ResetTimer()
	for range b.N {
		rawTime += atOnce(raw)
		oursTime += atOnce(ours)
	}
	n := float64(b.N * keys * each)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(n/rawTime.Seconds(), "heart/s")
	b.ReportMetric(n/oursTime.Seconds(), "keyed/s")
	b.ReportMetric(rawTime.Seconds()/oursTime.Seconds(), "times")
}

// BenchmarkGetHistory reads a cached history of a typical length.
func BenchmarkGetHistory(b *testing.B) {
	m := inDir(b, b.TempDir())
	m.talk(numbered("u", 20)...)
	b.ReportAllocs()
	for b.Loop() {
		m.GetHistory(key)
	}
}

// BenchmarkSummarise truncates a growing conversation so that it begins with an answer. A compaction
// would keep the question as well, so the history starts over.
func BenchmarkSummarise(b *testing.B) {
	m := open(b, keyed.Options{})
	b.ReportAllocs()
	for b.Loop() {
		m.AddMessage(key, "user", newMessages)
		m.AddMessage(key, "assistant", newMessages)
		m.SetSummary(key, "what was said")
		m.TruncateHistory(key, 21)
	}
}

// BenchmarkLoad opens a conversation of 20 messages with ever more before them.
func BenchmarkLoad(b *testing.B) {
	for _, before := range []int{0, 1000, 10_000} {
		b.Run(fmt.Sprint("after ", before), func(b *testing.B) {
			dir := b.TempDir()
			m := inDir(b, dir)
			var history []keyed.Message
			for _, word := range numbered("u", before) {
				history = append(history, message(word))
			}
			m.SetHistory(key, history)
			m.TruncateHistory(key, 0)
			m.talk(numbered("v", 20)...)
			m.close()
			for b.Loop() {
				m := keyed.NewSessionManager(dir)
				if n := len(m.GetHistory(key)); n != 20 {
					b.Fatalf("%d messages", n)
				}
				if err := m.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
