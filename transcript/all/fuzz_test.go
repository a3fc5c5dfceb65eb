package all_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
	_ "github.com/coppice-dev/coppice/transcript/all"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

// FuzzExport: whatever a reader makes of any bytes, every writer either refuses it or
// writes a file that reads back as the same conversation, except for the announced losses.
func FuzzExport(f *testing.F) {
	formats := transcript.Formats()
	writers := slices.DeleteFunc(transcript.Formats(), func(f *transcript.Format) bool { return f.Write == nil })
	n := 0
	below(f, filepath.Join("..", "format"), func(path string) {
		if !isFixture(path) {
			return
		}
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		file, err := transcript.OpenFile(path)
		if err != nil || len(data) > 8<<10 {
			return
		}
		if format := transcript.Detect(file); format != nil {
			at := slices.IndexFunc(formats, func(f *transcript.Format) bool { return f.Name == format.Name })
			n++
			f.Add(byte(at), byte(n%len(writers)), data)
		}
	})
	env := transcript.Env{Home: f.TempDir(), Getenv: func(string) string { return "" }, GOOS: "linux"}
	f.Fuzz(func(t *testing.T, from, to byte, data []byte) {
		reader, writer := formats[int(from)%len(formats)], writers[int(to)%len(writers)]
		st := memory.New(nil)
		defer st.Close()
		file := transcript.FileOf("fuzz", data)
		report, err := (&transcript.Importer{Store: st, Now: transcripttest.Now}).Import(t.Context(), reader, file)
		if err != nil || len(report.Sessions) > 8 {
			return
		}
		for _, r := range report.Sessions {
			s, err := session.Open(t.Context(), st, r.ID, nil)
			if err != nil {
				continue // nothing came of it
			}
			script, err := transcript.NewScript(s, writer.Name, "", transcripttest.Now())
			if err != nil {
				t.Fatal(err)
			}
			_, err = (&transcript.Exporter{Env: env}).Prepare(t.Context(), writer, script, nil)
			if err != nil && !errors.Is(err, session.ErrInvalid) && !errors.Is(err, session.ErrCorrupt) {
				t.Errorf("from %s to %s: %v", reader.Name, writer.Name, err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// isFixture reports whether a file below the formats is one that a test reads.
func isFixture(path string) bool {
	path = filepath.ToSlash(path)
	return strings.Contains(path, "/testdata/") && !strings.Contains(path, "/testdata/fuzz/")
}
