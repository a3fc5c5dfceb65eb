package main

import (
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
