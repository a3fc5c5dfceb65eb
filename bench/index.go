package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/index/sqlite"
	"github.com/coppice-dev/coppice/store/file"
)

// indexing measures how fast messages of 15 to 75 words become searchable. The raw
// limit inserts the same texts into a full-text table of the same SQLite, in one
// transaction and without anything else that the index keeps.
func indexing(b *bench) []row {
	n := 100_000
	if b.quick {
		n = 10_000
	}
	texts := zipfTexts(n)
	dir := b.newDir()
	writeSessions(dir, texts)
	insert := func() { insertTexts(filepath.Join(b.newDir(), "raw.db"), texts) }
	catchUp := func() { makeIndex(dir, n) }
	insertTook, insertBusy := both(insert)
	indexTook, indexBusy := both(catchUp)
	t := inTurns(b.rounds(3), insertTook, indexTook, insertBusy, indexBusy)
	return []row{
		beside(fmt.Sprintf("index %d messages (%s)", n, perSecond(n, t[1])), t[0], t[1], time.Duration(n)*time.Second/60_000),
		atMost("– processor time", t[2], t[3], 0),
	}
}

// zipfTexts returns texts whose words are as frequent as people's.
func zipfTexts(n int) []string {
	r := rand.New(rand.NewPCG(1, 1))
	dist := rand.NewZipf(r, 1.1, 2, 50_000)
	texts := make([]string, n)
	var buf []byte
	for i := range texts {
		buf = buf[:0]
		for words := 15 + r.IntN(60); words > 0; words-- {
			buf = append(strconv.AppendUint(append(buf, 'w'), dist.Uint64(), 36), ' ')
		}
		texts[i] = string(buf)
	}
	return texts
}

// writeSessions writes the texts as the messages of sessions.
func writeSessions(dir string, texts []string) {
	const perSession = 100
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for first := 0; first < len(texts); first += perSession {
		name := fmt.Sprintf("s%07d", first/perSession)
		f, err := os.Create(filepath.Join(dir, name+".jsonl"))
		check(err)
		w := bufio.NewWriter(f)
		fmt.Fprintf(w, `{"type":"session","id":%q,"version":1,"timestamp":%q,"cwd":"/home/u/p%d"}`+"\n", name, at.Format(time.RFC3339Nano), first/perSession%50)
		parent := "null"
		for i, text := range texts[first:min(first+perSession, len(texts))] {
			at = at.Add(20 * time.Second)
			id := fmt.Sprintf(`"%08x-%04x-7000-8000-%012x"`, first, i, i)
			role, extra := "user", ""
			if i%2 == 1 {
				role, extra = "assistant", fmt.Sprintf(`,"model":"model-%d","usage":{"input":%d,"output":%d},"response_id":"r%d-%d"`, first%5, 100+i, 10+i, first, i)
			}
			fmt.Fprintf(w, `{"type":"message","id":%s,"parent_id":%s,"timestamp":%q,"message":{"role":%q,"content":[{"type":"text","text":{"content":%q}}]%s}}`+"\n",
				id, parent, at.Format(time.RFC3339Nano), role, text, extra)
			parent = id
		}
		check(w.Flush())
		check(f.Close())
	}
}

func insertTexts(path string, texts []string) {
	db, err := sql.Open("sqlite", path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=cache_size(-16000)")
	check(err)
	defer db.Close()
	_, err = db.Exec(`CREATE VIRTUAL TABLE fts USING fts5 (body, content='', contentless_delete=1, tokenize='ascii')`)
	check(err)
	tx, err := db.Begin()
	check(err)
	stmt, err := tx.Prepare(`INSERT INTO fts (rowid, body) VALUES (?, ?)`)
	check(err)
	for i, text := range texts {
		_, err = stmt.Exec(i+1, text)
		check(err)
	}
	check(tx.Commit())
}

// makeIndex makes the index of a directory.
func makeIndex(dir string, messages int) {
	ctx := context.Background()
	st, err := file.Open(dir, nil)
	check(err)
	defer st.Close()
	path := filepath.Join(dir, "new", "index.db")
	check(os.RemoveAll(filepath.Dir(path)))
	room, err := sqlite.Open(ctx, path, nil)
	check(err)
	ix := index.New(st, room, nil)
	defer ix.Close()
	report, err := ix.CatchUp(ctx, nil)
	check(err)
	if report.Entries != int64(messages) {
		check(fmt.Errorf("%d entries were indexed", report.Entries))
	}
}
