package session_test

import (
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// This file is a second, naive implementation of a session: a slice of entries,
// searched from one end to the other. It follows the documentation and shares
// no code with the package. model_machine_test.go holds the two side by side.

// modelEntry is an entry of the log. Which fields are used depends on the type.
type modelEntry struct {
	id, parent string // parent is "" for a root
	kind       session.EntryType

	role, provider, model, response string // message; provider and model also of a model change
	blocks                          []block
	text                            string // a summary, label, name or thinking level
	target                          string // of a label, edit or revert
	firstKept                       string // of a compaction
	replacement                     []block
	picks                           []string // of a merge
}

// block is a piece of a message.
type block struct {
	Kind   session.ContentType
	ID     string // of a tool call, here and in its result
	Text   string
	Failed bool // of a result
}

// shown is what the context has of an entry.
type shown struct {
	ID     string
	Type   session.EntryType
	Role   string
	Text   string // a summary
	Blocks []block
}

func find(log []modelEntry, id string) (modelEntry, bool) {
	for _, e := range log {
		if e.id == id {
			return e, true
		}
	}
	return modelEntry{}, false
}

// leafOf returns where a log says that the leaf is: at its last entry, or where
// that entry moved it.
func leafOf(log []modelEntry) string {
	if len(log) == 0 {
		return ""
	}
	return leafAfter(log, log[len(log)-1])
}

// leafAfter returns where the leaf stands after an entry of a log. A leaf that is
// moved to a move stands where that one moved it.
func leafAfter(log []modelEntry, e modelEntry) string {
	for e.kind == session.TypeLeaf {
		if e.parent == "" {
			return ""
		}
		e, _ = find(log, e.parent)
	}
	return e.id
}

// pathTo returns the entries from the root to an entry.
func pathTo(log []modelEntry, id string) []modelEntry {
	var path []modelEntry
	for id != "" {
		e, _ := find(log, id)
		path = append(path, e)
		id = e.parent
	}
	slices.Reverse(path)
	return path
}

// takenBack returns the entries of a path whose effect was reverted, by a revert
// that was not reverted itself.
func takenBack(path []modelEntry) map[string]bool {
	back := make(map[string]bool)
	for _, e := range slices.Backward(path) {
		if e.kind == session.TypeRevert && !back[e.id] {
			back[e.target] = true
		}
	}
	return back
}

// compactionOf returns the compaction in force on a path and the index of the
// first entry that it keeps.
func compactionOf(path []modelEntry) (c modelEntry, first int, ok bool) {
	back := takenBack(path)
	for at, e := range slices.Backward(path) {
		if e.kind != session.TypeCompaction || back[e.id] {
			continue
		}
		if e.firstKept == "" || e.firstKept == e.id {
			return e, at, true
		}
		if _, kept := find(path[:at], e.firstKept); kept {
			return e, slices.IndexFunc(path, func(o modelEntry) bool { return o.id == e.firstKept }), true
		}
	}
	return modelEntry{}, 0, false
}

// contextOf returns what a model is sent at the end of a path.
func contextOf(log, path []modelEntry) []shown {
	back := takenBack(path)
	edits := make(map[string]modelEntry) // by target: the last one counts
	for _, e := range path {
		if e.kind == session.TypeContextEdit && !back[e.id] {
			edits[e.target] = e
		}
	}
	var out []shown
	message := func(e modelEntry) {
		blocks := e.blocks
		if edit, ok := edits[e.id]; ok {
			isResult, answers := has(e.blocks, session.ContentTypeToolResult), has(edit.replacement, session.ContentTypeToolResult)
			switch blocks = edit.replacement; {
			case blocks == nil:
				blocks = stubs(e.blocks, "[cleared]")
			case isResult && !answers:
				blocks = stubs(e.blocks, textOf(blocks))
			}
			if len(blocks) == 0 {
				return
			}
		}
		out = append(out, shown{ID: e.id, Type: e.kind, Role: e.role, Blocks: blocks})
	}
	c, first, ok := compactionOf(path)
	if ok {
		for _, e := range path[:first] {
			if e.role == session.RoleSystem {
				message(e)
			}
		}
		out = append(out, shown{ID: c.id, Type: c.kind, Text: c.text})
		if prompt, split := splitTurn(path, first); split && path[first].id != c.id {
			message(prompt)
		}
	}
	brought := broughtBy(path)
	for _, e := range path[first:] {
		switch {
		case e.kind == session.TypeMessage:
			message(e)
		case e.kind == session.TypeBranchSummary:
			out = append(out, shown{ID: e.id, Type: e.kind, Text: e.text})
		case e.kind == session.TypeMerge && !back[e.id]:
			out = append(out, shown{ID: e.id, Type: e.kind, Text: e.text})
			for _, id := range brought[e.id] {
				picked, _ := find(log, id)
				message(picked)
			}
		}
	}
	out, _ = pair(out)
	return out
}

// splitTurn returns the message that began the turn which a cut splits, if it
// splits one: the first message after the cut does not begin a turn.
func splitTurn(path []modelEntry, cut int) (prompt modelEntry, split bool) {
	for _, e := range path[cut:] {
		if e.kind != session.TypeMessage {
			continue
		}
		if speaks(e) {
			return modelEntry{}, false
		}
		for _, e := range slices.Backward(path[:cut]) {
			if speaks(e) {
				return e, true
			}
		}
		return modelEntry{}, false
	}
	return modelEntry{}, false
}

// broughtBy returns what each merge of a path brings: not what is on the path, nor
// what an earlier merge brought.
func broughtBy(path []modelEntry) map[string][]string {
	back := takenBack(path)
	there := make(map[string]bool)
	for _, e := range path {
		there[e.id] = true
	}
	brought := make(map[string][]string)
	for _, e := range path {
		if back[e.id] {
			continue
		}
		for _, id := range e.picks {
			if !there[id] {
				brought[e.id] = append(brought[e.id], id)
			}
			there[id] = true
		}
	}
	return brought
}

// stubs is what is left of the results of a message that was cleared, or
// replaced by a text.
func stubs(blocks []block, text string) []block {
	var out []block
	for _, b := range blocks {
		if b.Kind == session.ContentTypeToolResult {
			out = append(out, block{Kind: b.Kind, ID: b.ID, Text: text, Failed: b.Failed})
		}
	}
	return out
}

// textOf joins the text of blocks, a line each.
func textOf(blocks []block) string {
	var texts []string
	for _, b := range blocks {
		if b.Kind == session.ContentTypeText {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// place is where a block stands.
type place struct{ entry, block int }

// answers matches tool calls with their results: a result answers the latest
// call of its id that has no answer yet. Results of no call are the orphans.
func answers(entries []shown) (results map[place]place, orphans map[place]bool) {
	results, orphans = make(map[place]place), make(map[place]bool)
	for i, e := range entries {
		for j, b := range e.Blocks {
			if b.Kind != session.ContentTypeToolResult {
				continue
			}
			call, ok := openCall(entries[:i], results, b.ID)
			if !ok {
				orphans[place{i, j}] = true
				continue
			}
			results[call] = place{i, j}
		}
	}
	return results, orphans
}

func openCall(entries []shown, results map[place]place, id string) (place, bool) {
	for i, e := range slices.Backward(entries) {
		for j, b := range slices.Backward(e.Blocks) {
			_, answered := results[place{i, j}]
			if b.Kind == session.ContentTypeToolUse && b.ID == id && !answered {
				return place{i, j}, true
			}
		}
	}
	return place{}, false
}

func isAssistant(e shown) bool { return e.Role == session.RoleAssistant }

func isToolMessage(e shown) bool {
	return e.Role == session.RoleTool || !isAssistant(e) && has(e.Blocks, session.ContentTypeToolResult)
}

func has(blocks []block, kind session.ContentType) bool {
	return slices.ContainsFunc(blocks, func(b block) bool { return b.Kind == kind })
}

// pair puts every result right after the turn of the model that made its call,
// makes one up for a call that has none, and drops those of no call. It returns
// also how many it made up or dropped.
func pair(entries []shown) (out []shown, faults int) {
	results, dropped := answers(entries)
	faults = len(dropped)
	extra := make(map[int][]shown) // by the index of the entry after which they stand
	for i, e := range entries {
		if !isAssistant(e) {
			continue
		}
		end := i // of the turn
		for end+1 < len(entries) && isAssistant(entries[end+1]) {
			end++
		}
		home := end // of its results
		for home+1 < len(entries) && isToolMessage(entries[home+1]) {
			home++
		}
		for j, b := range e.Blocks {
			if b.Kind != session.ContentTypeToolUse {
				continue
			}
			at, answered := results[place{i, j}]
			switch {
			case !answered:
				faults++
				extra[home] = append(extra[home], shown{
					ID: session.InterruptedPrefix + b.ID, Type: session.TypeMessage, Role: session.RoleTool,
					Blocks: []block{{Kind: session.ContentTypeToolResult, ID: b.ID, Text: "[interrupted: the tool did not return a result]", Failed: true}},
				})
			case at.entry > home:
				dropped[at] = true // there, to stand here
				late := entries[at.entry]
				extra[home] = append(extra[home], shown{
					ID: late.ID, Type: late.Type, Role: session.RoleTool, Blocks: []block{late.Blocks[at.block]},
				})
			}
		}
	}
	for i, e := range entries {
		var blocks []block
		for j, b := range e.Blocks {
			if !dropped[place{i, j}] {
				blocks = append(blocks, b)
			}
		}
		if len(blocks) > 0 || len(e.Blocks) == 0 {
			e.Blocks = blocks
			out = append(out, e)
		}
		out = append(out, extra[i]...)
	}
	return out, faults
}

// stateOf returns what is in force at the end of a path.
func stateOf(path []modelEntry) (provider, model, level string) {
	for _, e := range path {
		switch {
		case e.kind == session.TypeModelChange:
			provider, model = e.provider, e.model
		case e.kind == session.TypeThinkingLevel:
			level = e.text
		case e.role == session.RoleAssistant && e.model != "":
			if e.model != model || e.provider != "" {
				provider = e.provider // "" if another model answered, and nobody says whose
			}
			model = e.model
		}
	}
	return provider, model, level
}

// cutsOf returns before which entries of a path a cut may stand, and whether a
// call waits for its result at the end.
func cutsOf(path []modelEntry) (legal []int, pending bool) {
	for at := range path {
		if mayCut(path, at) {
			legal = append(legal, at)
		}
	}
	return legal, waiting(path)
}

func mayCut(path []modelEntry, at int) bool {
	e := path[at]
	switch {
	case splitsCall(path, at), splitsResponse(path, at):
		return false
	case e.role == session.RoleTool, e.role != session.RoleAssistant && has(e.blocks, session.ContentTypeToolResult):
		return false
	}
	for _, call := range unanswered(path) {
		// Its result may come; or else the user has interrupted it, and must have
		// done so before the cut.
		if call < at && (!wasInterrupted(path, call) || !slices.ContainsFunc(path[call:at+1], speaks)) {
			return false
		}
	}
	return true
}

// unanswered returns the indices of the entries with calls that have no result.
func unanswered(path []modelEntry) []int {
	results, _ := answers(asShown(path))
	var calls []int
	for i, e := range path {
		for j, b := range e.blocks {
			if _, answered := results[place{i, j}]; b.Kind == session.ContentTypeToolUse && !answered {
				calls = append(calls, i)
			}
		}
	}
	return calls
}

// wasInterrupted reports whether, after an entry with a call, the user and then the
// model have spoken.
func wasInterrupted(path []modelEntry, call int) bool {
	user := slices.IndexFunc(path[call:], speaks)
	return user >= 0 && slices.ContainsFunc(path[call+user:], func(e modelEntry) bool { return e.role == session.RoleAssistant })
}

// speaks reports whether an entry is a message of the user, and not one that
// brings results.
func speaks(e modelEntry) bool {
	return e.kind == session.TypeMessage && e.role == session.RoleUser && !has(e.blocks, session.ContentTypeToolResult)
}

func asShown(path []modelEntry) []shown {
	out := make([]shown, len(path))
	for i, e := range path {
		out[i] = shown{Role: e.role, Blocks: e.blocks}
	}
	return out
}

// splitsCall reports whether a call stands before a cut and its result after it.
func splitsCall(path []modelEntry, at int) bool {
	results, _ := answers(asShown(path))
	for call, result := range results {
		if call.entry < at && at <= result.entry {
			return true
		}
	}
	return false
}

// splitsResponse reports whether the messages on both sides of a cut are of one
// response of the model.
func splitsResponse(path []modelEntry, at int) bool {
	isMessage := func(e modelEntry) bool { return e.kind == session.TypeMessage }
	after := slices.IndexFunc(path[at:], isMessage)
	if after < 0 || !slices.ContainsFunc(path[:at], isMessage) {
		return false
	}
	next, last := path[at+after], modelEntry{}
	for _, e := range path[:at] {
		if isMessage(e) {
			last = e
		}
	}
	if last.role != session.RoleAssistant || next.role != session.RoleAssistant {
		return false
	}
	if last.response != "" || next.response != "" {
		return last.response == next.response
	}
	return !slices.ContainsFunc(last.blocks, func(b block) bool { return b.Kind != session.ContentTypeThinking })
}

// waiting reports whether a call has no result and was not interrupted.
func waiting(path []modelEntry) bool {
	return slices.ContainsFunc(unanswered(path), func(call int) bool { return !wasInterrupted(path, call) })
}

// labelsOf returns the labels in force.
func labelsOf(log []modelEntry) map[string]string {
	labels := make(map[string]string)
	for _, e := range log {
		if e.kind == session.TypeLabel {
			labels[e.target] = e.text
		}
	}
	for id, label := range labels {
		if label == "" {
			delete(labels, id)
		}
	}
	return labels
}

// nameOf returns the display name.
func nameOf(log []modelEntry) string {
	for _, e := range slices.Backward(log) {
		if e.kind == session.TypeSessionInfo {
			return e.text
		}
	}
	return ""
}

// treeOf returns what hangs on an entry, one line for each, indented; "" is the
// roots. Entries that only move the leaf are left out, unless something else
// hangs on them.
func treeOf(log []modelEntry, parent, indent string) []string {
	labels := labelsOf(log)
	var out []string
	for _, e := range log {
		if e.parent != parent {
			continue
		}
		below := treeOf(log, e.id, indent+" ")
		if e.kind != session.TypeLeaf || len(below) > 0 {
			out = append(append(out, indent+e.id+" "+labels[e.id]), below...)
		}
	}
	return out
}

// branchedLog returns the part of a log that CreateBranchedSession copies: the
// path to an entry, and those to the entries that merges on it have picked.
func branchedLog(log []modelEntry, leaf string) []modelEntry {
	wanted := make(map[string]bool)
	var want func(id string)
	want = func(id string) {
		if wanted[id] {
			return
		}
		for _, e := range pathTo(log, id) {
			seen := wanted[e.id]
			wanted[e.id] = true
			for _, pick := range e.picks {
				if !seen {
					want(pick)
				}
			}
		}
	}
	want(leaf)
	var out []modelEntry
	for _, e := range log {
		if wanted[e.id] {
			out = append(out, e)
		}
	}
	return out
}
