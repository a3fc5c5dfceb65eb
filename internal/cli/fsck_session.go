package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"time"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store"
)

// checkSession looks at one session: the log, the tree, the tool calls, the
// usage, the blobs, and the files that it is kept in.
func (c *checker) checkSession(ctx context.Context, name string) error {
	c.sessions++
	for _, check := range []func(context.Context, string) error{c.checkFiles, c.readLines, c.checkProblems, c.checkEnd} {
		err := check(ctx, name)
		var known reported
		switch {
		case errors.As(err, &known):
			return known.error
		case err != nil:
			return c.failed(name, err) // the other checks would fail as well
		}
	}
	return nil
}

// reported is an error of printing, as opposed to one of reading.
type reported struct{ error }

func (c *checker) tell(f finding) error {
	if err := c.found(f); err != nil {
		return reported{err}
	}
	return nil
}

// checkProblems asks package session.
func (c *checker) checkProblems(ctx context.Context, name string) error {
	s, err := session.Open(ctx, c.store, name, c.app.options())
	if err != nil {
		return err
	}
	defer s.Close()
	problems, err := s.Problems()
	if err != nil {
		return err
	}
	for _, p := range problems {
		f := finding{Session: name, Kind: string(p.Kind), Entry: p.EntryID, Offset: int64(p.Pos), Detail: p.Detail}
		if f.Offset == 0 {
			f.Offset = c.places[p.EntryID] // of what shows only in a context
		}
		if p.Kind == session.ProblemBlob && c.isCorruptBlob(ctx, p.Detail) {
			f.Kind = kindCorruptBlob
		}
		if err := c.tell(f); err != nil {
			return err
		}
	}
	return c.checkUsage(s, name)
}

var blobDigits = regexp.MustCompile(`[0-9a-f]{64}`)

// isCorruptBlob tells a blob that has other content than its name says from one
// that is missing.
func (c *checker) isCorruptBlob(ctx context.Context, detail string) bool {
	_, err := c.store.Blobs().Get(ctx, store.Ref("sha256:"+blobDigits.FindString(detail)))
	return errors.Is(err, session.ErrCorrupt)
}

// checkUsage looks for counts that cannot be.
func (c *checker) checkUsage(s *session.Session, name string) error {
	for e, err := range s.Entries() {
		if err != nil {
			return err
		}
		if e.Message == nil {
			continue
		}
		if detail := badUsage(e.Message); detail != "" {
			if err := c.tell(finding{Session: name, Kind: kindUsage, Entry: e.ID, Offset: c.places[e.ID], Detail: detail}); err != nil {
				return err
			}
		}
	}
	return nil
}

func badUsage(m *session.MessageEntry) string {
	for _, f := range m.Extra {
		if f.Name == "tokens" { // else it would have been read
			return fmt.Sprintf("it has %.40s tokens", f.Value)
		}
	}
	if m.Usage == nil {
		return ""
	}
	for _, f := range m.Usage.Extra {
		switch f.Name {
		case "input", "output", "cache_read", "cache_write", "reasoning", "cost_micro_usd":
			return fmt.Sprintf("its %s is %.40s", f.Name, f.Value)
		}
	}
	if u := m.Usage; u.Reasoning > u.Output {
		return fmt.Sprintf("%d tokens of reasoning in %d of output", u.Reasoning, u.Output)
	}
	return ""
}

// tornWait is how long the end of a log may look torn because somebody is
// writing it.
const tornWait = 100 * time.Millisecond

// checkEnd looks for bytes after the last whole line.
func (c *checker) checkEnd(ctx context.Context, name string) error {
	end, size, err := c.endOf(ctx, name)
	if err != nil || end == size {
		return err
	}
	time.Sleep(tornWait)
	again, sizeAgain, err := c.endOf(ctx, name)
	if err != nil || again != end || sizeAgain != size {
		return err // it was on its way
	}
	return c.tell(finding{
		Session: name, Kind: string(session.ProblemTail), Offset: end,
		Detail: fmt.Sprintf("%s after the last whole line; the next append deals with them", counted(int(size-end), "byte", "bytes")),
	})
}

// endOf returns where the last whole line ends, and where the file does.
func (c *checker) endOf(ctx context.Context, name string) (end, size int64, err error) {
	raw, err := c.store.OpenRaw(ctx, name)
	if err != nil {
		return 0, 0, err
	}
	defer raw.Close()
	log, err := c.store.Open(ctx, name)
	if err != nil {
		return 0, 0, err
	}
	defer log.Close()
	pos, err := log.End(ctx)
	return int64(pos), max(raw.Size(), int64(pos)), err
}

// readLines notes where the entries of a session are.
func (c *checker) readLines(ctx context.Context, name string) error {
	log, err := c.store.Open(ctx, name)
	if err != nil {
		return err
	}
	defer log.Close()
	clear(c.places)
	for line, err := range log.Forward(ctx, 0) {
		if err != nil {
			return err
		}
		if h, ok := rawjson.ScanHead(line.Data); ok && string(h.Type) != string(session.TypeSession) {
			c.places[string(h.ID)] = int64(line.Pos)
		}
	}
	return nil
}

// checkFiles looks at the files that a session is kept in.
func (c *checker) checkFiles(_ context.Context, name string) error {
	plain, archive := c.store.Path(name), c.store.ArchivePath(name)
	if isFile(plain) && isFile(archive) {
		err := c.tell(finding{
			Session: name, Kind: kindLeftover, Path: archive,
			Detail: "an interrupted archiving left it beside the plain file, which counts",
		})
		if err != nil {
			return err
		}
	}
	if info, err := os.Lstat(c.store.LockPath(name)); err == nil && info.Size() > 0 {
		err := c.tell(finding{
			Session: name, Kind: kindUnsynced, Path: c.store.LockPath(name),
			Detail: "the disk refused to confirm a write; the next append writes the session anew",
		})
		if err != nil {
			return err
		}
	}
	for _, path := range []string{plain, plain + ".bak", archive, c.store.LockPath(name)} {
		if w, ok := wideMode(path); ok {
			if err := c.tell(w.finding(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func isFile(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
