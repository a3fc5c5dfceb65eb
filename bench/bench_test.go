package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/store/file"
)

// The hot paths as ordinary benchmarks, for profiles:
//
//	go test ./bench -run '^$' -bench Append -cpuprofile cpu.prof

func temporary(b *testing.B) *bench { return &bench{dir: b.TempDir()} }

func loop(b *testing.B, call func()) {
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

func BenchmarkAppend(b *testing.B)     { loop(b, appender(temporary(b).newSession(file.Never))) }
func BenchmarkAppendLog(b *testing.B)  { loop(b, temporary(b).logAppender(file.Never)) }
func BenchmarkAppendRaw(b *testing.B)  { loop(b, rawAppender(temporary(b).rawFile(), false)) }
func BenchmarkAppendSync(b *testing.B) { loop(b, appender(temporary(b).newSession(file.Always))) }
func BenchmarkResume(b *testing.B) {
	path := temporary(b).writeSession(compacted(1 << 20))
	loop(b, func() { resumeOnce(path) })
}

func BenchmarkLoad(b *testing.B) {
	path := temporary(b).writeSession(messages(100_000))
	loop(b, func() { check(loadWhole(path).Close()) })
}

func BenchmarkLoadRaw(b *testing.B) {
	path := temporary(b).writeSession(messages(100_000))
	loop(b, func() { scan(path) })
}

func BenchmarkFirstContext(b *testing.B) {
	path := temporary(b).writeSession(messages(100_000))
	loop(b, func() {
		s := load(path, file.Always)
		getContext(s)
		check(s.Close())
	})
}

func BenchmarkContextAgain(b *testing.B) {
	s := load(temporary(b).writeSession(messages(10_000)), file.Never)
	getContext(s)
	loop(b, func() { getContext(s) })
}

func BenchmarkResumeForeign(b *testing.B) {
	path := temporary(b).writeSession(foreign(48<<20, false))
	loop(b, func() {
		s := load(path, file.Always)
		contextOf(s)
		check(s.Close())
	})
}

// importable writes one large transcript, and returns its directory and its size.
func importable(b *testing.B) (*bench, string) {
	t := temporary(b)
	from := t.newDir()
	text := transcriptOf(1, 64<<20/4700, 4000)
	check(os.WriteFile(filepath.Join(from, "large.jsonl"), text, 0o600))
	b.SetBytes(int64(len(text)))
	return t, from
}

func BenchmarkImport(b *testing.B) {
	t, from := importable(b)
	loop(b, func() { importInto(t.newDir(), from) })
}

func BenchmarkImportOnly(b *testing.B) {
	t, from := importable(b)
	loop(b, func() { importOnly(t.newDir(), from) })
}

func BenchmarkImportSmall(b *testing.B) {
	t := temporary(b)
	from := t.newDir()
	for i := range 1000 {
		check(os.WriteFile(filepath.Join(from, fmt.Sprintf("%08d.jsonl", i)), transcriptOf(i, 4, 350), 0o600))
	}
	loop(b, func() { importInto(t.newDir(), from) })
}

func BenchmarkIndex(b *testing.B) {
	const n = 20_000
	dir := temporary(b).newDir()
	writeSessions(dir, zipfTexts(n))
	loop(b, func() { makeIndex(dir, n) })
}
