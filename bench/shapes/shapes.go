// Package shapes writes sessions of extreme shapes: as deep, wide, branched or
// damaged as one likes. Nobody works like that, but a file may be like that, and
// what a command costs must still be in proportion to it.
//
// The lines are written by hand, not by package session: much of this no writer of
// ours would write.
package shapes

import (
	"fmt"
	"strings"
)

// ID is the id of every session that is written here.
const ID = "x"

// Shape is a kind of session. Lines returns one with n of what its name says.
type Shape struct {
	Name  string
	Lines func(n int) string
}

// All are the shapes.
var All = []Shape{
	{"messages", func(n int) string { return log(func(w *lines) { w.messages(n) }) }},
	{"branches of one entry", wide},
	{"branch points", comb},
	{"branches of branches", caterpillar},
	{"beginnings", func(n int) string { return log(func(w *lines) { w.each(n, "", message("user", `"hello"`)) }) }},
	{"calls in one message", callsInOne},
	{"calls without results", unanswered},
	{"results of calls in one message", answeredOneByOne},
	{"results of one call", resultsOfOne},
	{"calls with one id", oneID},
	{"turns that belong together", woven},
	{"blocks in one message", blocks},
	{"images in one message", images},
	{"edits", edits},
	{"reverts", reverts},
	{"compactions", compactions},
	{"compactions that keep what is not there", badCompactions},
	{"merges", merges},
	{"labels", labels},
	{"names", func(n int) string {
		return log(func(w *lines) { w.chain(n, `"type":"session_info","session_info":{"name":"N%d"}`) })
	}},
	{"tags", tags},
	{"moves of the leaf", moves},
	{"damaged lines", damaged},
	{"missing entries", missing},
	{"repeated ids", repeated},
	{"circles", circles},
	{"parents that come later", backwards},
}

const when = `"timestamp":"2026-01-01T00:00:00.000Z"`

// lines writes a log.
type lines struct {
	strings.Builder
	count int
	last  string // the id of the last entry of the chain
}

func log(fill func(*lines)) string {
	w := &lines{}
	fmt.Fprintf(w, `{"type":"session","id":%q,"version":1,%s}`+"\n", ID, when)
	fill(w)
	return w.String()
}

// entry writes an entry with the next id, which it returns.
func (w *lines) entry(parent, body string) string {
	w.count++
	id := fmt.Sprintf("e%07d", w.count)
	w.as(id, parent, body)
	return id
}

func (w *lines) as(id, parent, body string) {
	under := "null"
	if parent != "" {
		under = `"` + parent + `"`
	}
	fmt.Fprintf(w, `{%s,"id":%q,"parent_id":%s,%s}`+"\n", strings.Replace(body, "%d", fmt.Sprint(w.count), 1), id, under, when)
}

// each writes entries below a parent, chain writes each below the one before.
func (w *lines) each(n int, parent, body string) {
	for range n {
		w.entry(parent, body)
	}
}

func (w *lines) chain(n int, body string) {
	for range n {
		w.last = w.entry(w.last, body)
	}
}

func (w *lines) messages(n int) { w.chain(n, message("user", `"hello %d"`)) }

func message(role, content string) string {
	return fmt.Sprintf(`"type":"message","message":{"role":%q,"content":%s}`, role, content)
}

func call(id int) string {
	return fmt.Sprintf(`{"type":"tool_use","tool_use":{"id":"c%d","name":"run","input":{}}}`, id)
}

func result(id int) string {
	return fmt.Sprintf(`{"type":"tool_result","tool_result":{"tool_use_id":"c%d","content":"done, as it was asked for"}}`, id)
}

// list is n things in brackets.
func list(n int, thing func(i int) string) string {
	things := make([]string, n)
	for i := range things {
		things[i] = thing(i)
	}
	return "[" + strings.Join(things, ",") + "]"
}

func wide(n int) string {
	return log(func(w *lines) {
		root := w.entry("", message("user", `"root"`))
		w.each(n, root, message("user", `"hello %d"`))
	})
}

func comb(n int) string {
	return log(func(w *lines) {
		for i := range n {
			w.last = w.entry(w.last, message("assistant", "["+call(i)+"]"))
			w.entry(w.last, message("user", `"aside %d"`))
		}
	})
}

// caterpillar goes on from the older of two children each time, so that what
// branches off is as long as what goes on.
func caterpillar(n int) string {
	return log(func(w *lines) {
		var parents []string
		for range n {
			w.last = w.entry(w.last, message("user", `"hello %d"`))
			parents = append(parents, w.last)
		}
		for i := len(parents) - 1; i >= 0; i-- {
			w.entry(parents[i], message("user", `"newer %d"`))
		}
	})
}

func callsInOne(n int) string {
	return log(func(w *lines) { w.entry("", message("assistant", list(n, call))) })
}

func unanswered(n int) string {
	return log(func(w *lines) {
		for i := range n {
			w.chain(1, message("assistant", "["+call(i)+"]"))
		}
	})
}

func answeredOneByOne(n int) string {
	return log(func(w *lines) {
		w.chain(1, message("assistant", list(n, call)))
		for i := range n {
			w.chain(1, message("tool", "["+result(i)+"]"))
		}
	})
}

