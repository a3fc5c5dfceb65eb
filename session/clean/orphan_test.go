package clean_test

import (
	"errors"
	"testing"

	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
)

// A blob that nothing refers to, because its writer was killed before the line or
// the trash was emptied, keeps no secret from a sweep of everything.
func TestSweepFindsSecretsInBlobsThatNothingNames(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	storetest.MustCreate(t, st, "a", `{"type":"session","id":"a","version":1}`).Close()
	const token = "ghp_" + "R7x2Kd9QmZ4vTb1LsW8nYc5JpHf3Ge6Ua0Xi"
	secret := storetest.MustPut(t, st.Blobs(), []byte("export GITHUB_TOKEN="+token))
	other := storetest.MustPut(t, st.Blobs(), []byte("nothing to see"))
	one, err := clean.Look(t.Context(), st, "a")
	if err != nil || len(one.Secrets) != 0 {
		t.Fatalf("a sweep of one session finds %v, %v", one.Secrets, err)
	}
	sweep, err := clean.Look(t.Context(), st)
	if err != nil || len(sweep.Secrets) != 1 || sweep.Secrets[0].Blob != secret || sweep.Secrets[0].Session != "" {
		t.Fatalf("found %+v, %v", sweep.Secrets, err)
	}
	receipt, err := sweep.Apply(t.Context())
	if err != nil || len(receipt.Left) != 0 {
		t.Fatalf("left %v, %v", receipt.Left, err)
	}
	if _, err := st.Blobs().Get(t.Context(), secret); !errors.Is(err, store.ErrNotExist) {
		t.Errorf("the blob is still there: %v", err)
	}
	if _, err := st.Blobs().Get(t.Context(), other); err != nil {
		t.Error(err)
	}
}
