package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
)

// requestsOf has the requests that each command makes.
var requestsOf = map[string][]any{
	"append":        {home.AppendRequest{}},
	"archive":       {home.ArchiveRequest{}},
	"backup":        {home.BackupRequest{}, home.VerifyBackupRequest{}},
	"branch":        {home.BranchRequest{}},
	"chat":          {home.TurnOptions{}},
	"compact":       {home.CompactRequest{}},
	"compare":       {home.CompareRequest{}},
	"context":       {home.ContextRequest{}, home.WhyRequest{}},
	"export":        {home.ExportRequest{}, home.ExportAllRequest{}},
	"follow":        {home.FollowRequest{}},
	"fork":          {home.ForkRequest{}},
	"fsck":          {home.CheckRequest{}},
	"images":        {home.ImagesRequest{}, home.ImageRequest{}, home.WriteImagesRequest{}},
	"import":        {home.ImportRequest{}},
	"label":         {home.LabelRequest{}},
	"ls":            {home.ListRequest{}},
	"merge":         {home.MergeRequest{}},
	"new":           {home.CreateRequest{}},
	"note":          {home.NoteRequest{}},
	"pin":           {home.PinRequest{}},
	"rate":          {home.RateRequest{}},
	"redact":        {home.RedactRequest{}},
	"rename":        {home.RenameRequest{}},
	"repair":        {home.RepairRequest{}, home.TidyRequest{}, home.ReadmitRequest{}},
	"restore":       {home.RestoreBackupRequest{}},
	"resume":        {home.ResumeRequest{}},
	"retain":        {home.RetainRequest{}},
	"revert":        {home.RevertRequest{}},
	"rm":            {home.RemoveRequest{}},
	"search":        {home.FindRequest{}},
	"show":          {home.OpenRequest{}, home.PathRequest{}, home.RawRequest{}},
	"stats":         {home.StatsRequest{}, home.PictureRequest{}},
	"tag":           {home.TagRequest{}, home.AutoTagRequest{}, home.SessionRequest{}},
	"trash empty":   {home.EmptyTrashRequest{}},
	"trash ls":      {home.TrashRequest{}},
	"trash restore": {home.RestoreRequest{}},
	"tree":          {home.OpenRequest{}},
	"unarchive":     {home.OpenRequest{}},
	"completion":    {home.SuggestRequest{}, home.EntryNamesRequest{}}, // what is typed, and what is shown
}

// unset has the fields that a command leaves alone.
var unset = map[string][]string{
	"append":      {"once", "message.usage.input"},
	"branch":      {"auto.provider", "auto.thinking"},
	"chat":        {"cwd", "questions"},
	"compact":     {"auto.provider", "auto.thinking"},
	"completion":  {"limit"},
	"follow":      {"after"},
	"new":         {"cwd"},
	"redact":      {"known"},
	"rename":      {"auto.provider", "auto.thinking"},
	"search":      {"offset"},
	"stats":       {"time_zone", "columns", "leaf", "points"},
	"trash empty": {"all", "before", "dry_run"},
}

