package clean

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/store"
)

// staleAfter is how long no writer needs for a temporary file, or to name a blob
// that it has put into the store.
const staleAfter = time.Hour

// search looks for the secrets in every file, deletes what nobody needs any more,
// and notes the rest.
func (s *Sweep) search(ctx context.Context, r *Receipt) error {
	secrets, longest := s.scanner(), 0
	for k := range s.secrets {
		longest = max(longest, len(k.Value))
	}
	suspects := make(map[store.Ref]bool) // blobs that have a secret, or may have
	for _, old := range s.pending {
		suspects[old] = true
	}
	err := s.files(ctx, func(path, room string) error {
		if room == roomSkip {
			return nil
		}
		found, err := searchFile(path, secrets, longest)
		if err != nil || len(found) == 0 {
			return err
		}
		switch room {
		case roomBlobs:
			suspects[store.Ref("sha256:"+filepath.Base(path))] = true
		case roomTemp:
			return s.removeTemp(path, r)
		default:
			r.left(path, s.sessionOf(path), "it has the same secret")
		}
		return nil
	})
	if err != nil || len(suspects) == 0 {
		return err
	}
	return s.removeBlobs(ctx, suspects, r)
}

func (r *Receipt) left(path, session, why string) {
	r.Left = append(r.Left, Left{Path: path, Session: session, Why: why})
}

// removeTemp deletes a temporary file that a writer left when it was stopped.
func (s *Sweep) removeTemp(path string, r *Receipt) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if time.Since(info.ModTime()) < staleAfter {
		r.left(path, "", "somebody may be writing it; if nobody is, it may be deleted")
		return nil
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	r.Removed = append(r.Removed, path)
	return nil
}

// removeBlobs deletes the suspects that nothing refers to.
func (s *Sweep) removeBlobs(ctx context.Context, suspects map[store.Ref]bool, r *Receipt) error {
	var refs []redact.Known
	for ref := range suspects {
		refs = append(refs, redact.Known{Kind: string(ref), Value: string(ref)})
	}
	wanted := make(map[store.Ref]bool)
	names := redact.NewScanner(refs...)
	err := s.files(ctx, func(path, room string) error {
		if room == roomSkip || room == roomBlobs {
			return nil
		}
		found, err := searchFile(path, names, len(refs[0].Value))
		for kind := range found {
			ref := store.Ref(kind)
			wanted[ref] = true
			r.left(s.blobPath(ref), s.sessionOf(path), fmt.Sprintf("%s refers to it", path))
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, ref := range slices.Sorted(maps.Keys(suspects)) {
		if wanted[ref] {
			continue
		}
		if err := s.removeBlob(ctx, ref, r); err != nil {
			return err
		}
	}
	return nil
}

func (s *Sweep) removeBlob(ctx context.Context, ref store.Ref, r *Receipt) error {
	path := s.blobPath(ref)
	info, err := os.Stat(path)
	if err == nil && !slices.Contains(s.pending, ref) && time.Since(info.ModTime()) < staleAfter {
		r.left(path, "", "nothing refers to it yet; somebody may be about to")
		return nil
	}
	err = s.store.RemoveBlob(ctx, ref)
	switch {
	case errors.Is(err, store.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	r.Removed = append(r.Removed, path)
	return nil
}

func (s *Sweep) blobPath(ref store.Ref) string {
	digits, _ := ref.Hex()
	return filepath.Join(s.store.Dir(), ".coppice", "blobs", digits[:2], digits)
}

// searchFile returns the kinds of what is found in a file, unpacked if it is
// compressed. longest is the length of the longest value.
func searchFile(path string, values *redact.Scanner, longest int) (kinds map[string]bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, len(magic))
	n, _ := io.ReadFull(f, head) // a file that is shorter is not compressed
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	kinds = make(map[string]bool)
	if !isPacked(head[:n]) {
		return kinds, searchReader(f, values, longest, kinds)
	}
	dec, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	if searchReader(dec, values, longest, kinds) != nil {
		return kinds, nil // not what it seemed to be, or damaged: what could be read was searched
	}
	return kinds, nil
}

// searchReader looks at a part at a time. The parts overlap by the longest form
// that a value may have, which is six bytes for each: \u001b.
func searchReader(from io.Reader, values *redact.Scanner, longest int, kinds map[string]bool) error {
	keep := 6 * longest
	buf := make([]byte, 0, keep+1<<20)
	for {
		n, err := io.ReadFull(from, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		for _, f := range values.Known(buf) {
			kinds[f.Kind] = true
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		rest := copy(buf, buf[max(0, len(buf)-keep):])
		buf = buf[:rest]
	}
}
