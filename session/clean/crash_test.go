package clean_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/vfs"
	"github.com/coppice-dev/coppice/store/vfs/vfstest"
)

const crashPassword = "kX9#mQ2$vL"

// crashFixture fills a store in memory with a secret in every room. Sync is what
// it is by default: everything is durable.
func crashFixture(t *testing.T, disk *vfstest.Memory, secret string) {
	f := &fixture{t, openAt(t, disk), session.Options{BlobThreshold: 200}}
	long := strings.Repeat("line of output\n", 30) + "key " + secret
	source := base64.StdEncoding.EncodeToString(pack(t, `{"line":"`+secret+`"}`+"\n"))
	kept := session.Entry{Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: "coppice.import", Data: map[string]any{"data": source, "encoding": "zstd"}}}
	f.session("one", message("DB_PASSWORD="+crashPassword), result(long), kept)
	f.session("two", message("bare "+crashPassword), message("also "+secret))
	f.must(f.st.Archive(t.Context(), "two"))
	f.session("three", message("key "+secret))
	f.must(f.st.Remove(t.Context(), "three"))
	f.must(f.st.Notes("imports").Write(t.Context(), "x.json", []byte(`{"state":"`+secret+`"}`)))
	f.must(f.st.Close())
}

// redactAt redacts a store on a disk, with a new process.
func redactAt(t *testing.T, disk vfs.FS, do func(st *file.Store) error) error {
	t.Helper()
	st, err := file.Open("/store", &file.Options{FS: disk})
	if err != nil {
		return err
	}
	defer st.Close()
	return do(st)
}

func redactAll(t *testing.T) func(st *file.Store) error {
	return func(st *file.Store) error {
		s, err := clean.Look(t.Context(), st)
		if err == nil {
			_, err = s.Apply(t.Context())
		}
		return err
	}
}

// secretsLeft returns the files of a disk that have a secret.
func secretsLeft(t *testing.T, disk vfs.FS, secret string) []string {
	t.Helper()
	left := hasText(t, disk, secret, crashPassword)
	st := openAt(t, disk)
	sweep, err := clean.Look(t.Context(), st) // which also looks into what is kept of a source
	if err != nil {
		return append(left, err.Error())
	}
	for _, s := range sweep.Secrets {
		left = append(left, fmt.Sprintf("%+v", s))
	}
	return left
}

// The power fails at any moment of a redaction. Either nothing has changed, or
// what was begun is known and finished by whoever comes next.
func TestRedactionAfterPowerCuts(t *testing.T) {
	t.Parallel()
	secret := token(11)
	mem, rng := vfstest.NewMemory(), soak.Rand(t)
	crashFixture(t, mem, secret)
	type image struct {
		disk *vfstest.Memory
		when string
	}
	var images []image
	keep := func(when string) {
		// Most of what differs shows when all is lost.
		losses := []vfstest.Loss{vfstest.LoseAll, vfstest.LoseNothing, vfstest.LoseSome}
		if len(images)%5 > 0 {
			losses = losses[:1]
		}
		for _, loss := range losses {
			images = append(images, image{mem.CrashClone(rng, loss), fmt.Sprintf("%s, loss %d", when, loss)})
		}
	}
	disk := &vfstest.Faulty{FS: mem, Before: func(op vfstest.Op) error {
		if op.Kind.Mutates() {
			keep(fmt.Sprintf("before %v %s", op.Kind, op.Name))
		}
		return nil
	}}
	if err := redactAt(t, disk, redactAll(t)); err != nil {
		t.Fatal(err)
	}
	if left := secretsLeft(t, mem, secret); len(left) > 0 {
		t.Fatalf("without a cut: %v", left)
	}
	keep("at the end")
	finished, untouched := 0, 0
	for _, im := range images {
		anHourLater(t, im.disk)
		err := redactAt(t, im.disk, func(st *file.Store) error {
			begun, err := clean.Unfinished(t.Context(), st)
			if err != nil {
				return err
			}
			switch {
			case begun:
				finished++
			case len(hasText(t, im.disk, "REDACTED")) == 0:
				untouched++
				return redactAll(t)(st)
			}
			_, err = clean.Finish(t.Context(), st, clean.Options{})
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", im.when, err)
			continue
		}
		if left := secretsLeft(t, im.disk, secret); len(left) > 0 {
			t.Errorf("%s: left in %v", im.when, left)
		}
		checkCrashTexts(t, im.disk, im.when)
	}
	t.Logf("%d images: %d finished, %d untouched", len(images), finished, untouched)
	if finished < len(images)/2 || untouched == 0 {
		t.Error("the cuts did not come where they should")
	}
}

// anHourLater makes temporary files old.
func anHourLater(t *testing.T, disk vfs.FS) {
	t.Helper()
	for f, err := range openAt(t, disk).Parts().All(t.Context()) {
		if err == nil && f.Kind == store.PartTemp {
			err = disk.Chtimes(f.Place, time.Now().Add(-2*store.StaleAfter))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// checkCrashTexts makes sure that nothing but secrets is gone.
func checkCrashTexts(t *testing.T, disk vfs.FS, when string) {
	t.Helper()
	f := &fixture{t, openAt(t, disk), session.Options{}}
	got := strings.Join(append(f.texts("one"), f.texts("two")...), "|")
	want := "DB_PASSWORD=[REDACTED:password]|" + strings.Repeat("line of output\n", 30) + "key " + gone + "|bare [REDACTED:password]|also " + gone
	if got != want {
		t.Errorf("%s: the sessions say %q", when, got)
	}
}

// Each operation of the disk fails once during a redaction. Redacting again does
// the rest.
func TestRedactionUnderFaults(t *testing.T) {
	t.Parallel()
	secret := token(12)
	base := vfstest.NewMemory()
	crashFixture(t, base, secret)
	kinds := vfstest.OpCreate | vfstest.OpMkdir | vfstest.OpRename | vfstest.OpRemove | vfstest.OpWrite | vfstest.OpSync | vfstest.OpSyncDir
	count := &vfstest.Faulty{FS: base.CrashClone(nil, vfstest.LoseNothing)}
	if err := redactAt(t, count, redactAll(t)); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for n := int64(1); n <= count.Count(kinds); n += 3 {
		disk := base.CrashClone(nil, vfstest.LoseNothing)
		if redactAt(t, &vfstest.Faulty{FS: disk, Before: vfstest.FailAt(n, kinds, syscall.EIO)}, redactAll(t)) != nil {
			failed++
		}
		// What failed is finished by the next, also if that one looks for nothing new.
		if err := redactAt(t, disk, func(st *file.Store) error {
			if _, err := clean.Finish(t.Context(), st, clean.Options{}); err != nil {
				return err
			}
			return redactAll(t)(st)
		}); err != nil {
			t.Errorf("fault %d: %v", n, err)
			continue
		}
		if left := secretsLeft(t, disk, secret); len(left) > 0 {
			t.Errorf("fault %d: left in %v", n, left)
		}
		checkCrashTexts(t, disk, fmt.Sprint("fault ", n))
	}
	t.Logf("%d faults were reported", failed)
}
