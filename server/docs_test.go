package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/server"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/transcript/transcripttest"
)

const module = "github.com/coppice-dev/coppice/"

// TestDocsAreTheComments holds docs.json, which describes the operations to those who do not
// read Go, to the comments of the source. go generate writes it.
func TestDocsAreTheComments(t *testing.T) {
	t.Parallel()
	c := &comments{t: t, files: make(map[string][]*ast.File), docs: make(map[string]string), seen: make(map[reflect.Type]bool), constants: make(map[string]string)}
	c.eachConstant(module+"home", func(v *ast.ValueSpec, value string) { c.constants[v.Names[0].Name] = value })
	for _, op := range home.Operations() {
		c.operation(op)
		for _, is := range []reflect.Type{op.Request, op.Result, op.Event} {
			c.add(is)
		}
	}
	for _, is := range []reflect.Type{reflect.TypeFor[server.Message](), reflect.TypeFor[session.MessageEntry]()} {
		c.add(is)
	}
	for is := range c.seen {
		if is.Kind() == reflect.String {
			c.values(is)
		}
	}
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("", " ")
	if err := out.Encode(c.docs); err != nil {
		t.Fatal(err)
	}
	transcripttest.Golden(t, "docs.json", text.String())
}

// comments collects the comments of what operations take and return.
type comments struct {
	t     *testing.T
	files map[string][]*ast.File // of packages
	docs  map[string]string      // by operation, type, type and field, type and value
	// constants are those of package home, with their values.
	constants map[string]string
	seen      map[reflect.Type]bool
}

// source returns the files of a package.
func (c *comments) source(pkg string) []*ast.File {
	if files, ok := c.files[pkg]; ok {
		return files
	}
	paths, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(strings.TrimPrefix(pkg, module)), "*.go"))
	if err != nil || len(paths) == 0 {
		c.t.Fatalf("%s has no files: %v", pkg, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			c.t.Fatal(err)
		}
		c.files[pkg] = append(c.files[pkg], file)
	}
	return c.files[pkg]
}

// operation takes the comment of the method.
func (c *comments) operation(op *home.Operation) {
	group, name, _ := strings.Cut(op.Name, ".")
	name = strings.ReplaceAll(name, "_", "")
	for _, file := range c.source(module + "home") {
		for _, d := range file.Decls {
			method, ok := d.(*ast.FuncDecl)
			if !ok || method.Recv == nil || !strings.EqualFold(method.Name.Name, name) || !method.Name.IsExported() {
				continue
			}
			if of, ok := method.Recv.List[0].Type.(*ast.StarExpr); ok && strings.EqualFold(of.X.(*ast.Ident).Name, group) {
				names := jsonNames(op.Request)
				for name, called := range jsonNames(op.Result) {
					if names[name] == "" {
						names[name] = called
					}
				}
				c.note(op.Name, method.Name.Name, method.Doc.Text(), names)
			}
		}
	}
}

// add takes the comments of a type, and of those in it.
func (c *comments) add(is reflect.Type) {
	if is == nil {
		return
	}
	switch is.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		c.add(is.Elem())
		return
	}
	if c.seen[is] || !strings.HasPrefix(is.PkgPath(), module) {
		return
	}
	c.seen[is] = true
	for _, file := range c.source(is.PkgPath()) {
		for _, d := range file.Decls {
			general, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				if declared, ok := spec.(*ast.TypeSpec); ok && declared.Name.Name == is.Name() {
					c.declared(is, declared, general)
				}
			}
		}
	}
	if is.Kind() == reflect.Struct {
		for f := range is.Fields() {
			if f.IsExported() && f.Tag.Get("json") != "-" {
				c.add(f.Type)
			}
		}
	}
}

func (c *comments) declared(is reflect.Type, declared *ast.TypeSpec, in *ast.GenDecl) {
	doc := declared.Doc.Text()
	if doc == "" {
		doc = in.Doc.Text()
	}
	names := map[string]string{}
	body, isStruct := declared.Type.(*ast.StructType)
	if isStruct {
		names = jsonNames(is)
	}
	c.note(is.String(), declared.Name.Name, doc, names)
	if !isStruct {
		return
	}
	above := ""
	for _, field := range body.Fields.List {
		for _, name := range field.Names {
			doc := join(field.Doc.Text(), field.Comment.Text())
			if doc == "" && strings.Contains(above, " and "+name.Name+" ") { // it is about both
				doc = above
			}
			above = doc
			if called := names[name.Name]; called != "" {
				c.note(is.String()+"."+called, name.Name, doc, names)
			}
		}
	}
}

// values takes the constants of a type, of which other packages may have some.
func (c *comments) values(is reflect.Type) {
	for pkg := range c.files {
		c.eachConstant(pkg, func(v *ast.ValueSpec, value string) {
			if of := types.ExprString(v.Type); of == is.Name() && pkg == is.PkgPath() || of == is.String() {
				c.docs[is.String()+"="+value] = c.inWords(v.Names[0].Name, join(v.Doc.Text(), v.Comment.Text()), nil)
			}
		})
	}
}

