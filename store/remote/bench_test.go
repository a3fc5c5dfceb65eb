package remote_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/remote"
)

// BenchmarkCreate creates a log of 100 MB here and on a server on the same machine.
func BenchmarkCreate(b *testing.B) {
	line := bytes.Repeat([]byte("otters "), 70)
	lines := func(yield func([]byte, error) bool) {
		for size := 0; size < 100<<20; size += len(line) {
			if !yield(line, nil) {
				return
			}
		}
	}
	local, err := file.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	handler := remote.NewHandler(local)
	server := httptest.NewServer(handler)
	b.Cleanup(func() { server.Close(); _ = handler.Close(); _ = local.Close() })
	away, err := remote.Open(b.Context(), server.URL, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = away.Close() })
	n := 0
	for name, st := range map[string]store.Store{"local": local, "remote": away} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				n++
				log, err := st.Create(b.Context(), fmt.Sprint("log", n), lines)
				if err != nil {
					b.Fatal(err)
				}
				if err := log.Close(); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				_ = local.Remove(b.Context(), fmt.Sprint("log", n))
				b.StartTimer()
			}
		})
	}
}
