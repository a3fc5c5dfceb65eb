package backup_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
	"github.com/coppice-dev/coppice/upkeep/backup"
)

const packedTalk = "/home/.coppice/archive/talk.jsonl.zst"

// talk makes a session of long texts that hardly shrink, so that its archive has many frames.
func (w *world) talk(texts ...string) {
	w.Helper()
	s, err := session.Create(w.Context(), w.st, session.Header{ID: "talk"}, &session.Options{BlobThreshold: -1})
	w.must(err)
	w.say(s, texts...)
	w.must(s.Close())
}

func (w *world) say(s *session.Session, texts ...string) {
	w.Helper()
	for _, text := range texts {
		_, err := s.AppendMessage(session.RoleUser, []session.Content{session.Text(text)})
		w.must(err)
	}
}

// noise returns texts of which about eight fill a frame.
func noise(n int) (texts []string) {
	r := rand.New(rand.NewSource(int64(n)))
	for range n {
		b := make([]byte, 90<<10)
		r.Read(b)
		texts = append(texts, strings.NewReplacer("+", " ", "/", " ").Replace(base64.StdEncoding.EncodeToString(b)))
	}
	return texts
}

// damageTalk archives the session and damages its archive at a part of its length.
func (w *world) damageTalk(part float64) {
	w.Helper()
	w.must(w.st.Archive(w.Context(), "talk"))
	packed := []byte(tree(w.T, w.disk, "/home/.coppice/archive")["talk.jsonl.zst"])
	packed[int(part*float64(len(packed)))] ^= 0x55
	w.write(packedTalk, string(packed))
}

// lines returns the lines of a session that can be read.
func (w *world) lines(dir, name string) (lines []string) {
	w.Helper()
	log, err := w.open(w.disk, dir).Open(w.Context(), name)
	w.must(err)
	defer log.Close()
	for line, err := range log.Forward(w.Context(), 0) {
		w.must(err)
		if strings.HasPrefix(string(line.Data), "{") && strings.HasSuffix(string(line.Data), "}") {
			lines = append(lines, string(line.Data))
		}
	}
	return lines
}

func (w *world) restore(from string) {
	w.Helper()
	_, err := backup.Restore(w.Context(), backup.RestoreRequest{From: from, Dir: "/new", FS: w.disk})
	w.must(err)
}

// The lines after the damage in an archive count: a store reads them, too.
func TestBackupLooksBehindDamage(t *testing.T) {
	t.Parallel()
	for _, to := range targets {
		w := newWorld(t)
		texts := noise(40)
		w.talk(texts[:8]...)
		w.backup(to)
		s, err := session.Open(t.Context(), w.st, "talk", nil)
		w.must(err)
		w.say(s, texts[8:]...)
		w.must(s.Close())
		w.damageTalk(0.01)
		if r := w.backup(to); len(r.Older) > 0 {
			t.Errorf("%s: %+v", to, r)
		}
		w.restore(to)
		if home, back := w.lines("/home", "talk"), w.lines("/new", "talk"); len(home) < 25 || !slices.Equal(back, home) {
			t.Errorf("%s: the home has %d lines that can be read, and the restored one %d", to, len(home), len(back))
		}
	}
}

// An older version that has more but is damaged, too, may have something that was redacted where
// nobody can look. It stays only where nothing ever was.
func TestBackupKeepsNoSecretBehindDamage(t *testing.T) {
	t.Parallel()
	for _, redacted := range []bool{false, true} {
		w := newWorld(t)
		w.talk(noise(32)...)
		w.session("other", "DB_PASSWORD=kX9#mQ2$vL", "x")
		w.damageTalk(0.45) // in the middle
		w.backup("/b/dir")
		packed := tree(t, w.disk, "/home/.coppice/archive")["talk.jsonl.zst"]
		w.write(packedTalk, packed[:len(packed)/3])
		if redacted {
			sweep, err := clean.Look(t.Context(), w.st)
			w.must(err)
			_, _ = sweep.Apply(t.Context()) // which says that it could not look into all of the archive
		}
		r := w.backup("/b/dir")
		w.restore("/b/dir")
		if n := len(w.lines("/new", "talk")); len(r.Older) == 1 == redacted || (n > 20) == redacted {
			t.Errorf("redacted %v: %+v; %d lines come back", redacted, r, n)
		}
	}
}