// An error of the floor names a field, and each command has its own word for every field
// that it can set: a flag that it has, or an argument in its usage.
func TestEveryFieldThatCanBeWrongHasAName(t *testing.T) {
	t.Parallel()
	root := (&app{}).rootCommand()
	known := make(map[string]bool)
	carried := fieldsInErrors(t)
	for name, requests := range requestsOf {
		cmd, _, err := root.Find(strings.Fields(name))
		if err != nil {
			t.Fatal(err)
		}
		call := fieldsOf(cmd)
		for _, request := range requests {
			for _, field := range jsonNames(reflect.TypeOf(request)) {
				last := field[strings.LastIndexByte(field, '.')+1:]
				if !carried[field] && !carried[last] {
					continue
				}
				known[field], known[last] = true, true
				if slices.Contains(unset[name], field) {
					continue
				}
				word := call(field)
				flag, isFlag := strings.CutPrefix(word, "-")
				isFlag = isFlag && flag != strings.ToUpper(flag)
				switch {
				case word == field:
					t.Errorf("%s has no word for the field %s of %T: add it to fieldNames", name, field, request)
				case isFlag && cmd.Flags().Lookup(strings.TrimPrefix(flag, "-")) == nil && (len(flag) > 1 || cmd.Flags().ShorthandLookup(flag) == nil):
					t.Errorf("%s calls the field %s %s, but has no such flag", name, field, word)
				case !isFlag && strings.ToUpper(word) == word && !strings.Contains(cmd.UseLine(), strings.Trim(word, "+-")):
					t.Errorf("%s calls the field %s %s, but its usage is %s", name, field, word, cmd.UseLine())
				}
			}
		}
	}
	for _, op := range home.Operations() { // some are only for other programs
		for _, field := range jsonNames(op.Request) {
			known[field], known[field[strings.LastIndexByte(field, '.')+1:]] = true, true
		}
	}
	for field := range carried {
		isOutside := strings.HasPrefix(field, "entry.") || field == "text" // of an entry as JSON, and of Chat.Prompt
		if !known[field] && !isOutside {
			t.Errorf("an error of the floor is about the field %q, which no request has", field)
		}
	}
}

// besides are requests that commands make on the way, to complete and to name things.
var besides = []any{
	home.DistinctRequest{},
	home.FilterValuesRequest{},
	home.SessionRequest{},
	home.SessionNamesRequest{},
	home.EntryNamesRequest{},
	home.BlobRequest{}, // for other programs: commands read the entry that has the content
	// For faces that show a part at a time: commands print the whole.
	home.RowsRequest{},
	home.ShelfRequest{},
	home.SeekRequest{},
	home.MapRequest{},
	home.OutlineRequest{}, // an exported page has one of its own
}

// Every request of the floor belongs to a command.
func TestEveryRequestHasACommand(t *testing.T) {
	t.Parallel()
	for _, group := range []any{&home.Sessions{}, &home.Entries{}, &home.Search{}, &home.Transfer{}, &home.Upkeep{}, &home.Home{}} {
		for m := range reflect.TypeOf(group).Methods() {
			for in := range m.Type.Ins() {
				if in.Kind() == reflect.Struct && !slices.ContainsFunc(slices.AppendSeq(slices.Clone(besides), allRequests), func(r any) bool { return reflect.TypeOf(r) == in }) {
					t.Errorf("%s takes %v, which no command in requestsOf makes", m.Name, in)
				}
			}
		}
	}
}

func allRequests(yield func(any) bool) {
	for _, requests := range requestsOf {
		for _, r := range requests {
			if !yield(r) {
				return
			}
		}
	}
}

// jsonNames returns the JSON names of the fields of a request, and of the fields in them.
func jsonNames(is reflect.Type) (names []string) {
	for f := range is.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" || !f.IsExported():
			continue
		case f.Anonymous && name == "":
			names = append(names, jsonNames(inner)...)
			continue
		}
		names = append(names, name)
		if inner.Kind() == reflect.Struct && strings.HasPrefix(inner.PkgPath(), "github.com/coppice-dev/") {
			for _, below := range jsonNames(inner) {
				names = append(names, name+"."+below)
			}
		}
	}
	return names
}

// fieldsInErrors returns the fields that the source of the floor says errors are about.
func fieldsInErrors(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../../../home/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	makers := map[string]int{ // how many of the first arguments are fields
		"wrong": 1, "wrongAs": 1, "exclude": 2, "notNegative": 1, "checkUTF8": 1, "checkName": 1, "cleanTags": 1,
	}
	inBraces := regexp.MustCompile(`{([a-z_.]+)}`)
	fields := make(map[string]bool)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			maker, ok := call.Fun.(*ast.Ident)
			if !ok || makers[maker.Name] == 0 {
				return true
			}
			for i, arg := range call.Args {
				literal, ok := arg.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					continue
				}
				text, _ := strconv.Unquote(literal.Value)
				if i < makers[maker.Name] {
					fields[text] = true
				}
				for _, found := range inBraces.FindAllStringSubmatch(text, -1) {
					fields[found[1]] = true
				}
			}
			return true
		})
	}
	return fields
}