// eachConstant calls do for the constants of a package that are texts or numbers.
func (c *comments) eachConstant(pkg string, do func(v *ast.ValueSpec, value string)) {
	for _, file := range c.source(pkg) {
		for _, d := range file.Decls {
			general, ok := d.(*ast.GenDecl)
			if !ok || general.Tok != token.CONST {
				continue
			}
			for _, spec := range general.Specs {
				v := spec.(*ast.ValueSpec)
				if len(v.Values) != 1 {
					continue
				}
				if literal, ok := v.Values[0].(*ast.BasicLit); ok {
					value, err := strconv.Unquote(literal.Value)
					if err != nil { // a number
						value = strings.ReplaceAll(literal.Value, "_", ",")
					}
					do(v, value)
				}
			}
		}
	}
}

func join(above, beside string) string { return strings.TrimSpace(above + "\n" + beside) }

// jsonNames has the names of the fields of a struct in JSON.
func jsonNames(is reflect.Type) map[string]string {
	names := make(map[string]string)
	for _, f := range reflect.VisibleFields(is) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names[f.Name] = name
		}
	}
	return names
}

func (c *comments) note(key, name, doc string, names map[string]string) {
	if text := c.inWords(name, doc, names); text != "" {
		c.docs[key] = text
	}
}

var (
	goName  = regexp.MustCompile(`\b(?:session\.|home\.)?[A-Z][A-Za-z]+\b`)
	anError = regexp.MustCompile(`\ban? \*[\w.]+Error\b`)
	aMethod = regexp.MustCompile(`\b(see|and|that|with) ([A-Z]\w+)`)
	itself  = regexp.MustCompile(`^(?:is|are) `)
)

// inWords returns a comment without what only Go has: fields have the names that they have in
// JSON, constants are their values, and errors their kinds.
func (c *comments) inWords(name, doc string, names map[string]string) string {
	if doc = strings.TrimSpace(doc); doc == "" {
		return ""
	}
	if rest, ok := strings.CutPrefix(doc, name+" "); ok && !strings.HasPrefix(rest, "and ") && !strings.HasPrefix(rest, "or ") {
		doc = itself.ReplaceAllString(rest, "")
	}
	doc = anError.ReplaceAllString(doc, "an error")
	doc = aMethod.ReplaceAllStringFunc(doc, asOperation)
	var b strings.Builder
	end := 0
	for _, at := range goName.FindAllStringIndex(doc, -1) {
		b.WriteString(doc[end:at[0]])
		b.WriteString(c.called(name, doc, at[0], at[1], names))
		end = at[1]
	}
	return sentence(paragraphs(b.String() + doc[end:]))
}

// called returns what a name in a comment is to those who do not read Go.
func (c *comments) called(about, doc string, from, to int, names map[string]string) string {
	name := doc[from:to]
	begins := from == 0 || strings.HasSuffix(strings.TrimSpace(doc[:from]), ".") // and may be any word
	switch {
	case sentinels[name] != nil:
		return fmt.Sprintf("an error of the kind `%s`", home.KindOf(sentinels[name]))
	case begins && !strings.HasPrefix(doc[to:], " is ") && !strings.HasPrefix(doc[to:], " are ") && !strings.HasPrefix(doc[to:], " and "):
		return name
	case names[name] != "":
		return "`" + names[name] + "`"
	case c.constants[name] != "":
		return "`" + c.constants[name] + "`"
	case name == about && unicode.IsUpper(rune(about[0])) && strings.HasPrefix(doc[to:], " "):
		return "it"
	}
	return name
}

// asOperation returns a mention of a method with the name of the operation, if there is one
// that is called so.
func asOperation(mention string) string {
	word, name, _ := strings.Cut(mention, " ")
	for _, op := range home.Operations() {
		_, method, _ := strings.Cut(op.Name, ".")
		if strings.EqualFold(name, strings.ReplaceAll(method, "_", "")) {
			return word + " `" + op.Name + "`"
		}
	}
	return mention
}

// paragraphs joins the lines of a text, except those of lists.
func paragraphs(text string) string {
	var all []string
	for p := range strings.SplitSeq(text, "\n\n") {
		items := strings.Split(p, "\n  - ")
		for i := range items {
			items[i] = strings.Join(strings.Fields(items[i]), " ")
		}
		all = append(all, strings.Join(items, "\n- "))
	}
	return strings.Join(all, "\n\n")
}

func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

var sentinels = map[string]error{
	"session.ErrConflict": session.ErrConflict, "session.ErrExist": session.ErrExist, "session.ErrInvalid": session.ErrInvalid,
	"session.ErrNotExist": session.ErrNotExist, "session.ErrTooLarge": session.ErrTooLarge, "session.ErrLocked": session.ErrLocked,
	"session.ErrCorrupt": session.ErrCorrupt, "ErrPartial": home.ErrPartial, "ErrExist": session.ErrExist,
}
