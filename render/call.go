package render

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coppice-dev/coppice/internal/rawjson"
	"github.com/coppice-dev/coppice/session"
)

// mainArguments are the arguments that say most about a call and need no name. If a call has
// several, the first one counts: a search is known by what it looks for, not by where.
var mainArguments = []string{
	"command", "cmd", "pattern", "query", "file_path", "filePath", "absolute_path", "notebook_path", "path", "url",
	"description", "prompt", "code", "script", "source", "input", "text",
}

// places are the arguments that say where a search looks.
var places = []string{"path", "file_path", "filePath", "dir_path", "directory"}

// longArgument is the size in bytes from which an argument comes after shorter ones, which
// would otherwise not be seen in a line.
const longArgument = 40

// CallGist describes a tool call as a person would: the tool, what it works on,
// and the other arguments.
func CallGist(t *session.ToolUseContent) string {
	if edits := Edits(t); edits != nil {
		return OneLine(t.Name, 0) + " " + EditsGist(edits)
	}
	parts := []string{OneLine(t.Name, 0)}
	main, text := MainArgument(t)
	if main != "" {
		parts = append(parts, OneLine(text, 0))
	}
	var long []string
	for _, key := range slices.Sorted(maps.Keys(t.Input)) {
		if key == main || t.Input[key] == nil {
			continue
		}
		if said := argumentBeside(main, key, t.Input[key]); len(said) > longArgument {
			long = append(long, said)
		} else {
			parts = append(parts, said)
		}
	}
	return strings.Join(append(parts, long...), " ")
}

// argumentBeside is argument, worded as a person would put it next to a main argument.
func argumentBeside(main, key string, v any) string {
	text, isText := v.(string)
	switch {
	case !isText || text == "":
	case (main == "pattern" || main == "query") && slices.Contains(places, key):
		return "in " + OneLine(text, 0)
	case (main == "command" || main == "cmd") && key == "description":
		return "# " + OneLine(text, 0)
	}
	return argument(key, v)
}

// EditsGist says which files are changed, and how much: "a.go, b.go +3 −1".
func EditsGist(edits []Edit) string {
	var paths []string
	added, removed := 0, 0
	for i := range edits {
		e := &edits[i]
		path := OneLine(e.Path, 0)
		switch {
		case e.Op == Delete:
			path = "deletes " + path
		case e.To != "":
			path += " → " + OneLine(e.To, 0)
		}
		if n := len(paths); n == 0 || paths[n-1] != path {
			paths = append(paths, path)
		}
		more, less := e.Counts()
		added, removed = added+more, removed+less
	}
	text := strings.Join(paths, ", ")
	if added > 0 {
		text += " +" + Thousands(added)
	}
	if removed > 0 {
		text += " −" + Thousands(removed)
	}
	return text
}

// MainArgument returns the argument that says most about a call, as text, or "" if there is
// none.
func MainArgument(t *session.ToolUseContent) (key, text string) {
	for _, key := range mainArguments {
		if text := commandText(t.Input[key]); text != "" {
			return key, text
		}
	}
	return "", ""
}

// commandText returns the text of a main argument. A command may be a list of words; a shell
// that only runs the last of them is not worth showing.
func commandText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		words, ok := stringList(v)
		if !ok {
			return ""
		}
		if len(words) == 3 && (words[1] == "-c" || words[1] == "-lc") {
			return words[2]
		}
		return strings.Join(words, " ")
	}
	return ""
}

// argument returns a named value for a line: lists of words are joined, other lists are
// counted, and everything else is compact JSON.
func argument(key string, v any) string {
	key = OneLine(key, 0)
	switch v := v.(type) {
	case string:
		return key + "=" + OneLine(v, 0)
	case []any:
		if words, ok := stringList(v); ok && len(words) > 0 {
			return key + "=" + OneLine(strings.Join(words, ", "), 0)
		}
		if len(v) > 0 {
			return counted(key, len(v))
		}
	case json.RawMessage: // a large one, which was not decoded
		n := 0
		if err := rawjson.Array(v, func([]byte) error { n++; return nil }); err == nil && n > 0 {
			return counted(key, n)
		}
	}
	return key + "=" + OneLine(compactJSON(v), 0)
}

// counted says how many items a list has.
func counted(key string, n int) string {
	if strings.HasSuffix(key, "s") {
		return Counted(n, singular(key), key)
	}
	return key + "=" + Counted(n, "item", "items")
}

// stringList returns the items of a list whose items are all strings, or blocks of text as
// the providers write them.
func stringList(items []any) ([]string, bool) {
	words := make([]string, len(items))
	for i, item := range items {
		if block, ok := item.(map[string]any); ok && block["type"] == "text" {
			item = block["text"]
		}
		word, ok := item.(string)
		if !ok {
			return nil, false
		}
		words[i] = word
	}
	return words, true
}

func singular(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(noun, "s")
}

func compactJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "?"
	}
	return strings.TrimSpace(b.String())
}

// exitLine is a line with which tools say how a command ended.
var exitLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?mi)^\W{0,2}(?:command )?exit(?:ed with)?[ _]code:? (\d+)\W{0,2}$`)
})

// ExitCode returns the number with which a command ended, if what its tool answered says so at its
// beginning or at its end.
func ExitCode(t *session.ToolResultContent) (code int, ok bool) {
	const enough = 200
	text := t.Content
	ends := []string{text}
	if len(text) > 2*enough {
		ends = []string{text[:enough], text[len(text)-enough:]}
	}
	for _, end := range ends {
		if m := exitLine().FindStringSubmatch(end); m != nil {
			code, err := strconv.Atoi(m[1])
			return code, err == nil
		}
	}
	return 0, false
}

// OutcomeGist says in a few words what a tool answered: its only line or the first of an error, or
// how much there is, and the exit code of a command that failed.
func OutcomeGist(t *session.ToolResultContent) string {
	const short = 60
	var parts []string
	text := strings.TrimSpace(t.Content)
	if code, ok := ExitCode(t); ok && code != 0 {
		parts = append(parts, "exit "+strconv.Itoa(code))
		if before, rest, _ := strings.Cut(text, "\n"); exitLine().MatchString(before) {
			text = strings.TrimSpace(rest)
		}
	}
	first, _, isMore := strings.Cut(text, "\n")
	switch {
	case text == "":
	case t.IsError && isMore:
		parts = append(parts, OneLine(first, short)+" …")
	case t.Size > int64(len(t.Content)):
		parts = append(parts, Bytes(t.Size))
	case isMore:
		parts = append(parts, Counted(1+strings.Count(text, "\n"), "line", "lines"))
	case t.IsError || len(text) <= short:
		parts = append(parts, OneLine(text, short))
	default:
		parts = append(parts, Bytes(int64(len(text))))
	}
	for i := range t.Parts {
		if t.Parts[i].Text == nil {
			parts = append(parts, MediaGist(&t.Parts[i]))
		}
	}
	return strings.Join(parts, " · ")
}
