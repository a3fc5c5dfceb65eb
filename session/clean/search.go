package clean

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/store"
)

// search looks for the secrets in every file, deletes what is no longer needed, and
// notes the rest.
func (s *Sweep) search(ctx context.Context, r *Receipt) error {
	secrets, longest := s.scanner(), 0
	for k := range s.secrets {
		longest = max(longest, len(k.Value))
	}
	suspects := make(map[store.Ref]bool) // blobs that have, or may have, a secret
	for _, old := range s.pending.Blobs {
		suspects[old] = true
	}
	total, done := int64(0), int64(0)
	if err := s.parts(ctx, func(p store.Part) error { total += p.Size; return nil }); err != nil {
		return err
	}
	err := s.parts(ctx, func(p store.Part) error {
		s.report("reading every file again", done, total)
		done += p.Size
		if p.Kind == store.PartIndex || isOurs(p) {
			return nil
		}
		found, err := s.searchPart(ctx, p, secrets, longest)
		if err != nil || len(found) == 0 {
			return err
		}
		switch p.Kind {
		case store.PartBlob:
			if p.Name == "" {
				r.left(p.Place, "", "it contains the same secret, but is not one of the store's files")
				return nil
			}
			suspects[store.Ref(p.Name)] = true
		case store.PartTemp:
			return s.removeTemp(ctx, p, r)
		default:
			r.left(p.Place, s.sessionOf(p), "it has the same secret")
		}
		return nil
	})
	if err != nil || len(suspects) == 0 {
		return err
	}
	return s.removeBlobs(ctx, suspects, r)
}

func (r *Receipt) left(place, session, why string) {
	r.Left = append(r.Left, Left{Path: place, Session: session, Why: why})
}

// removeTemp deletes the files that an interrupted writer left behind.
func (s *Sweep) removeTemp(ctx context.Context, p store.Part, r *Receipt) error {
	err := s.store.Parts().Remove(ctx, p)
	switch {
	case errors.Is(err, store.ErrLocked):
		r.left(p.Place, "", "another program may be writing it; if not, it can be deleted")
		return nil
	case err == nil:
		r.Removed = append(r.Removed, p.Place)
	}
	return err
}

// removeBlobs deletes the suspects that nothing refers to. While others keep writing
// content, or if something cannot be read, that cannot be determined; then they stay
// until the next redaction.
func (s *Sweep) removeBlobs(ctx context.Context, suspects map[store.Ref]bool, r *Receipt) error {
	placeOf := func(ref store.Ref) string { return s.store.Parts().Where(store.PartBlob, string(ref)) }
	done, err := s.store.Blobs().Collect(ctx, slices.Sorted(maps.Keys(suspects))...)
	for _, ref := range done.Deleted {
		r.Removed = append(r.Removed, placeOf(ref))
		delete(suspects, ref)
	}
	for _, ref := range slices.Sorted(maps.Keys(done.Named)) {
		for _, p := range done.Named[ref] {
			r.left(placeOf(ref), s.sessionOf(p), fmt.Sprintf("%s refers to it", p.Place))
		}
		delete(suspects, ref)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	s.unsettled = true
	for _, ref := range slices.Sorted(maps.Keys(suspects)) {
		r.left(placeOf(ref), "", "it could not be deleted: "+err.Error())
	}
	return nil
}

// gzipMagic begins every gzip file.
const gzipMagic = "\x1f\x8b\x08"

// searchPart returns the kinds of secrets found in a part, which is unpacked if it is
// compressed. longest is the length of the longest value.
func (s *Sweep) searchPart(ctx context.Context, p store.Part, values *redact.Scanner, longest int) (kinds map[string]bool, err error) {
	from, err := s.store.Parts().Open(ctx, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	head := bufio.NewReader(from)
	begin, _ := head.Peek(len(magic)) // a shorter file is not compressed
	kinds = make(map[string]bool)
	var plain io.Reader = head
	packed := isPacked(begin) || bytes.HasPrefix(begin, []byte(gzipMagic))
	switch {
	case isPacked(begin):
		dec, err := zstd.NewReader(head, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
		if err != nil {
			return nil, err
		}
		defer dec.Close()
		plain = dec
	case packed: // a copy that a person made by hand
		if plain, err = gzip.NewReader(head); err != nil {
			return kinds, nil // it only begins like one
		}
	}
	kept := &keptIn{values: values, kinds: kinds}
	if err := searchReader(io.TeeReader(plain, kept), p.Size, values, longest, kinds); err != nil && !packed {
		return kinds, err
	}
	kept.flush() // if the part is damaged, at least what could be read was searched
	return kinds, nil
}

// keptIn searches the parts of a source that the lines of logs keep, compressed and in base64.
type keptIn struct {
	values *redact.Scanner
	kinds  map[string]bool
	line   []byte
}

// longestKept is more than any line with a kept source has: larger ones are in a blob.
const longestKept = 1 << 20

func (k *keptIn) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		at := bytes.IndexByte(rest, '\n')
		if at < 0 {
			if len(k.line) <= longestKept {
				k.line = append(k.line, rest...)
			}
			break
		}
		if len(k.line) <= longestKept {
			k.line = append(k.line, rest[:at]...)
		}
		k.flush()
		rest = rest[at+1:]
	}
	return len(p), nil
}

// flush looks at the line that was written.
func (k *keptIn) flush() {
	if packed, ok := packedIn(k.line); ok {
		if plain, err := unpack(packed); err == nil {
			for _, f := range k.values.Known(plain) {
				k.kinds[f.Kind] = true
			}
		}
	}
	k.line = k.line[:0]
}

// searchReader searches a stream part by part. A value may take six bytes for each of
// its own, as in \u001b.
func searchReader(from io.Reader, size int64, values *redact.Scanner, longest int, kinds map[string]bool) error {
	return eachPart(from, size, 6*longest, func(part []byte) {
		for _, f := range values.Known(part) {
			kinds[f.Kind] = true
		}
	})
}

// eachPart calls each with parts of a stream of roughly a given size, which overlap by
// a number of bytes.
func eachPart(from io.Reader, size int64, overlap int, each func(part []byte)) error {
	buf := make([]byte, 0, overlap+int(min(max(size+1, 4<<10), 1<<20)))
	for {
		n, err := io.ReadFull(from, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		each(buf)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		rest := copy(buf, buf[max(0, len(buf)-overlap):])
		buf = buf[:rest]
	}
}
