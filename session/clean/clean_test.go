package clean_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/file"
)

// token makes a secret: none that looks real may stand in the source.
func token(seed uint64) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	r := rand.New(rand.NewPCG(seed, 7))
	b := []byte("ghp_")
	for range 36 {
		b = append(b, alphabet[r.IntN(len(alphabet))])
	}
	return string(b)
}

const gone = "[REDACTED:github-token]"

func TestEntry(t *testing.T) {
	t.Parallel()
	secret := token(1)
	image := session.Image("image/png", base64.StdEncoding.EncodeToString([]byte(secret)))
	text := session.Text("a " + secret)
	text.Text.Extra = session.Fields{{Name: "x", Value: json.RawMessage(`"` + secret + `"`)}}
	e := session.Entry{Type: session.TypeMessage, ID: "keep-me", Message: &session.MessageEntry{
		Role: "assistant",
		Content: []session.Content{
			text,
			{Type: "thinking", Thinking: &session.ThinkingContent{Content: secret, Signature: secret, Redacted: secret}},
			session.ToolUse("c", "bash", map[string]any{"command": "curl " + secret, "env": map[string]any{"password": "kX9#mQ2$vL", "n": json.Number("1.50")}}),
			{Type: "tool_result", ToolResult: &session.ToolResultContent{ToolUseID: "c", Content: secret, Parts: []session.Content{session.Text(secret)}}},
			image,
			{Raw: json.RawMessage(`{"type":"odd","v":"` + secret + `"}`)},
		},
		Metadata: map[string]any{"m": []any{secret}},
	}}
	before, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	original := e
	found, err := clean.Entry(&e)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range found {
		paths = append(paths, f.Path)
	}
	want := []string{
		"message.content[0].text.content", "message.content[0].text.x", "message.content[1].thinking.content",
		"message.content[2].tool_use.input.command", "message.content[2].tool_use.input.env.password",
		"message.content[3].tool_result.content", "message.content[3].tool_result.parts[0].text.content",
		"message.content[5].v", "message.metadata.m[0]",
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("paths (-want +got)\n%s", diff)
	}
	c := e.Message.Content
	if c[1].Thinking.Content != gone || c[1].Thinking.Signature != "" || c[1].Thinking.Redacted != secret {
		t.Errorf("thinking became %+v", c[1].Thinking)
	}
	if diff := cmp.Diff(image.Image.Source.Data, c[4].Image.Source.Data); diff != "" {
		t.Errorf("the image changed (-want +got)\n%s", diff)
	}
	if e.ID != "keep-me" || e.ParentID != nil || !e.Timestamp.IsZero() || c[2].ToolUse.ID != "c" {
		t.Errorf("the entry became %+v", e)
	}
	if after, _ := original.MarshalJSON(); !bytes.Equal(after, before) {
		t.Error("what the entry pointed to was changed")
	}
	if found, err := clean.Entry(&e); found != nil || err != nil {
		t.Errorf("cleaning again finds %v, %v", found, err)
	}
}

// A thought that a sweep changes loses its signature; others keep theirs.
func TestSweptThought(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	e := message("x")
	e.Message.Role = session.RoleAssistant
	e.Message.Content = []session.Content{session.Thinking("a "+token(1), "S1"), session.Thinking("b", "S2"), session.Text("done")}
	f.session("one", e)
	f.apply(f.look())
	s, err := session.Open(t.Context(), f.st, "one", nil)
	f.must(err)
	defer s.Close()
	c, err := s.Context(session.ContextOptions{})
	f.must(err)
	got := c.Entries[0].Message.Content
	if got[0].Thinking.Content != "a "+gone || got[0].Thinking.Signature != "" || got[1].Thinking.Signature != "S2" || session.TextOf(got) != "done" {
		t.Errorf("the thoughts are %+v, %+v", got[0].Thinking, got[1].Thinking)
	}
}

