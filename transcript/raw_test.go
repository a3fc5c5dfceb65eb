package transcript_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/memory"
	"github.com/coppice-dev/coppice/transcript"
)

// noise is text that does not compress.
func noise(n int) string {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)}).Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)[:n]
}

func TestRaw(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	list := []toyLine{{Conv: "c"}}
	for i := range 60 { // more than one chunk
		list = append(list, said(fmt.Sprint("id", i), noise(200_000+i)))
	}
	list = append(list, toyLine{ID: "row", Text: "x", Row: "the row"})
	h.bring(toyFile(t, lines(list...)))
	s := h.open(toyID("c"))
	if n := len(customs(t, s, transcript.CustomImport)); n < 4 {
		t.Errorf("%d pieces", n)
	}
	for _, l := range list[1:] {
		e, err := s.Entry(l.ID)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := transcript.Raw(context.Background(), h.st, s, &e)
		if want := lines(l) + l.Row; err != nil || string(raw) != want {
			t.Errorf("%s: %d bytes, want %d; %v", l.ID, len(raw), len(want), err)
		}
	}
}

// spoiled is a store whose blobs have another content.
type spoiled struct{ store.Store }

type spoiledBlobs struct{ store.Blobs }

func (s spoiled) Blobs() store.Blobs { return spoiledBlobs{s.Store.Blobs()} }

func (b spoiledBlobs) Get(ctx context.Context, ref store.Ref) ([]byte, error) {
	data, err := b.Blobs.Get(ctx, ref)
	return append(data[:len(data)/2:len(data)/2], data[len(data)/2+1:]...), err
}

func TestRawRefuses(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.bring(toyFile(t, lines(toyLine{Conv: "c"}, said("1", noise(100_000)))))
	s := h.open(toyID("c"))
	e, err := s.Entry("1")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := transcript.Raw(ctx, spoiled{h.st}, s, &e); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("spoiled bytes: %v", err)
	}
	if _, err := transcript.Raw(ctx, memory.New(nil), s, &e); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("missing bytes: %v", err)
	}
	own, _ := s.AppendMessage(session.RoleUser, []session.Content{session.Text("here")})
	mine, err := s.Entry(own)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transcript.Raw(ctx, h.st, s, &mine); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("an entry of our own: %v", err)
	}
	in := strings.Split(string(e.Extra[0].Value), `"`)[3]
	for name, source := range map[string]string{
		"not a list":      `{"in":1}`,
		"no such import":  `[{"in":"x","pos":0,"len":1}]`,
		"not an import":   `[{"in":"1","pos":0,"len":1}]`,
		"beyond the end":  `[{"in":"` + in + `","pos":0,"len":99999999}]`,
		"before it":       `[{"in":"` + in + `","pos":-5,"len":2}]`,
		"negative length": `[{"in":"` + in + `","pos":5,"len":-2}]`,
		"overflow":        `[{"in":"` + in + `","pos":9223372036854775807,"len":9223372036854775807}]`,
	} {
		bad := e
		bad.Extra = session.Fields{{Name: "source", Value: []byte(source)}}
		if raw, err := transcript.Raw(ctx, h.st, s, &bad); !errors.Is(err, session.ErrNotExist) {
			t.Errorf("%s: %d bytes, %v", name, len(raw), err)
		}
	}
}