func resultsOfOne(n int) string {
	return log(func(w *lines) {
		w.chain(1, message("assistant", "["+call(1)+"]"))
		w.chain(n, message("tool", "["+result(1)+"]"))
	})
}

func oneID(n int) string {
	return log(func(w *lines) {
		w.chain(n, message("assistant", "["+call(1)+"]"))
		w.chain(n, message("tool", "["+result(1)+"]"))
	})
}

// woven has messages that answer a call of the turn before them and one of the
// turn before that, so that all become one.
func woven(n int) string {
	return log(func(w *lines) {
		for i := range n {
			w.chain(1, message("assistant", "["+call(2*i)+","+call(2*i+1)+"]"))
		}
		for i := n - 1; i > 0; i-- {
			w.chain(1, message("tool", "["+result(2*i)+","+result(2*i-1)+"]"))
		}
	})
}

func blocks(n int) string {
	return log(func(w *lines) {
		w.entry("", message("user", list(n, func(i int) string {
			return fmt.Sprintf(`{"type":"text","text":{"content":"block %d"}}`, i)
		})))
	})
}

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func images(n int) string {
	return log(func(w *lines) {
		w.entry("", message("user", list(n, func(int) string {
			return `{"type":"image","image":{"source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}}}`
		})))
	})
}

func edits(n int) string {
	return log(func(w *lines) {
		w.messages(n)
		for i := range n {
			w.chain(1, fmt.Sprintf(`"type":"context_edit","context_edit":{"target_id":"e%07d","replacement":[{"type":"text","text":{"content":"edited"}}]}`, i+1))
		}
	})
}

// reverts takes back an edit, the revert of it, the revert of that, and so on.
func reverts(n int) string {
	return log(func(w *lines) {
		w.messages(1)
		w.chain(1, `"type":"context_edit","context_edit":{"target_id":"e0000001","replacement":null}`)
		for range n {
			w.chain(1, `"type":"revert","revert":{"target_id":"`+w.last+`"}`)
		}
	})
}

func compactions(n int) string {
	return log(func(w *lines) {
		for range n {
			w.messages(1)
			w.chain(1, `"type":"compaction","compaction":{"summary":"so far","first_kept_entry_id":"`+w.last+`","tokens_before":9}`)
		}
	})
}

func badCompactions(n int) string {
	return log(func(w *lines) {
		w.messages(n)
		w.chain(n, `"type":"compaction","compaction":{"summary":"so far","first_kept_entry_id":"gone%d","tokens_before":9}`)
	})
}

func merges(n int) string {
	return log(func(w *lines) {
		root := w.entry("", message("user", `"root"`))
		w.last = root
		for range n {
			aside := w.entry(root, message("user", `"aside %d"`))
			w.chain(1, fmt.Sprintf(`"type":"merge","merge":{"from_id":%q,"summary":"s","entry_ids":[%q]}`, aside, aside))
		}
	})
}

func labels(n int) string {
	return log(func(w *lines) {
		w.messages(n)
		for i := range n {
			w.chain(1, fmt.Sprintf(`"type":"label","label":{"target_id":"e%07d","label":"L%d"}`, i+1, i))
		}
	})
}

// tags are added fifty at a time.
func tags(n int) string {
	return log(func(w *lines) {
		for i := range max(1, n/50) {
			add := list(50, func(j int) string { return fmt.Sprintf(`"t%d"`, 50*i+j) })
			w.chain(1, `"type":"custom","custom":{"custom_type":"coppice.tags","data":{"add":`+add+`}}`)
		}
	})
}

func moves(n int) string {
	return log(func(w *lines) {
		w.messages(n)
		for i := range n {
			w.entry(fmt.Sprintf("e%07d", 1+i%n), fmt.Sprintf(`"type":"leaf","leaf":{"from_id":"e%07d"}`, 1+(i+1)%n))
		}
	})
}

func damaged(n int) string {
	return log(func(w *lines) {
		for i := range n {
			w.entry(fmt.Sprintf("gone%d", i), message("user", `"hello %d"`))
			fmt.Fprintf(w, `{"broken "id":"q%d"`+"\n", i)
		}
	})
}

func missing(n int) string {
	return log(func(w *lines) {
		for i := range n {
			w.entry(fmt.Sprintf("gone%d", i), message("user", `"hello %d"`))
		}
	})
}

func repeated(n int) string {
	return log(func(w *lines) {
		w.messages(1)
		for range n {
			w.as("e0000001", "", message("user", `"again"`))
		}
	})
}

func circles(n int) string {
	return log(func(w *lines) {
		w.messages(1)
		for i := range n {
			w.as(fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i), message("user", `"round"`))
			w.as(fmt.Sprintf("b%d", i), fmt.Sprintf("a%d", i), message("user", `"and round"`))
		}
	})
}

// backwards has the children of the last of a chain first, and then the chain from its end.
func backwards(n int) string {
	return log(func(w *lines) {
		for i := range n / 2 {
			w.as(fmt.Sprintf("c%d", i), fmt.Sprintf("b%d", n/2), message("user", `"hello"`))
		}
		for i := n / 2; i > 0; i-- {
			w.as(fmt.Sprintf("b%d", i), fmt.Sprintf("b%d", i-1), message("user", `"hello"`))
		}
		w.as("b0", "", message("user", `"hello"`))
	})
}
