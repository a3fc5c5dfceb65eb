package upkeep_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/upkeep"
)

// token is a made-up secret; split, so that nobody takes this file for one.
func token(n int) string { return fmt.Sprintf("gh%s_%dfOurThB1tsT3stF1xKq7wZ2yLp5Vc9Jh3X4", "p", n) }

func text(words string) string { return `{"type":"text","text":{"content":"` + words + `"}}` }

// A blob that many sessions refer to counts once, and a secret is one, wherever it
// stands.
func TestRedactCountsABlobOnceAndGroupsBySecret(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir()+"/s", &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	ref, err := st.Blobs().Put(t.Context(), []byte("key: "+token(1)+"\nagain: "+token(1)+"\n"))
	must(t, err)
	result := fmt.Sprintf(`{"type":"tool_result","tool_result":{"tool_use_id":"c","is_error":false,"blob":%q,"size":3}}`, ref)
	for _, name := range []string{"a", "b", "c"} {
		write(t, st, name, message("1", "null", "tool", result, ""))
	}
	write(t, st, "d", message("1", "null", "user", text("use "+token(1)), ""), message("2", "1", "user", text("and "+token(2)), ""))
	look, err := upkeep.Redact(t.Context(), st, upkeep.RedactRequest{})
	must(t, err)
	var got []string
	for _, s := range look.Secrets {
		got = append(got, fmt.Sprintf("%s %s ×%d:", s.Kind, s.Preview, s.Count))
		for _, p := range s.Places {
			got = append(got, fmt.Sprintf("%s/%s/%s ×%d+%d", p.Session, p.Entry, p.Path, p.Count, p.Also))
		}
	}
	want := "github-token ghp_… (36 characters) ×3: a/1/message.content[0].tool_result.blob ×2+2 d/1/message.content[0].text.content ×1+0 " +
		"github-token ghp_… (36 characters) ×1: d/2/message.content[0].text.content ×1+0"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("found\n%s, want\n%s", s, want)
	}
	if look.Receipt != nil || strings.Contains(fmt.Sprintf("%+v", look), token(1)) {
		t.Errorf("looking did or told too much: %+v", look)
	}
	dropped := false
	done, err := upkeep.Redact(t.Context(), st, upkeep.RedactRequest{
		Apply:        true,
		DropIndex:    func(context.Context) (bool, error) { dropped = true; return true, nil },
		RebuildIndex: func(context.Context) (string, error) { return "there", nil },
	})
	must(t, err)
	if !dropped || done.Index != "there" || len(done.Receipt.Left) > 0 || strings.Join(done.Receipt.Sessions, "") != "abcd" || done.Receipt.Kinds["github-token"] != 4 {
		t.Errorf("dropped %v: %+v, %+v", dropped, done, done.Receipt)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		content, err := os.ReadFile(st.Path(name))
		must(t, err)
		if strings.Contains(string(content), token(1)) || strings.Contains(string(content), string(ref)) {
			t.Errorf("session %s still has it: %s", name, content)
		}
	}
}

// So does a source that sessions were imported from, and what somebody said comes
// before it.
func TestRedactCountsASourceOnce(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir()+"/s", &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	enc, err := zstd.NewWriter(nil)
	must(t, err)
	packed := base64.StdEncoding.EncodeToString(enc.EncodeAll([]byte("my token is "+token(1)), nil))
	source := fmt.Sprintf(`{"type":"custom","id":"import-1","parent_id":null,"timestamp":"2026-05-01T10:00:00Z","custom":{"custom_type":"coppice.import","data":{"data":%q}}}`, packed)
	for _, name := range []string{"a", "b"} {
		write(t, st, name, source, message("1", "import-1", "user", text("my token is "+token(1)), ""))
	}
	look, err := upkeep.Redact(t.Context(), st, upkeep.RedactRequest{})
	must(t, err)
	if len(look.Secrets) != 1 || look.Secrets[0].Count != 3 || len(look.Secrets[0].Places) != 3 {
		t.Fatalf("%+v", look.Secrets)
	}
	if p := look.Secrets[0].Places; p[0].Kept || p[1].Kept || !p[2].Kept || p[2].Also != 1 {
		t.Errorf("%+v", p)
	}
}

func TestRedactWithoutSecretsLeavesTheIndex(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir()+"/s", &file.Options{Sync: file.Never})
	must(t, err)
	defer st.Close()
	write(t, st, "a", message("1", "null", "user", hello, ""))
	done, err := upkeep.Redact(t.Context(), st, upkeep.RedactRequest{
		Apply:     true,
		DropIndex: func(context.Context) (bool, error) { t.Error("the index was dropped"); return true, nil },
	})
	must(t, err)
	if len(done.Secrets) > 0 || done.Index != "" || done.Receipt == nil {
		t.Errorf("%+v", done)
	}
}
