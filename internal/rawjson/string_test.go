package rawjson_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"unsafe"

	"github.com/coppice-dev/coppice/internal/rawjson"
)

// checkString compares String and StringBytes with encoding/json on a literal.
func checkString(t *testing.T, b []byte) {
	t.Helper()
	var want *string
	wantOK := bare(b) && json.Unmarshal(b, &want) == nil && want != nil
	s, ok := rawjson.String(b)
	if ok != wantOK || ok && s != *want || !ok && s != "" {
		t.Fatalf("String(%.80q) = %q, %v", b, s, ok)
	}
	raw, ok := rawjson.StringBytes(b, []byte("before"))
	if ok != wantOK || ok && string(raw) != *want || !ok && raw != nil {
		t.Fatalf("StringBytes(%.80q) = %q, %v", b, raw, ok)
	}
}

func TestStringAgrees(t *testing.T) {
	t.Parallel()
	for _, s := range nasty() {
		checkString(t, []byte(s))
		checkString(t, []byte(`"`+s+`"`))
	}
}

func TestStringLong(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("long enough to leave the stack\n\xff\u2028"), 40)
	lit := rawjson.AppendString(nil, string(text))
	checkString(t, lit)
	checkString(t, append(append([]byte{'"'}, bytes.Repeat([]byte{0xff}, 500)...), '"'))
}

func TestStringBytesCopies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lit    string
		copied bool
	}{
		{`"plain"`, false},
		{`"é世"`, false},
		{`"a\nb"`, true},
		{"\"a\xffb\"", true},
	} {
		lit := []byte(c.lit)
		dst := make([]byte, 3, 64)
		s, ok := rawjson.StringBytes(lit, dst)
		if !ok {
			t.Fatalf("StringBytes(%q) is not ok", lit)
		}
		want := unsafe.SliceData(lit[1:])
		if c.copied {
			want = &dst[:4][3]
		}
		if unsafe.SliceData(s) != want {
			t.Errorf("StringBytes(%q) does not point where it should", lit)
		}
	}
}
