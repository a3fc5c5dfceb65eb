package transcript_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/transcript"
)

// free is what reading may allocate whatever it reads: the windows and tables of
// the decompressors.
const free = 256 << 20

// The members of a zip archive are read or refused, and what comes out of them is
// in proportion.
func FuzzZip(f *testing.F) {
	f.Add(zipOf(f, "conversations.json", `[{"a":1}]`, "b/c.json", "{}"))
	f.Add(zipOf(f, "../x", "1"))
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, data []byte) {
		storetest.Bounded(t, free+int64(len(data))*20_000, func() {
			a, err := transcript.FileOf("x.zip", data).Zip()
			if err != nil {
				return
			}
			defer a.Close()
			for _, name := range a.Names() {
				m, err := a.File(name)
				if err != nil {
					t.Errorf("member %q: %v", name, err)
					continue
				}
				if out, err := m.ReadAll(); err == nil && len(out) > 64<<10+1001*len(data) {
					t.Errorf("%d bytes came out of %d", len(out), len(data))
				}
			}
		})
	})
}

// The documents of a file are JSON, lie where they say, and do not overlap; what
// is compressed is in proportion.
func FuzzDocuments(f *testing.F) {
	f.Add([]byte(`[{"a":[1,{"b":"]}"}]}, 2 ,"x"]`))
	f.Add([]byte("{\"a\":1}\n[2] true 1e5"))
	f.Add(zstdOf(f, []byte(`[{"a":1}]`)))
	f.Add(gzipOf(f, []byte(`{"a":1}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		storetest.Bounded(t, free+int64(len(data))*20_000, func() {
			var end, size int64
			for doc, err := range transcript.FileOf("x.json", data).Documents(t.Context()) {
				if err != nil {
					break
				}
				if !json.Valid(doc.Data) {
					t.Errorf("%.80q is no JSON", doc.Data)
				}
				if doc.Pos < end || doc.Len != int64(len(doc.Data)) {
					t.Errorf("a document at %d of %d bytes, after one that ends at %d", doc.Pos, doc.Len, end)
				}
				end, size = doc.Pos+doc.Len, size+doc.Len
			}
			if size > 64<<10+1001*int64(len(data)) {
				t.Errorf("%d bytes came out of %d", size, len(data))
			}
		})
	})
}

// What the ledger remembers of a source is what was put into it, or nothing.
func FuzzLedger(f *testing.F) {
	dir := f.TempDir()
	st, err := file.Open(dir, nil)
	if err != nil {
		f.Fatal(err)
	}
	ledger := transcript.LedgerOf(st)
	if err := ledger.Put(f.Context(), &transcript.Source{Path: "/a/b.jsonl"}); err != nil {
		f.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, ".coppice", "imports", "*"))
	if err != nil || len(paths) != 1 {
		f.Fatal(paths, err)
	}
	good, err := os.ReadFile(paths[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"path":"/a/b.jsonl","size":-1}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(paths[0], text, 0o600); err != nil {
			t.Fatal(err)
		}
		storetest.Bounded(t, 1<<20+int64(len(text))*200, func() {
			if s := ledger.Get(t.Context(), "/a/b.jsonl"); s != nil && s.Path != "/a/b.jsonl" {
				t.Errorf("the ledger has %+v", s)
			}
		})
	})
}