// An entry without secrets is not touched at all.
func TestEntryWithoutSecrets(t *testing.T) {
	t.Parallel()
	e := session.Entry{Type: session.TypeCustom, Custom: &session.CustomEntry{CustomType: "x", Data: map[string]any{"a": 1}}}
	custom := e.Custom
	if found, err := clean.Entry(&e); found != nil || err != nil || e.Custom != custom {
		t.Errorf("found %v, %v", found, err)
	}
	e.Custom.Data["f"] = func() {}
	if err := clean.Append(&e); err == nil {
		t.Error("what cannot be written was cleaned")
	}
}

// Ids hold a session together, and are left alone whatever they look like.
func TestEntryKeepsIDs(t *testing.T) {
	t.Parallel()
	secret := token(1)
	e := session.Entry{Type: session.TypeLabel, ID: secret, ParentID: &secret, Label: &session.LabelEntry{TargetID: secret, Label: secret}}
	found, err := clean.Entry(&e)
	if err != nil || len(found) != 1 || e.ID != secret || *e.ParentID != secret || e.Label.TargetID != secret || e.Label.Label != gone {
		t.Errorf("found %v, %v; it became %+v", found, err, e.Label)
	}
}

// A session with the hook never writes a secret, in the log or in a blob.
func TestAppendHook(t *testing.T) {
	t.Parallel()
	st, err := file.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := session.Create(t.Context(), st, session.Header{}, &session.Options{Clean: clean.Append, BlobThreshold: 100})
	if err != nil {
		t.Fatal(err)
	}
	secret := token(2)
	for _, text := range []string{secret, strings.Repeat("x ", 100) + secret} {
		if _, err := s.AppendMessage(session.RoleTool, []session.Content{session.ToolResult("c", text, false)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if where := grep(t, st.Where(), secret); len(where) > 0 {
		t.Errorf("it is in %v", where)
	}
	if where := grep(t, st.Where(), gone); len(where) != 2 {
		t.Errorf("its replacement is in %v", where)
	}
}

func pack(t *testing.T, plain string) []byte {
	t.Helper()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer enc.Close()
	return enc.EncodeAll([]byte(plain), nil)
}

func unpack(t *testing.T, packed []byte) string {
	t.Helper()
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	plain, err := dec.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// What was kept of a source is cleaned line by line, and nothing in it moves.
func TestPacked(t *testing.T) {
	t.Parallel()
	secret := token(3)
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(secret[4:]+"\n", 4) + "-----END PRIVATE KEY-----\n"
	plain := `{"a":"` + secret + `"}` + "\n" + "text " + secret + "\n" + key + `{"password":"kX9mQ2vL"}` + "\n" + "the end"
	out, found, err := clean.Packed(pack(t, plain))
	if err != nil {
		t.Fatal(err)
	}
	got := unpack(t, out)
	if len(got) != len(plain) || strings.Contains(got, secret[4:]) || strings.Contains(got, "kX9mQ2vL") || len(found) != 4 {
		t.Errorf("%q became %q with %+v", plain, got, found)
	}
	if !strings.Contains(got, `{"a":"[REDACTED:github-token]*****************"}`) || !strings.HasSuffix(got, "\nthe end") {
		t.Errorf("got %q", got)
	}
	nothing := pack(t, "nothing\n")
	if out, found, err := clean.Packed(nothing); !bytes.Equal(out, nothing) || found != nil || err != nil {
		t.Errorf("what has no secret became %q, %v, %v", out, found, err)
	}
	if _, _, err := clean.Packed([]byte("not zstd")); err == nil {
		t.Error("what is not compressed was unpacked")
	}
}

func ExampleEntry() {
	e := session.Entry{Type: session.TypeMessage, Message: &session.MessageEntry{
		Role: "user", Content: []session.Content{session.Text("the password: kX9#mQ2$vL")},
	}}
	found, err := clean.Entry(&e)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(found[0].Kind, "at", found[0].Path)
	fmt.Println(e.Message.Content[0].Text.Content)
	// Output:
	// password at message.content[0].text.content
	// the password: [REDACTED:password]
}
