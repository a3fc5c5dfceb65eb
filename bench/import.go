package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/transcript"
	"github.com/coppice-dev/coppice/transcript/bulk"
	"github.com/coppice-dev/coppice/transcript/discover"
)

// importSmall imports many small transcripts, with the index up to date when it
// ends. The raw limit copies the files and syncs each copy.
func importSmall(b *bench) []row {
	n := 4000
	if b.quick {
		n = 600
	}
	from := b.newDir()
	for i := range n {
		check(os.WriteFile(filepath.Join(from, fmt.Sprintf("%08d.jsonl", i)), transcriptOf(i, 4, 350), 0o600))
	}
	var last string
	copied := func() { copyAll(from, b.newDir()) }
	imported := func() { last = b.newDir(); importInto(last, from) }
	alone := func() { importOnly(b.newDir(), from) }
	copyTook, copyBusy := both(copied)
	importTook, importBusy := both(imported)
	t := inTurns(b.rounds(3), copyTook, importTook, copyBusy, importBusy, busy(alone))
	limit := time.Duration(n) * time.Second / 2000
	size, kept := sizeOf(from, ""), sizeOf(last, "index.db")
	return []row{
		beside(fmt.Sprintf("import %d small sessions, indexed (%s)", n, perSecond(n, t[1])), t[0], t[1], limit),
		atMost("– processor time", t[2], t[3], 0),
		atMost("– without the index, processor time", t[2], t[4], 0),
		{
			work: "bytes on disk after it, without the index, beside the source", raw: fmt.Sprintf("%d kB", size>>10),
			ours: fmt.Sprintf("%d kB", kept>>10), ratio: fmt.Sprintf("%.2f ×", float64(kept)/float64(size)), goal: "≤ 2.0 ×", met: kept <= 2*size,
		},
	}
}

// importLarge imports one large transcript, with the index up to date when it ends.
func importLarge(b *bench) []row {
	mib := 200
	if b.quick {
		mib = 20
	}
	from := b.newDir()
	text := transcriptOf(1, mib<<20/4700, 4000)
	check(os.WriteFile(filepath.Join(from, "large.jsonl"), text, 0o600))
	copied := func() { copyAll(from, b.newDir()) }
	imported := func() { importInto(b.newDir(), from) }
	alone := func() { importOnly(b.newDir(), from) }
	copyTook, copyBusy := both(copied)
	importTook, importBusy := both(imported)
	t := inTurns(b.rounds(3), copyTook, importTook, copyBusy, importBusy, busy(alone))
	limit := time.Duration(float64(len(text)) / 100e6 * float64(time.Second))
	rate := float64(len(text)) / 1e6 / t[1].Seconds()
	return []row{
		beside(fmt.Sprintf("import %d MiB of Claude Code, indexed (%.0f MB/s)", mib, rate), t[0], t[1], limit),
		atMost("– processor time", t[2], t[3], 0),
		atMost("– without the index, processor time", t[2], t[4], 0),
	}
}

// transcriptOf makes a transcript of Claude Code with a number of messages, each with
// size bytes of text.
func transcriptOf(n, messages, size int) []byte {
	words := strings.Fields("func return error package the of and to in that it is for on with as if nil string context session entry tree log append read write file line")
	var b strings.Builder
	parent, seed := "null", uint32(n)*2654435761+1
	for i := range messages {
		var text strings.Builder
		for text.Len() < size {
			seed = seed*1664525 + 1013904223
			text.WriteString(words[int(seed>>8)%len(words)])
			text.WriteByte(' ')
		}
		id := fmt.Sprintf("%08x-%04x-4000-8000-%012x", n, i>>16, i)
		message := fmt.Sprintf(`{"role":"user","content":%q}`, text.String())
		role := "user"
		if i%2 == 1 {
			role = "assistant"
			message = fmt.Sprintf(`{"id":"msg_%s","type":"message","role":"assistant","model":"claude-opus-4-5","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":%d}}`, id, text.String(), size/4)
		}
		fmt.Fprintf(&b, `{"parentUuid":%s,"isSidechain":false,"cwd":"/home/u/project","sessionId":"%08x-0000-4000-8000-000000000000","version":"2.1.42","gitBranch":"main","type":%q,"message":%s,"uuid":%q,"timestamp":"2026-01-02T03:%02d:%02d.000Z"}`+"\n",
			parent, n, role, message, id, i/60%60, i%60)
		parent = `"` + id + `"`
	}
	return []byte(b.String())
}

func importInto(dir, from string) {
	ctx := context.Background()
	h, err := home.Open(ctx, filepath.Join(dir, "sessions"), &home.Options{Create: true})
	check(err)
	r, err := h.Transfer.Import(ctx, home.ImportRequest{Paths: []string{from}}, nil, nil)
	check(err)
	if r.IsPartial() || r.Entries == 0 {
		check(fmt.Errorf("imported %+v", r.Total))
	}
	check(h.Close())
}

// importOnly is importInto without the index.
func importOnly(dir, from string) {
	st, err := file.Open(filepath.Join(dir, "sessions"), &file.Options{Sync: file.Every(time.Second)})
	check(err)
	sources, err := discover.Sources(from)
	check(err)
	im := &transcript.Importer{Store: st, Ledger: transcript.LedgerOf(st)}
	r, err := bulk.Import(context.Background(), im, bulk.Request{Sources: sources})
	check(err)
	if r.IsPartial() || r.Entries == 0 {
		check(fmt.Errorf("imported %+v", r.Total))
	}
	check(st.Close())
}

// copyAll copies files, and makes each copy durable.
func copyAll(from, to string) {
	entries, err := os.ReadDir(from)
	check(err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		check(err)
		f, err := os.Create(filepath.Join(to, e.Name()))
		check(err)
		_, err = f.Write(data)
		check(err)
		check(f.Sync())
		check(f.Close())
	}
}

// sizeOf adds up the files of a directory, except those whose names begin with without.
func sizeOf(dir, without string) (size int64) {
	check(filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || without != "" && strings.HasPrefix(d.Name(), without) {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	}))
	return size
}
