package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/leak"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/server"
)

// words are what callers give where a text is wanted.
var words = []string{
	"last", "leaf", "otters", "", "no", "..", "../../etc/passwd", "/", "%00", "\x00", "\xff", "é", "-1", "1", "tag", "md", "jsonl", "claude-code",
	"2026-01-01T00:00:00Z", "24h", "good", "allow", "a b", strings.Repeat("x", 3000), `"`, "role:user OR (", "*",
}

// value draws a value for a schema, and now and then one that is wrong.
func value(t *rapid.T, s *openapi3.Schema, known []string) any {
	kind := "string"
	if types := s.Type.Slice(); len(types) > 0 {
		kind = types[0]
	}
	if rapid.IntRange(0, 9).Draw(t, "wrong") == 0 {
		kind = rapid.SampledFrom([]string{"string", "integer", "boolean", "array", "object", "null"}).Draw(t, "kind")
	}
	switch kind {
	case "integer":
		return rapid.SampledFrom([]int64{0, 1, 3, -1, 1 << 40, -1 << 63}).Draw(t, "number")
	case "boolean":
		return rapid.Bool().Draw(t, "bool")
	case "array":
		return []any{rapid.SampledFrom(append(words, known...)).Draw(t, "element")}
	case "object":
		return map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": map[string]any{"content": "otters"}}}}
	case "null":
		return nil
	}
	return rapid.SampledFrom(append(words, known...)).Draw(t, "text")
}

// randomRequest draws a request for an operation that is right, or nearly.
func randomRequest(t *rapid.T, doc *openapi3.T, known []string) (op *home.Operation, r *http.Request) {
	for op == nil || op.Route == "" {
		op = rapid.SampledFrom(home.Operations()).Draw(t, "operation")
	}
	method, path, _ := strings.Cut(op.Route, " ")
	described := doc.Paths.Find(path).GetOperation(method)
	query := make(url.Values)
	header := http.Header{"Accept": {rapid.SampledFrom([]string{"", "application/json", "application/x-ndjson", "text/event-stream"}).Draw(t, "accept")}}
	for _, p := range described.Parameters {
		text, ok := value(t, p.Value.Schema.Value, known).(string)
		if !ok {
			encoded, _ := json.Marshal(value(t, p.Value.Schema.Value, known)) // it is made of plain values
			text = string(encoded)
		}
		switch p.Value.In {
		case "path":
			if text == "" || rapid.Bool().Draw(t, "known") {
				text = rapid.SampledFrom(known).Draw(t, "id")
			}
			path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", url.PathEscape(text))
		case "query":
			if p.Value.Required || rapid.IntRange(0, 3).Draw(t, "given") == 0 {
				query.Set(p.Value.Name, text)
			}
		case "header":
			header.Set(p.Value.Name, text)
		}
	}
	body := transcript
	if described.RequestBody != nil && !op.Reads {
		members := make(map[string]any)
		for name, p := range described.RequestBody.Value.Content["application/json"].Schema.Value.Properties {
			if name != "provider" && name != "model" && name != "auto" && rapid.IntRange(0, 2).Draw(t, name) > 0 {
				members[name] = value(t, p.Value, known)
			}
		}
		text, _ := json.Marshal(members) // it is made of plain values
		body = string(text)
	}
	body = body[:len(body)-max(0, rapid.IntRange(-9, 1).Draw(t, "cut"))]
	r = httptest.NewRequest(method, "http://localhost"+path+"?"+query.Encode(), strings.NewReader(body))
	r.Header = header
	return op, r
}

// TestRandomRequests: whatever is asked, the server knows what to say, no error tells where its
// files are, and neither goroutines nor memory are left. It runs alone, so that it can tell.
func TestRandomRequests(t *testing.T) {
	doc := serve(t, nil).document()
	settings, err := home.LoadSettings(func(name string) string { return map[string]string{"COPPICE_SYNC": "never"}[name] })
	if err != nil {
		t.Fatal(err)
	}
	goroutines, heap := goleak.IgnoreCurrent(), heapInUse()
	asked := 0
	soak.Few(t, 5, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "otters-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		h, err := home.Open(context.Background(), dir, &home.Options{Create: true, Settings: settings})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		s, err := server.New(server.Options{Home: h})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		made, err := h.Sessions.Create(context.Background(), home.CreateRequest{Title: "Otters", Key: "otters"})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			op, r := randomRequest(t, doc, []string{made.Session, "otters", "last"})
			limit := time.Minute
			if op.Name == "entries.follow" || op.Name == "turns.watch" {
				limit = 5 * time.Millisecond // these go on for ever
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r.WithContext(ctx))
			cancel()
			status := answer{status: w.Code, body: w.Body.Bytes()}.outcome()
			if asked++; status == http.StatusInternalServerError || status >= 400 && strings.Contains(w.Body.String(), dir) {
				t.Fatalf("%s %s: %d %s", r.Method, r.URL, status, w.Body)
			}
		}
	})
	if err := leak.Find(time.Minute, goroutines); err != nil {
		t.Error(err)
	}
	if now := heapInUse(); now > heap+32<<20 {
		t.Errorf("%d MB are in use, and there were %d before", now>>20, heap>>20)
	}
	t.Logf("%d requests", asked)
}

// heapInUse returns how many bytes are in use.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
