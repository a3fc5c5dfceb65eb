package main

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// name is an exported name.
type name struct {
	pkg  string // its path in the repository
	kind string // const, var, func, type, method or field
	text string // its declaration
}

func (n name) String() string { return "pkg " + n.pkg + ", " + n.text }

// private are the directories at the top whose packages only we use.
var private = []string{"bench", "cmd", "examples", "interop", "scripts", "tools"}

// exported returns the exported names of all packages below a directory that others
// can import, those of nested modules too.
func exported(root string) ([]name, error) {
	var all []name
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if base := d.Name(); rel != "." && (slices.Contains(private, rel) || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") ||
			base == "internal" || base == "testdata" || base == "node_modules") {
			return fs.SkipDir
		}
		p, err := parse(path)
		if err != nil {
			return err
		}
		p.path = filepath.ToSlash(rel)
		all = append(all, p.list()...)
		return nil
	})
	return all, err
}

// pkg is what a package declares.
type pkg struct {
	path    string
	decls   []ast.Decl
	types   map[string]*ast.TypeSpec
	methods map[string][]*ast.FuncDecl // by the type of their receiver
	names   []name
}

// parse reads the package in a directory, as it is on Linux. That of a program is empty.
func parse(dir string) (*pkg, error) {
	p := &pkg{types: map[string]*ast.TypeSpec{}, methods: map[string][]*ast.FuncDecl{}}
	linux := build.Default
	linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", "amd64", false
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.IsDir() || !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		match, err := linux.MatchFile(dir, f.Name())
		if err != nil {
			return nil, err
		}
		if !match {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if parsed.Name.Name != "main" {
			p.add(parsed.Decls)
		}
	}
	return p, nil
}

func (p *pkg) add(decls []ast.Decl) {
	p.decls = append(p.decls, decls...)
	for _, d := range decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				base := baseName(d.Recv.List[0].Type)
				p.methods[base] = append(p.methods[base], d)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					p.types[s.Name.Name] = s
				}
			}
		}
	}
}

// note adds a name, if it is exported.
func (p *pkg) note(ident, kind, text string) {
	if ast.IsExported(ident) {
		p.names = append(p.names, name{p.path, kind, text})
	}
}

func (p *pkg) list() []name {
	for _, d := range p.decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				p.note(d.Name.Name, "func", "func "+d.Name.Name+parameters(d.Type.TypeParams)+signature(d.Type))
			}
		case *ast.GenDecl:
			p.declared(d)
		}
	}
	return p.names
}

func (p *pkg) declared(d *ast.GenDecl) {
	var repeated ast.Expr // the type of a constant is that of the one above, if it states nothing
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				p.typ(s)
			}
		case *ast.ValueSpec:
			if s.Type != nil || s.Values != nil {
				repeated = s.Type
			}
			for _, ident := range s.Names {
				text := d.Tok.String() + " " + ident.Name
				if repeated != nil {
					text += " " + types.ExprString(repeated)
				}
				p.note(ident.Name, d.Tok.String(), text)
			}
		}
	}
}

func (p *pkg) typ(s *ast.TypeSpec) {
	text := "type " + s.Name.Name + parameters(s.TypeParams)
	if s.Assign.IsValid() {
		text += " ="
	}
	switch t := s.Type.(type) {
	case *ast.StructType:
		text += " struct"
	case *ast.InterfaceType:
		text += " interface"
		p.members(text, t)
	default:
		text += " " + types.ExprString(t)
	}
	p.note(s.Name.Name, "type", text)
	p.selectors(s.Name.Name, text, s, map[string]bool{})
}

// members lists what an interface asks for.
func (p *pkg) members(of string, t *ast.InterfaceType) {
	for _, m := range t.Methods.List {
		if len(m.Names) == 0 {
			p.names = append(p.names, name{p.path, "method", of + ", " + types.ExprString(m.Type)})
		}
		for _, ident := range m.Names {
			p.note(ident.Name, "method", of+", "+ident.Name+signature(m.Type.(*ast.FuncType)))
		}
	}
}

// selectors lists the fields and methods of the type s as those of owner: of itself,
// and of the types of the package that it embeds and nobody else can name. Of names
// that are there twice, the outer one counts.
func (p *pkg) selectors(owner, of string, s *ast.TypeSpec, seen map[string]bool) {
	for _, m := range p.methods[s.Name.Name] {
		if ident := m.Name.Name; !seen[ident] {
			seen[ident] = true
			receiver := strings.Replace(types.ExprString(m.Recv.List[0].Type), s.Name.Name, owner, 1)
			p.note(ident, "method", "method ("+receiver+") "+ident+signature(m.Type))
		}
	}
	t, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	var hidden []*ast.TypeSpec
	for _, f := range t.Fields.List {
		text := types.ExprString(f.Type)
		for _, ident := range f.Names {
			if !seen[ident.Name] {
				seen[ident.Name] = true
				p.note(ident.Name, "field", of+", "+ident.Name+" "+text)
			}
		}
		if base := baseName(f.Type); f.Names == nil && !seen[base] {
			seen[base] = true
			p.note(base, "field", of+", embedded "+text)
			if inner := p.types[base]; inner != nil && !ast.IsExported(base) {
				hidden = append(hidden, inner)
			}
		}
	}
	for _, inner := range hidden {
		p.selectors(owner, of, inner, seen)
	}
}

// baseName returns the name of the type that is embedded, or that a method is of:
// without a pointer, a package and type parameters.
func baseName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return baseName(t.X)
	case *ast.IndexExpr:
		return baseName(t.X)
	case *ast.IndexListExpr:
		return baseName(t.X)
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// signature returns the parameters and results of a function.
func signature(f *ast.FuncType) string {
	return strings.TrimPrefix(types.ExprString(f), "func")
}

// parameters returns the parameters of a type, as in [K comparable, V any].
func parameters(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	var all []string
	for _, f := range list.List {
		for _, ident := range f.Names {
			all = append(all, ident.Name+" "+types.ExprString(f.Type))
		}
	}
	return "[" + strings.Join(all, ", ") + "]"
}
