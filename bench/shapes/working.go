package shapes

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Working is a session of n messages such as an agent at work has, about a
// kilobyte each: prompts, answers in Markdown with code, calls of tools and their
// output, edits of files. Unlike the other shapes it is no extreme: it is what a
// command should be fast on.
func Working(n int) string {
	return log(func(w *lines) {
		for i := 0; w.count < n; i++ {
			turn := []string{
				said("user", text(fmt.Sprintf("Please look at the parser again (%d). It fails on nested lists, and the error does not say where.", i))),
				said("assistant", text(fmt.Sprintf(answer, i)), used(i, "bash", map[string]any{"command": fmt.Sprintf("go test ./parser -run 'TestList%d' -v", i), "timeout": 60})),
				said("tool", answered(i, output)),
				said("assistant", text("The token is lost. I will fix it."), used(i, "edit", map[string]any{"file_path": "/src/parser/list.go", "old_string": before, "new_string": after})),
				said("tool", answered(i, "The file /src/parser/list.go has been updated.")),
				said("assistant", text("Done:\n\n1. The loop keeps the token.\n2. The error has the **line** and the *column*.\n\nAll tests pass.")),
			}
			for _, body := range turn[:min(len(turn), n-w.count)] {
				w.last = w.entry(w.last, body) // no body has a number to be filled in
			}
		}
	})
}

const answer = "I found it. `parseList` forgets the token that ends the inner list:\n\n```go\nfor p.next() {\n\tif p.token == end {\n\t\treturn list, nil // %d\n\t}\n}\n```\n\n" +
	"- the **outer** list then never ends\n- the error is that of the *file*, see [the issue](https://example.com/issues/1)\n\n| input | result |\n|---|---|\n| `[]` | ok |\n| `[[]]` | fails |\n\nI will run the tests first."

var (
	output = strings.Repeat("=== RUN   TestList/nested\n    list_test.go:41: unexpected end of file, want ]\n--- FAIL: TestList/nested (0.00s)\n", 14)
	before = "\tfor p.next() {\n\t\tif p.token == end {\n\t\t\treturn list, nil\n\t\t}\n\t}\n\treturn nil, io.ErrUnexpectedEOF\n"
	after  = "\tfor p.next() {\n\t\tif p.token == end {\n\t\t\tp.take()\n\t\t\treturn list, nil\n\t\t}\n\t}\n\treturn nil, p.errorf(\"unexpected end of file\")\n"
)

func said(role string, blocks ...any) string { return message(role, encoded(blocks)) }

func text(s string) any {
	return map[string]any{"type": "text", "text": map[string]any{"content": s}}
}

func used(id int, tool string, input any) any {
	return map[string]any{"type": "tool_use", "tool_use": map[string]any{"id": fmt.Sprintf("c%d", id), "name": tool, "input": input}}
}

func answered(id int, s string) any {
	return map[string]any{"type": "tool_result", "tool_result": map[string]any{"tool_use_id": fmt.Sprintf("c%d", id), "content": s}}
}

func encoded(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is all texts and numbers
	}
	return string(data)
}
