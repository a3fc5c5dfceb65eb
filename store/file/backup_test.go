package file_test

import (
	"os"
	"testing"

	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/storetest"
	"github.com/coppice-dev/coppice/store/vfs"
)

func TestRestoreBackup(t *testing.T) {
	t.Parallel()
	st := open(t, nil)
	putLog(t, vfs.OS{}, st.Path("a"), []byte("\x00\x00broken"))
	putLog(t, vfs.OS{}, st.Path("a")+".bak", []byte("\xef\xbb\xbf{\"id\":\"good\"}\n{}\ntorn"))
	if err := st.RestoreBackup(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	log := storetest.MustOpen(t, st, "a")
	wantLines(t, log, "\xef\xbb\xbf{\"id\":\"good\"}", "{}")
	if got := quarantined(t, st); len(got) != 1 || got[0] != "\x00\x00broken" {
		t.Errorf("in quarantine is %q", got)
	}
	if got := mustReadFile(t, st.Path("a")+".bak"); len(got) == 0 {
		t.Error("the backup is gone")
	}
	storetest.MustAppend(t, log, "{}") // and moves the torn end away
	wantLines(t, log, "\xef\xbb\xbf{\"id\":\"good\"}", "{}", "{}")
}

// A backup that is no better leaves everything as it is.
func TestRestoreBackupRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		backup string
		kind   error
		words  string
	}{
		"none":      {"", store.ErrNotExist, ".bak"},
		"damaged":   {"\x00\n{}\n", store.ErrCorrupt, "first line is not an entry either"},
		"no object": {"[1]\n", store.ErrCorrupt, "a.jsonl.bak"},
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t, nil)
			putLog(t, vfs.OS{}, st.Path("a"), []byte("broken"))
			if test.backup != "" {
				putLog(t, vfs.OS{}, st.Path("a")+".bak", []byte(test.backup))
			}
			wantKind(t, st.RestoreBackup(t.Context(), "a"), test.kind, "restore backup", test.words)
			if got := string(mustReadFile(t, st.Path("a"))); got != "broken" || quarantined(t, st) != nil {
				t.Errorf("the log has %q, quarantine %q", got, quarantined(t, st))
			}
		})
	}
	st := open(t, nil)
	wantKind(t, st.RestoreBackup(t.Context(), "../a"), store.ErrInvalid)
	must(t, st.Close())
	wantKind(t, st.RestoreBackup(t.Context(), "a"), store.ErrClosed)
}

// Who had the broken log open does not write into the restored one as if it
// were the same.
func TestRestoreBackupUnderAWriter(t *testing.T) {
	t.Parallel()
	skipWindows(t)
	st := open(t, nil)
	log := storetest.MustCreate(t, st, "a", `{"id":"broken"}`)
	putLog(t, vfs.OS{}, st.Path("a")+".bak", []byte("{\"id\":\"good\"}\n"))
	must(t, st.RestoreBackup(t.Context(), "a"))
	_, err := log.Append(t.Context(), 16, []byte("{}"))
	wantKind(t, err, store.ErrReplaced)
	if got := string(mustReadFile(t, st.Path("a"))); got != "{\"id\":\"good\"}\n" {
		t.Errorf("the log has %q", got)
	}
	if _, err := os.Stat(st.Path("a") + ".bak"); err != nil {
		t.Error(err)
	}
}
