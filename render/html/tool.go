package html

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/plain"
	"github.com/coppice-dev/coppice/session"
)

// call writes a call with its results: several if it was answered on several branches.
// at is the entry of the last result that was read.
func (p *page) call(it *item, t *session.ToolUseContent, outs []placedResult, at *entryRead) error {
	var first *session.ToolResultContent
	if len(outs) > 0 {
		if err := p.load(outs[0].item, at); err != nil {
			return err
		}
		first = resultAt(at, outs[0].block)
	}
	key, main := render.MainArgument(t)
	edits, todos := render.Edits(t), render.Todos(t)
	if len(edits) > 0 {
		key, main = "", edits[0].Path
	}
	p.raw(`<details class="tool`)
	p.flag(first != nil && first.IsError, " failed")
	p.raw(`"`)
	p.flag(areShort(edits) || len(todos) > 0 || hasImage(first), " open")
	p.raw("><summary>")
	p.toolName(t.Name)
	p.raw("<code dir=auto>")
	p.text(render.OneLine(cmp.Or(main, strings.TrimPrefix(render.CallGist(t), render.OneLine(t.Name, 0))), maxSummary))
	p.raw("</code>")
	p.changes(edits)
	p.outcome(first, len(outs))
	p.raw("</summary>\n")
	p.subagent(t, outs, at)
	switch {
	case len(edits) > 0:
		p.edits(edits)
	case len(todos) > 0:
		p.todos(todos)
	default:
		p.input(t, key, main)
	}
	for k, out := range outs {
		if err := p.load(out.item, at); err != nil {
			return err
		}
		p.entry = at.entry.ID
		p.out(it, &outs[k], resultAt(at, out.block))
	}
	p.entry = it.node.Entry.ID
	p.raw("</details>\n")
	return nil
}

// hasImage reports whether a result contains a picture, which would not be seen if it
// were folded.
func hasImage(r *session.ToolResultContent) bool {
	return r != nil && slices.ContainsFunc(r.Parts, func(c session.Content) bool { return c.Image != nil })
}

// subagent says which session a call started, if that is known: from the
// conversation, or from the message that has the first result.
func (p *page) subagent(t *session.ToolUseContent, outs []placedResult, at *entryRead) {
	name := p.Subagents[t.ID]
	if name == "" && !p.parts && len(outs) > 0 && at.entry.Message != nil {
		name = render.SubagentKey(p.Header().Key, at.entry.Message)
	}
	if name != "" {
		p.raw("<p class=media>↳ subagent: <code>")
		p.text(render.OneLine(name, 0))
		p.raw("</code></p>")
	}
}

// todos writes a list with which an agent plans its work.
func (p *page) todos(todos []render.Todo) {
	p.raw("<ul class=todos>")
	for _, todo := range todos {
		p.raw("<li class=", todoClasses[todo.State], " dir=auto>")
		p.text(render.OneLine(todo.Text, 0))
		p.raw("</li>")
	}
	p.raw("</ul>\n")
}

var todoClasses = map[render.TodoState]string{render.TodoOpen: "todo", render.TodoActive: "doing", render.TodoDone: "done"}

// maxSummary is how much of an argument is shown beside the name of a tool.
const maxSummary = 240

func (p *page) toolName(name string) {
	p.raw("<b>")
	p.text(render.OneLine(name, 80))
	p.raw("</b>")
}

// load reads the entry of an item, unless it was the last one read.
func (p *page) load(item int, at *entryRead) error {
	if at.item == item {
		return nil
	}
	var err error
	*at, err = p.next(item)
	return err
}

// resultAt returns nil if the entry can no longer be read.
func resultAt(at *entryRead, block int) *session.ToolResultContent {
	if m := at.entry.Message; m != nil && block < len(m.Content) {
		return m.Content[block].ToolResult
	}
	return nil
}

// outcome writes, at the end of a summary, how a call ended.
func (p *page) outcome(r *session.ToolResultContent, results int) {
	p.raw("<small dir=auto>")
	switch {
	case r == nil:
		p.raw("no result")
	case results > 1:
		p.text(render.Counted(results, "result", "results"))
	default:
		lines := 1 + strings.Count(strings.Trim(r.Content, "\n"), "\n")
		switch {
		case lines > 1 && r.IsError:
			p.raw("failed · ")
			p.text(render.Counted(lines, "line", "lines"))
		case lines > 1:
			p.text(render.Counted(lines, "line", "lines"))
		case r.IsError:
			p.raw("failed: ")
			p.text(render.OneLine(r.Content, 100))
		}
	}
	p.raw("</small>")
}

// out writes a result in the card of its call. If it is on a branch, it is visible
// together with that branch.
func (p *page) out(it *item, out *placedResult, r *session.ToolResultContent) {
	p.raw("<div class=out")
	result := &p.items[out.item]
	if !p.parts && !p.hasCard(out.item) && result.results[0].block == out.block {
		p.raw(" id=e")
		p.number(out.item + 1)
	}
	if result.section != it.section {
		p.inSection(out.item)
	}
	p.raw(">")
	if r != nil {
		p.result(r)
	}
	p.raw("</div>\n")
}

// result writes what a tool answered.
func (p *page) result(r *session.ToolResultContent) {
	text := strings.Trim(r.Content, "\n")
	if text != "" {
		p.raw("<pre dir=auto>")
		p.output(text)
		p.raw("</pre>")
	}
	shown := text != ""
	for i := range r.Parts {
		if r.Parts[i].Text == nil { // its text is in Content
			p.media(&r.Parts[i])
			shown = true
		}
	}
	if !shown {
		p.raw("<p class=media>no output</p>")
	}
}

// loneResult writes a result that is not shown with its call.
func (p *page) loneResult(tool string, r *session.ToolResultContent) {
	p.raw(`<details class="tool`)
	p.flag(r.IsError, " failed")
	p.raw(`"><summary>`)
	p.toolName("← " + tool)
	p.outcome(r, 1)
	p.raw("</summary>\n<div class=out>")
	p.result(r)
	p.raw("</div></details>\n")
}

// input writes the arguments of a call. The main one is left out if the summary has all
// of it.
func (p *page) input(t *session.ToolUseContent, mainKey, main string) {
	rest := slices.Sorted(maps.Keys(t.Input))
	rest = slices.DeleteFunc(rest, func(key string) bool { return key == mainKey })
	if len(main) > maxSummary/2 || strings.Contains(main, "\n") {
		p.fenced("", plain.Text(main))
	}
	if len(rest) == 0 {
		return
	}
	p.raw("<dl>")
	for _, key := range rest {
		p.raw("<dt>")
		p.text(render.OneLine(key, 80))
		p.raw("</dt><dd dir=auto>")
		p.value(t.Input[key])
		p.raw("</dd>")
	}
	p.raw("</dl>\n")
}

// value writes an argument: a text as it is, everything else as JSON.
func (p *page) value(v any) {
	const long = 100
	s, ok := v.(string)
	if !ok {
		s = indented(v)
	}
	if len(s) <= long && !strings.Contains(s, "\n") {
		p.text(plain.Text(s))
		return
	}
	p.fenced("", plain.Text(strings.Trim(s, "\n")))
}

func indented(v any) string {
	if large, ok := v.(json.RawMessage); ok { // with its items on lines of their own it would be many times as long
		return string(large)
	}
	text, err := render.IndentJSON(v)
	if err != nil {
		return err.Error()
	}
	return text
}
