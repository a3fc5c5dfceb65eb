package index_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/coppice-dev/coppice/index"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := []struct{ query, want string }{
		{"deploy", `("deploy")`},
		{"deploy Script", `(("deploy") AND ("script"))`},
		{"deploy AND script", `(("deploy") AND ("script"))`},
		{"a OR b c", `(("a") OR (("b") AND ("c")))`},
		{"(a OR b) c", `((("a") OR ("b")) AND ("c"))`},
		{`"deploy script"`, `(body : "deploy script")`},
		{`"a"`, `("a")`},
		{"deploy -draft", `((("deploy")) NOT (("draft")))`},
		{"deploy NOT draft", `((("deploy")) NOT (("draft")))`},
		{"well-known", `(body : "well known" OR "wellknown")`},
		{"readFile", `(body : "read file" OR "readfile")`},
		{"read_file", `(body : "read file" OR "readfile")`},
		{"src/main.go", `(body : "src main go")`},
		{"http://x.org", `(body : "http x org")`},
		{"foo:bar", `(body : "foo bar")`},
		{"中文字", `(body : "中文 文字")`},
		{`"中文 go"`, `(body : "中文 文 go")`},
		{"or and not", `(("or") AND ("and") AND ("not"))`},
		{"ORACLE", `("oracle")`},
		{"a - b", `(("a") AND ("b"))`},
		{"-- ! a", `("a")`},
		{"café", `("cafe")`},
		{"role:user", ``},
		{"c++ role:user x", `(("c") AND ("x"))`},
		{"conf*", `("conf")`}, // the index is empty, so there is nothing it stands for
	}
	ix := newFixture(t).open(t)
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			got, err := ix.Match(tt.query)
			if err != nil || got != tt.want {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestQueryErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		query  string
		offset int
	}{
		{`say "hello`, 4},
		{"(a OR b", 0},
		{"a) b", 1},
		{"a OR", 4},
		{"OR a", 0},
		{"a OR -b", 7},
		{"(-a)", 3},
		{"a NOT", 2},
		{"role:", 5},
		{"since:soon x", 6},
		{"branch:dead", 7},
		{"kind:noise", 5},
		{"-since:today", 1},
		{"a OR role:user", 5},
		{"(role:user)", 1},
		{"", 0},
		{" !? ", 0},
	}
	ix := newFixture(t).open(t)
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			_, err := ix.Search(context.Background(), index.SearchOptions{Query: tt.query})
			var bad *index.QueryError
			if !errors.As(err, &bad) {
				t.Fatalf("got %v, want a QueryError", err)
			}
			if bad.Offset != tt.offset {
				t.Errorf("offset %d, want %d: %v", bad.Offset, tt.offset, err)
			}
		})
	}
}

func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		`a "b c" OR -d* (e f) role:user since:7d`, "中* 文字", `"`, "((((", "a OR OR b", "-", "NOT", "kind:text -kind:call", "^a + b : {c}", "a\x00b'\"",
	} {
		f.Add(query)
	}
	fx := newFixture(f)
	fx.say("one two readFile 中文字 w1 w2")
	ix := fx.open(f)
	f.Fuzz(func(t *testing.T, query string) {
		_, err := ix.Search(context.Background(), index.SearchOptions{Query: query})
		var bad *index.QueryError
		if err != nil && !errors.As(err, &bad) {
			t.Errorf("query %q: %v", query, err)
		}
		if bad != nil && (bad.Offset < 0 || bad.Offset > len(bad.Query)) {
			t.Errorf("query %q: offset %d", query, bad.Offset)
		}
		_ = fmt.Sprint(err)
	})
}
