package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
)

// appender returns an append of one message.
func appender(s *session.Session) func() {
	return func() {
		_, err := s.AppendMessage(session.RoleUser, content)
		check(err)
	}
}

// rawAppender returns a write of the same bytes, synced or not.
func rawAppender(f *os.File, sync bool) func() {
	data := line()
	return func() {
		_, err := f.Write(data)
		check(err)
		if sync {
			check(datasync(f))
		}
	}
}

// logAppender returns an append to a log, without the session around it.
func (b *bench) logAppender(sync file.Sync) func() {
	log := b.newLog(sync)
	data := line()
	data = data[:len(data)-1]
	end, err := log.End(context.Background())
	check(err)
	return func() {
		end, err = log.Append(context.Background(), end, data)
		check(err)
	}
}

// floorAppender returns a write of the same bytes after a look at which file is at
// the path: what an append needs to be in the file of that name.
func (b *bench) floorAppender() func() {
	data, path := line(), filepath.Join(b.newDir(), "log.jsonl")
	f, err := vfs.OS{}.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	check(err)
	return func() {
		_, err := vfs.OS{}.Stat(path)
		check(err)
		_, err = f.Write(data)
		check(err)
	}
}

// durableAppend measures on the disk that there is, and on one whose syncs take longer: what an
// append costs besides them is the same, and only the disk decides how much that weighs.
func durableAppend(b *bench) []row {
	t := inTurns(b.rounds(150),
		each(20, rawAppender(b.rawFile(), true)),
		each(20, appender(b.newSession(file.Always))),
		each(20, b.logAppender(file.Always)))
	raw := rawAppender(b.rawFile(), true)
	s, err := session.FileManager{}.New(session.Config{Dir: b.newDir(), Files: file.Options{FS: slowDisk{}}})
	check(err)
	slow := inTurns(b.rounds(50), each(20, func() { raw(); time.Sleep(slowSync) }), each(20, appender(s)))
	return []row{
		durable("durable append, one session", t[0], t[1]),
		atMost("– the store's part of it", t[0], t[2], 0),
		durable("– where a sync takes 0.2 ms more", slow[0], slow[1]),
	}
}

// slowSync is how much longer a sync of a slowDisk takes.
const slowSync = 200 * time.Microsecond

// slowDisk is the disk with slower syncs.
type slowDisk struct{ vfs.OS }

func (d slowDisk) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	f, err := d.OS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return slowFile{f}, nil
}

type slowFile struct{ vfs.File }

func (f slowFile) Sync() error {
	defer time.Sleep(slowSync)
	return f.File.Sync()
}

// plainAppend measures in short turns, which other processes seldom interrupt,
// and then in long ones, in which a writer gives way to others several times.
func plainAppend(b *bench) []row {
	raw, ours, log := rawAppender(b.rawFile(), false), appender(b.newSession(file.Never)), b.logAppender(file.Never)
	short := inTurns(b.rounds(600), each(200, raw), each(200, ours), each(200, log), each(200, b.floorAppender()))
	long := inTurns(b.rounds(15), each(20_000, raw), each(20_000, ours))
	return []row{
		atMost("append with Sync: Never", short[0], short[1], 3),
		atMost("– the store's part of it", short[0], short[2], 0),
		atMost("– the write and one look at the path alone", short[0], short[3], 0),
		atMost("– without a pause for 20,000 appends", long[0], long[1], 0),
	}
}

// flatAppend compares appends to a short session with appends to a long one that
// was loaded and read as a whole.
func flatAppend(b *bench) []row {
	many := 1_000_000
	if b.quick {
		many = 200_000
	}
	short, long := b.writeSession(messages(10)), b.writeSession(messages(many))
	defer os.Remove(long)
	var rows []row
	for _, level := range []struct {
		name string
		sync file.Sync
		n    int
	}{{"Sync: Never", file.Never, 200}, {"durable", file.Always, 20}} {
		a, z := load(short, level.sync), load(long, level.sync)
		for _, s := range []*session.Session{a, z} {
			_, err := s.MessageCount() // which needs the whole tree
			check(err)
		}
		t := inTurns(b.rounds(150), each(level.n, appender(a)), each(level.n, appender(z)))
		rows = append(rows, atMost(fmt.Sprintf("append at 10 → %d entries, %s", many, level.name), t[0], t[1], 1.2))
		check(a.Close())
		check(z.Close())
	}
	return rows
}

const sessions = 64

// atOnce calls each function n times, all functions concurrently, and returns
// the time it took and that of every single call.
func atOnce(n int, calls []func()) (total time.Duration, single []time.Duration) {
	times := make([][]time.Duration, len(calls))
	var wg sync.WaitGroup
	start := time.Now()
	for i, call := range calls {
		wg.Go(func() {
			for range n {
				begin := time.Now()
				call()
				times[i] = append(times[i], time.Since(begin))
			}
		})
	}
	wg.Wait()
	total = time.Since(start)
	for i := range times {
		single = append(single, times[i]...)
	}
	return total, single
}

func manySessions(b *bench) []row {
	n := 300
	if b.quick {
		n = 100
	}
	var raw, ours []func()
	for range sessions {
		raw = append(raw, rawAppender(b.rawFile(), true))
		ours = append(ours, appender(b.newSession(file.Always)))
	}
	var rawLate, oursLate []time.Duration // the p99 of each round
	measure := func(calls []func(), late *[]time.Duration) func() time.Duration {
		return func() time.Duration {
			total, single := atOnce(n, calls)
			*late = append(*late, quantile(single, 0.99))
			return total
		}
	}
	t := inTurns(b.rounds(9), measure(raw, &rawLate), measure(ours, &oursLate))
	rate := float64(t[0]) / float64(t[1])
	late := within(fmt.Sprintf("– p99 of one append of the %d", sessions), quantile(oursLate, 0.5), 5*time.Millisecond)
	late.raw = show(quantile(rawLate, 0.5))
	return []row{{
		work: fmt.Sprintf("%d sessions appended durably at once", sessions),
		raw:  perSecond(n*sessions, t[0]), ours: perSecond(n*sessions, t[1]),
		ratio: fmt.Sprintf("%.2f ×", rate), goal: "≥ 0.8 ×", met: rate >= 0.8,
	}, late}
}

// groupCommit compares one goroutine with many on the same session.
func groupCommit(b *bench) []row {
	n := 50
	one, many := appender(b.newSession(file.Always)), appender(b.newSession(file.Always))
	calls := make([]func(), sessions)
	for i := range calls {
		calls[i] = many
	}
	t := inTurns(b.rounds(9),
		func() time.Duration { d, _ := atOnce(n*10, []func(){one}); return d / time.Duration(n*10) },
		func() time.Duration { d, _ := atOnce(n, calls); return d / time.Duration(n*sessions) })
	return []row{{
		work: fmt.Sprintf("%d goroutines on one session, beside one (durable)", sessions),
		raw:  perSecond(1, t[0]), ours: perSecond(1, t[1]),
		ratio: fmt.Sprintf("%.2f ×", float64(t[0])/float64(t[1])),
	}}
}
