package clean_test

import (
	"bytes"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
)

// FuzzPacked: whatever bytes are kept, they are refused or come back as long as
// they were, and clean.
func FuzzPacked(f *testing.F) {
	f.Add([]byte("plain"), false)
	f.Add([]byte(`{"password":"kX9#mQ2$vL"}`+"\ntext\n[1]\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, compress bool) {
		if !compress {
			_, _, _ = clean.Packed(data)
			return
		}
		packed := pack(t, string(data))
		out, found, err := clean.Packed(packed)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			if !bytes.Equal(out, packed) {
				t.Errorf("%q was changed without findings", data)
			}
			return
		}
		if plain := unpack(t, out); len(plain) != len(data) {
			t.Errorf("%q became %q", data, plain)
		}
		if _, again, err := clean.Packed(out); err != nil || again != nil {
			t.Errorf("%q still has %v, %v", data, again, err)
		}
	})
}

// FuzzEntry: an entry that can be read can be cleaned, stays an entry of the same
// place in the tree, and has nothing left.
func FuzzEntry(f *testing.F) {
	f.Add([]byte(`{"type":"message","id":"a","parent_id":"b","timestamp":"2026-01-01T10:00:00Z","message":{"role":"user","content":"password=kX9#mQ2$vL"}}`))
	f.Add([]byte(`{"type":"custom","id":"a","custom":{"custom_type":"x","data":{"password":"kX9#mQ2$vL"}},"odd":[1,"x"]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var e session.Entry
		if e.UnmarshalJSON(line) != nil {
			return
		}
		before := e
		found, err := clean.Entry(&e)
		if err != nil || len(found) == 0 {
			return
		}
		if e.ID != before.ID || e.Type != before.Type || !e.Timestamp.Equal(before.Timestamp) {
			t.Errorf("%s became %+v", line, e)
		}
		if again, err := clean.Entry(&e); err != nil || again != nil {
			t.Errorf("%s still has %v, %v", line, again, err)
		}
	})
}

func BenchmarkEntry(b *testing.B) {
	e := message(string(bytes.Repeat([]byte("what a tool has printed, and no secret in it: token count 42\n"), 1000)))
	b.SetBytes(61_000)
	for b.Loop() {
		if _, err := clean.Entry(&e); err != nil {
			b.Fatal(err)
		}
	}
}
