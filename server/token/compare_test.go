package token_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	tokens "github.com/coppice-dev/coppice/server/token"
	"github.com/coppice-dev/coppice/store/memory"
)

// What is nearly right is refused with the same error as everything else that is wrong.
func TestWrongTokensAreRefusedAlike(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	defer st.Close()
	of := tokens.Of(st)
	right := add(t, of, tokens.Token{Name: "one", Access: home.Read})
	wrong := []string{right + "A", right + right, " " + right, right + "\x00", strings.ToLower(right), strings.Repeat("x", 1<<20)}
	for i := range right { // each beginning, also the empty one, and each with one wrong character
		other := "A"
		if right[i:i+1] == other {
			other = "B"
		}
		wrong = append(wrong, right[:i], right[i+1:], right[:i]+other+right[i+1:])
	}
	for _, given := range wrong {
		if got, err := of.Check(t.Context(), given); err != tokens.ErrRefused || got != (tokens.Token{}) {
			t.Errorf("%.80q: %+v, %v", given, got, err)
		}
	}
	if _, err := of.Check(t.Context(), right); err != nil {
		t.Error(err)
	}
}

// How long a comparison takes cannot be measured well enough to prove that it says nothing. So this
// looks at the source: a secret that is given is only ever hashed, which makes all of one length,
// and hashes are only ever compared by crypto/subtle, in find or by themselves.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "token.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	hashes, compared := uses(file, "Hash", "subtle.ConstantTimeCompare", "t.find")
	if hashes == 0 || compared != hashes {
		t.Errorf("%d of %d uses of a hash compare it in constant time", compared, hashes)
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Check" {
			if given, hashed := uses(f.Body, "secret", "hash"); given != 1 || hashed != 1 {
				t.Errorf("%d of %d uses of a secret hash it", hashed, given)
			}
			return
		}
	}
	t.Error("there is no Check")
}

// uses counts the uses of a variable or field, and those that are arguments of certain functions.
func uses(in ast.Node, name string, functions ...string) (all, arguments int) {
	is := func(e ast.Node) bool {
		switch e := e.(type) {
		case *ast.SelectorExpr:
			return e.Sel.Name == name
		case *ast.Ident:
			return e.Name == name
		}
		return false
	}
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if is(n) {
				all++
				return false
			}
		case *ast.Ident:
			if is(n) {
				all++
			}
		case *ast.Field: // where it is declared
			return !slices.ContainsFunc(n.Names, func(i *ast.Ident) bool { return is(i) })
		case *ast.CallExpr:
			if slices.Contains(functions, called(n.Fun)) {
				for _, a := range n.Args {
					if is(a) {
						arguments++
					}
				}
			}
		}
		return true
	})
	return all, arguments
}

// called returns the name of a function as it is called.
func called(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
	}
	return ""
}