// A version that is kept comes with the blobs that it names, unless one has something that was
// redacted.
func TestBackupKeepsTheBlobsOfTheBetterVersion(t *testing.T) {
	t.Parallel()
	const secret = "kX9#mQ2$vL"
	for _, to := range targets {
		for _, redacted := range []bool{false, true} {
			w := newWorld(t)
			long := "DB_PASSWORD=" + secret + "\n" + strings.Repeat("output\n", 60)
			w.session("leak", "hello", long)
			w.session("other", "DB_PASSWORD="+secret, "x")
			var blob string
			for below, text := range tree(t, w.disk, "/home/.coppice/blobs") {
				if strings.Contains(text, secret) {
					blob = ".coppice/blobs/" + below
				}
			}
			w.backup(to)
			head, _, _ := strings.Cut(tree(t, w.disk, "/home")["leak.jsonl"], "\n")
			w.write("/home/leak.jsonl", head+"\n\x00\x00\x00\n")
			w.must(w.disk.Remove("/home/" + blob))
			if redacted {
				sweep, err := clean.Look(t.Context(), w.st)
				w.must(err)
				_, err = sweep.Apply(t.Context())
				w.must(err)
			}
			for range 2 {
				if r := w.backup(to); len(r.Older) != 1 {
					t.Fatalf("%s: %+v", to, r)
				}
			}
			c, err := backup.Verify(t.Context(), backup.VerifyRequest{Path: to, FS: w.disk})
			if err != nil || len(c.Damaged) > 0 || len(c.Missing) == 1 != redacted {
				t.Errorf("%s, redacted %v: %+v, %v", to, redacted, c, err)
			}
			w.restore(to)
			if got := tree(t, w.disk, "/new")[blob]; (got == "") != redacted {
				t.Errorf("%s, redacted %v: the blob comes back as %.20q", to, redacted, got)
			}
		}
	}
}

// A log that cannot be read for a moment is not damaged.
func TestBackupTakesNoReadErrorForDamage(t *testing.T) {
	t.Parallel()
	base := newWorld(t)
	base.backup("/b/dir")
	base.write("/home/plain1.jsonl", "not JSON\n"+tree(t, base.disk, "/home")["plain1.jsonl"]+`{"type":"message"}`+"\n")
	taken := 0
	for at := 1; ; at++ {
		w, n := base.clone(), 0
		reading := w.open(&vfstest.Faulty{FS: w.disk, Before: func(op vfstest.Op) error {
			if op.Kind == vfstest.OpRead && op.Name == "/home/plain1.jsonl" {
				if n++; n == at || n == at+3 { // which may be the same in the next round
					return syscall.EIO
				}
			}
			return nil
		}}, "/home")
		r, err := backup.Make(t.Context(), reading, backup.Request{To: "/b/dir", FS: w.disk})
		if err != nil || len(r.Older) > 0 || r.Kept == (len(r.Unread) == 0) {
			t.Errorf("read %d fails: %+v, %v", at, r, err)
		}
		if !r.Kept {
			taken++
		}
		if n < at {
			break
		}
	}
	if taken < 2 {
		t.Errorf("the log was taken %d times", taken)
	}
}

// A list of what was redacted that is damaged stops no backup. But nothing of the older one is kept
// then, and the backup says why.
func TestBackupWithADamagedList(t *testing.T) {
	t.Parallel()
	for _, to := range targets {
		w, _ := damaged(t, to, false)
		below := ""
		for path := range tree(t, w.disk, "/home") {
			if strings.HasSuffix(path, "/redacted.json") {
				below = path
			}
		}
		w.write("/home/"+below, "{\x00")
		r := w.backup(to)
		if len(r.Older)+len(r.Unread) > 0 || len(r.Damaged) != 1 || r.Damaged[0].Path != below || r.Damaged[0].Why == "" {
			t.Errorf("%s: %+v; want %s", to, r, below)
		}
		w.comesBack(to, to)
		if home, back := tree(t, w.disk, "/home"), tree(t, w.disk, "/new"); back["plain1.jsonl"] != "" || back[below] != home[below] {
			t.Errorf("%s: something else than the home comes back", to)
		}
	}
}

