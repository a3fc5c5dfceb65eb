package clean_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/session/clean"
	"github.com/coppice-dev/coppice/store/file"
	"github.com/coppice-dev/coppice/store/storetest"
)

// A secret that a rule found in one spelling is found in the others.
func TestSecretIsFoundHoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	const secret = `kV9A05&Hl7é"ux/Q2`
	plain := func(v any) string {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(b.String())
	}
	goJSON, err := json.Marshal(map[string]string{"x": secret})
	if err != nil {
		t.Fatal(err)
	}
	python := `{"x": "kV9A05&Hl7\u00e9\"ux/Q2"}`
	texts := map[string]string{
		"bare":        "mysql -p" + secret,
		"plain JSON":  plain(map[string]string{"x": secret}),
		"Go's JSON":   string(goJSON),
		"Python's":    python,
		"nested":      "see " + plain(map[string]string{"x": string(goJSON)}),
		"with slash":  `{"x":"kV9A05&Hl7é\"ux\/Q2"}`,
		"as it was":   plain(map[string]string{"password": secret}),
		"in a shell":  `DB_PASSWORD="kV9A05&Hl7é\"ux/Q2"`,
		"deep in one": plain([]string{plain([]string{python})}),
	}
	for named, text := range map[string]string{
		"by its value": plain(map[string]string{"password": secret}), "escaped": `{\"password\": \"kV9A05&Hl7é\\\"ux/Q2\"}`,
	} {
		for name, other := range texts {
			t.Run(named+", "+name, func(t *testing.T) {
				st, err := file.Open(t.TempDir(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer st.Close()
				line := func(id, text string) string {
					return fmt.Sprintf(`{"type":"message","id":%q,"parent_id":null,"timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":[{"type":"text","text":{"content":%s}}]}}`, id, plain(text))
				}
				storetest.MustCreate(t, st, "a", `{"type":"session","id":"a","version":1}`, line("1", text), line("2", other)).Close()
				sweep, err := clean.Look(t.Context(), st)
				if err != nil {
					t.Fatal(err)
				}
				if r, err := sweep.Apply(t.Context()); err != nil || len(r.Left) > 0 {
					t.Fatalf("left %v, %v", r.Left, err)
				}
				left, err := os.ReadFile(st.Path("a"))
				if err != nil {
					t.Fatal(err)
				}
				for _, part := range []string{"kV9A05", "ux/Q2", `ux\/Q2`} {
					if bytes.Contains(left, []byte(part)) {
						t.Errorf("it is still there: %s", left)
						break
					}
				}
			})
		}
	}
}