// A copy of the home that cannot be deleted is named: it is in the clear.
func TestBackupSaysWhatItLeaves(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"objects", "incoming/"} {
		w := newWorld(t)
		w.must(w.disk.MkdirAll("/b", 0o700))
		faulty := &vfstest.Faulty{FS: w.disk, Before: func(op vfstest.Op) error {
			if op.Kind == vfstest.OpRemove && strings.Contains(op.Name, part) {
				return syscall.EIO
			}
			return nil
		}}
		r, err := backup.Make(t.Context(), w.st, backup.Request{To: "/b/file.tar.zst", FS: faulty})
		if !errors.Is(err, syscall.EIO) || strings.Count(fmt.Sprint(err), "/b/.file.tar.zst.incoming") != 1 || r == nil {
			t.Errorf("%s: %+v, %v", part, r, err)
		}
		holds(t, part, w.disk, "/b/file.tar.zst", w.kept(w.disk, "/home"))
	}
}

// The backup's copy of a blob that the home has lost may be damaged, too. Then both are gone, and
// everything else is backed up.
func TestBackupOfABlobThatIsDamagedInBothPlaces(t *testing.T) {
	t.Parallel()
	for _, object := range []string{"", "x", strings.Repeat("other bits", 1000)} {
		for _, gone := range []bool{false, true} {
			w := newWorld(t)
			w.backup("/b/dir")
			blob := blobOf(t, w)
			w.write(w.objectOf(blob), object)
			w.write("/home/"+blob, "bad")
			if gone {
				w.must(w.disk.Remove("/home/" + blob))
			}
			w.session("later", "hello", "x")
			for range 2 {
				w.backup("/b/dir")
			}
			w.restore("/b/dir")
			if got := tree(t, w.disk, "/new"); got["later.jsonl"] == "" || got[blob] == object && object != "" {
				t.Errorf("object %.5q, gone %v: the blob is %.20q, and %d files came back", object, gone, got[blob], len(got))
			}
		}
	}
}

// A blob that cannot be read for a moment stays in the backup.
func TestBackupKeepsABlobThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, to := range targets {
		for _, kind := range []vfstest.OpKind{vfstest.OpOpen, vfstest.OpRead} {
			w := newWorld(t)
			w.backup(to)
			blob := blobOf(t, w)
			good := tree(t, w.disk, "/home")[blob]
			reading := w.open(&vfstest.Faulty{FS: w.disk, Before: func(op vfstest.Op) error {
				if op.Kind == kind && op.Name == "/home/"+blob {
					return syscall.EIO
				}
				return nil
			}}, "/home")
			if r, err := backup.Make(t.Context(), reading, backup.Request{To: to, FS: w.disk}); err != nil || r.Kept {
				t.Errorf("%s, %v: %+v, %v", to, kind, r, err)
			}
			w.restore(to)
			if tree(t, w.disk, "/new")[blob] != good {
				t.Errorf("%s, %v: the blob is lost", to, kind)
			}
		}
	}
}

// A session that was removed is no better version of another one with its name, however damaged that
// is.
func TestBackupTakesNoOtherSessionForABetterVersion(t *testing.T) {
	t.Parallel()
	for _, to := range targets {
		w := newWorld(t)
		w.backup(to)
		w.must(w.st.Remove(t.Context(), "plain1"))
		for path := range tree(t, w.disk, "/home/.coppice/trash") {
			if strings.Contains(path, "plain1") {
				w.must(w.disk.Remove("/home/.coppice/trash/" + path))
			}
		}
		w.session("plain1", "the new conversation", "x")
		lines := strings.SplitAfter(tree(t, w.disk, "/home")["plain1.jsonl"], "\n")
		w.write("/home/plain1.jsonl", lines[0]+lines[1]+lines[2][:10])
		if r := w.backup(to); len(r.Older) > 0 {
			t.Errorf("%s: %+v", to, r.Older)
		}
		w.restore(to)
		if got := tree(t, w.disk, "/new")["plain1.jsonl"]; !strings.Contains(got, "the new conversation") {
			t.Errorf("%s: it comes back as %s", to, got)
		}
	}
}
