package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// CompactionPlan is where a conversation can be compacted, and what the summary
// must cover.
type CompactionPlan struct {
	// FirstKept is the entry before which the conversation is cut.
	FirstKept string
	// Kind says whether the cut splits a turn.
	Kind CutKind
	// Summarise are the entries that the summary replaces, including the previous
	// summary.
	Summarise []Entry
	// Kept are the entries that stay: the system messages before the cut, the
	// message that began the turn if the cut splits it, and everything from
	// FirstKept on. With the summary after the system messages, they are the
	// context once the compaction is written.
	Kept []Entry
	// TokensBefore and TokensKept are the sizes of the context now and of the part that stays. The
	// new summary adds to that.
	TokensBefore, TokensKept int
	// StandsFor is how many entries of the path the summary will replace: what LeftOut says
	// about it once it is written. A plan for a Context alone does not know the path, and has
	// zero.
	StandsFor int
	// Over is by how many tokens Kept exceeds the budget. It is zero unless no legal cut
	// keeps so little.
	Over int
}

// ErrNothingToCompact means that no legal cut leaves anything out. It also matches
// ErrInvalid.
var ErrNothingToCompact = fmt.Errorf("nothing to compact: %w", ErrInvalid)

// nothingToCompact is ErrNothingToCompact with the reason.
type nothingToCompact struct{ why string }

func (e *nothingToCompact) Error() string { return "nothing to compact: " + e.why }
func (e *nothingToCompact) Unwrap() error { return ErrNothingToCompact }

// PlanOptions says how much a compaction is to keep.
type PlanOptions struct {
	// KeepTokens is how large the rest of the context may be. The plan is the legal cut that
	// keeps most within that: see Context.PlanCompaction.
	KeepTokens int
	// FirstKept is the entry of the path from which on everything is kept, whatever its size.
	// That may be more than the context has now, because the new compaction replaces an
	// earlier one. Default: the entry that KeepTokens decides.
	FirstKept string
	// Count returns the size of an entry in tokens. It is needed; package window has some.
	Count func(Entry) int
}

// PlanCompaction plans a compaction of the context at the leaf. If the conversation cannot be
// cut before FirstKept, the error is a *CutError that says why. For other errors see
// Context.PlanCompaction. An append accepts whatever was planned.
func (s *Session) PlanCompaction(o PlanOptions) (*CompactionPlan, error) {
	now, err := s.Context(ContextOptions{})
	if err != nil {
		return nil, err
	}
	plan := &CompactionPlan{FirstKept: o.FirstKept}
	if o.FirstKept == "" {
		if plan, err = now.PlanCompaction(o.KeepTokens, o.Count); err != nil {
			return nil, err
		}
	}
	sel, err := s.selectCompacted(plan.FirstKept)
	if err != nil {
		return nil, err
	}
	compacted := &assemble(sel).Context
	plan.StandsFor = sel.replacedBy(compacted)
	if o.FirstKept != "" {
		plan.fill(now, compacted, sel, o.Count)
	}
	return plan, nil
}

// PlanCompaction finds the legal cut that keeps as much of the context as fits into a number
// of tokens, counted by count. It prefers cuts between turns, and splits a turn only if no
// cut between two turns keeps so little. If no cut at all does, it takes the one that keeps
// least, because a conversation that is too large must still become smaller, and says in
// Over by how much it misses. It returns ErrNothingToCompact if everything fits or no legal
// cut leaves anything out. A tool call that waits for its result is not an obstacle: it is
// kept.
func (c *Context) PlanCompaction(keepTokens int, count func(Entry) int) (*CompactionPlan, error) {
	if count == nil {
		return nil, &Error{Op: "plan compaction", Kind: ErrInvalid, Err: errors.New("there is no function that counts tokens")}
	}
	p := planner{c: c, tokens: make([]int, len(c.Entries)), of: c.owners()}
	before := 0
	for i := range c.Entries {
		p.tokens[i] = count(c.Entries[i])
		before += p.tokens[i]
	}
	if before <= keepTokens {
		return nil, &nothingToCompact{fmt.Sprintf("all %d tokens fit %d", before, keepTokens)}
	}
	cut, ok := p.best(keepTokens)
	if !ok {
		return nil, c.whyNoCut()
	}
	plan := &CompactionPlan{
		FirstKept: c.Entries[cut.at].ID, Kind: cut.kind,
		TokensBefore: before, TokensKept: cut.tokens, Over: max(0, cut.tokens-keepTokens),
	}
	if cut.prompt >= 0 {
		plan.Kept = append(plan.Kept, c.Entries[cut.prompt])
	}
	system := 0
	for i := range c.Entries {
		switch {
		case i == cut.prompt:
		case i < cut.at && c.isKeptBefore(i):
			plan.Kept = slices.Insert(plan.Kept, system, c.Entries[i])
			system++
		case p.of[i] >= cut.at:
			plan.Kept = append(plan.Kept, c.Entries[i])
		default:
			plan.Summarise = append(plan.Summarise, c.Entries[i])
		}
	}
	return plan, nil
}

// whyNoCut returns the error for a context in which no legal cut leaves anything out.
func (c *Context) whyNoCut() error {
	cuts, _ := c.cuts()
	if waiting := cuts.pairs.PendingCalls(); len(waiting) > 0 {
		return &nothingToCompact{fmt.Sprintf("tool call %s is waiting for its result, and there is nothing before it that could be summarised", waiting[0].ID)}
	}
	return &nothingToCompact{fmt.Sprintf("nothing in the %d entries could be summarised", len(c.Entries))}
}

// planner weighs the cuts of a context.
type planner struct {
	c      *Context
	tokens []int // of each entry
	of     []int // see Context.owners
}

// weighedCut is a cut and the size of the part that it would keep.
type weighedCut struct {
	at     int // an index in the context
	kind   CutKind
	prompt int // the entry that stays because the cut splits its turn, or -1
	tokens int // of everything that stays
}

// best returns the cut that keeps most within a number of tokens, or the one that keeps
// least if none fits.
func (p *planner) best(keepTokens int) (best weighedCut, ok bool) {
	better := func(cut weighedCut) bool {
		fits, bestFits := cut.tokens <= keepTokens, best.tokens <= keepTokens
		switch {
		case !ok || fits != bestFits:
			return !ok || fits
		case !fits:
			return cut.tokens < best.tokens
		case cut.kind != best.kind:
			return cut.kind == CutTurn
		}
		return false // the earlier one keeps more
	}
	p.eachCut(func(cut weighedCut) {
		if better(cut) {
			best, ok = cut, true
		}
	})
	return best, ok
}

// eachCut visits the cuts that leave something out, earliest first.
func (p *planner) eachCut(visit func(weighedCut)) {
	kept, left := 0, 0 // tokens that stay, entries that do not
	for _, n := range p.tokens {
		kept += n
	}
	kinds, prompts := p.c.cutKinds(), p.c.prompts()
	stubs := make(map[int][]int) // by the entry that they belong to
	for i, of := range p.of {
		if of != i {
			stubs[of] = append(stubs[of], i)
		}
	}
	for i := range p.c.Entries {
		if kind, legal := kinds[i]; legal {
			cut := weighedCut{at: i, kind: kind, prompt: -1, tokens: kept}
			leaves := left
			if kind == CutStep && prompts[i] >= 0 {
				cut.prompt, cut.tokens = prompts[i], kept+p.tokens[prompts[i]]
				leaves--
			}
			if leaves > 0 {
				visit(cut)
			}
		}
		if p.of[i] != i || p.c.isKeptBefore(i) {
			continue
		}
		kept -= p.tokens[i]
		for _, stub := range stubs[i] {
			kept -= p.tokens[stub]
			left++
		}
		if e := &p.c.Entries[i]; e.ID != p.c.Compaction || e.Compaction == nil { // replacing only a summary gains nothing
			left++
		}
	}
}

// isKeptBefore reports whether an entry is kept in the context even if the cut comes after it.
// System messages of the path are, but not those that a merge has picked.
func (c *Context) isKeptBefore(i int) bool {
	m := c.Entries[i].Message
	return m != nil && m.Role == RoleSystem && c.isOnPath(i)
}

func (c *Context) isOnPath(i int) bool {
	return len(c.origin) != len(c.Entries) || c.origin[i] != notOnPath
}

// owners returns for each entry the one that it belongs to: itself or, if it replaces a
// result that never came, the one that made the call. There may be other messages of the
// model between the two, and a cut before those.
func (c *Context) owners() []int {
	owners := make([]int, len(c.Entries))
	places := make(map[string]int)
	for i := range c.Entries {
		e := &c.Entries[i]
		owners[i] = i
		if !strings.HasPrefix(e.ID, InterruptedPrefix) {
			places[e.ID] = i
		} else if at, ok := places[deref(e.ParentID)]; ok && !c.isOnPath(i) {
			owners[i] = at
		}
	}
	return owners
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// prompts returns for each entry the earlier one that begins the turn which a cut there
// would split, or -1. The path decides that. If an edit took that entry out of the context,
// there is none.
func (c *Context) prompts() []int {
	prompts := make([]int, len(c.Entries))
	last := -1
	if len(c.origin) != len(c.Entries) {
		for i := range c.Entries {
			if prompts[i] = last; c.Entries[i].BeginsTurn() {
				last = i
			}
		}
		return prompts
	}
	shown := make(map[int]int) // where the entries of the path are in the context
	for i, at := range c.origin {
		shown[at] = i
	}
	next := 0 // on the path
	for i, at := range c.origin {
		for ; next < at; next++ {
			if !c.path[next].BeginsTurn() {
				continue
			}
			last = -1
			if there, ok := shown[next]; ok {
				last = there
			}
		}
		prompts[i] = last
	}
	return prompts
}

// cutKinds returns the legal cuts by the index of the entry after each. If the context was
// built from a path, the path decides: there a result may be far from its call, and merged
// entries are not there at all.
func (c *Context) cutKinds() map[int]CutKind {
	kinds := make(map[int]CutKind)
	cuts, onPath := c.cuts()
	legal := cuts.legal()
	if !onPath {
		for _, cut := range legal {
			kinds[cut.At] = cut.Kind
		}
		return kinds
	}
	for i, at := range c.origin {
		n, ok := slices.BinarySearchFunc(legal, at-c.from, func(cut Cut, at int) int { return cut.At - at })
		if at >= c.from && ok {
			kinds[i] = legal[n].Kind
		}
	}
	return kinds
}

// cuts returns the cuts of the path from where the context begins or, if the context was not
// built from a path, those of its entries.
func (c *Context) cuts() (cuts *Cuts, onPath bool) {
	if len(c.origin) != len(c.Entries) {
		return cutsOf(c.Entries), false
	}
	cuts = &Cuts{}
	for _, e := range c.path[c.from:] {
		cuts.Add(*e)
	}
	return cuts, true
}

// checkCompaction makes sure that a compaction does not separate a tool call from its
// result. The compaction would come after the path to an entry of the session ("" means
// none) and after the entries in rest, which are being written with it. It returns what the
// compaction must record, which is nothing new for a grafted one.
func (s *Session) checkCompaction(ctx context.Context, leaf string, rest []*Entry, firstKeptID string, graft bool) (*State, error) {
	sel := &selection{}
	var err error
	if leaf != "" {
		if sel, err = s.selectPath(ctx, leaf); err == nil {
			err = s.findState(ctx, sel)
		}
		if err != nil {
			return nil, err
		}
	}
	isFirst := func(e *Entry) bool { return e.ID == firstKeptID }
	// The caller may want to keep an entry from before the compaction in force. Then the
	// whole path decides.
	before := firstKeptID != "" && !slices.ContainsFunc(sel.entries, isFirst) && !slices.ContainsFunc(rest, isFirst)
	// So it does if an entry that is being written with it reverts something: what counts before
	// the compaction in force was chosen without that.
	if leaf != "" && (before || slices.ContainsFunc(rest, func(e *Entry) bool { return e.Revert != nil })) {
		if sel.entries, err = s.wholePath(sel); err != nil {
			return nil, err
		}
		sel.before = nil
	}
	sel.entries = slices.Concat(sel.entries, rest)
	sel.reverted = make(reverts) // by all of these, and not only by those that the context at the leaf needed
	for _, e := range slices.Backward(sel.entries) {
		if e.Revert != nil {
			sel.reverted.add(e.ID, e.Revert.TargetID)
		}
	}
	if err := checkCut(sel.entries, firstKeptID, graft); err != nil || graft {
		return nil, err
	}
	c := assemble(sel)
	state := &State{Provider: c.Provider, Model: c.Model, ThinkingLevel: c.ThinkingLevel}
	if severalIn(s.log) == nil { // a reader of the last session alone finds others
		state.Kept = s.keptBefore(sel, firstKeptID)
	}
	return state, nil
}

// checkCut returns why a compaction at the end of a path may not keep it from an entry on, or
// nil. A call that still waits must be kept, so that its result finds it. In a graft, the
// first kept entry may be missing from the path: such a compaction does not count anyway.
func checkCut(path []*Entry, firstKeptID string, graft bool) error {
	var cuts Cuts
	entries := make([]Entry, len(path))
	at := -1
	for i, e := range path {
		entries[i] = *e
		cuts.Add(*e)
		if e.ID == firstKeptID {
			at = i
		}
	}
	waiting := cuts.pairs.PendingCalls()
	switch {
	case firstKeptID == "" && len(waiting) > 0:
		return &CutError{firstKeptID, fmt.Sprintf("tool call %s still waits for its result and must be kept", waiting[0].ID)}
	case firstKeptID == "" || at < 0 && graft:
		return nil
	case at < 0:
		return &CutError{firstKeptID, "it is not on the path"}
	}
	return cuts.check(entries, at)
}

// keptBefore returns the list that a compaction at the end of a selection must record about the path
// before its cut: see State.
func (s *Session) keptBefore(sel *selection, firstKeptID string) []KeptEntry {
	path := sel.path()
	cut, split := len(path), true
	if firstKeptID != "" {
		cut = slices.IndexFunc(path, func(e *Entry) bool { return e.ID == firstKeptID })
	}
	for _, e := range path[cut:] {
		if e.Message != nil {
			split = !e.BeginsTurn()
			break
		}
	}
	wanted := make(map[string]bool)
	for _, e := range slices.Backward(path[:cut]) {
		switch {
		case e.Message == nil:
		case e.Message.Role == RoleSystem:
			wanted[e.ID] = true
		case split && e.BeginsTurn():
			wanted[e.ID], split = true, false
		}
	}
	for target, edit := range effectiveEdits(sel) {
		wanted[edit.ID] = wanted[target]
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	kept := []KeptEntry{}
	for _, e := range path[:cut] {
		if wanted[e.ID] {
			n, _ := s.tree.keptNode(e.ID)
			kept = append(kept, KeptEntry{e.ID, n.pos})
		}
	}
	return kept
}

// wholePath returns the entries from the root to a selection's leaf.
func (s *Session) wholePath(sel *selection) ([]*Entry, error) {
	var nodes []node
	err := s.withWhole(func(t *tree) error {
		path, _ := t.path(sel.leaf)
		for i := len(path) - 1; i >= 0; i-- {
			nodes = append(nodes, t.nodes[path[i]])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.readPath(s.context(), sel, nodes)
}

// Undo takes back the compaction in force: the context is then as it would be without it.
// It returns the id of the revert entry; reverting that entry brings the compaction back. If
// no compaction is in force, it returns ErrNotExist.
func (s *Session) Undo() (string, error) {
	sel, err := s.selectPath(s.context(), "")
	if err != nil {
		return "", err
	}
	if sel.compaction == nil {
		return "", &Error{Op: "revert", Name: s.name, Kind: ErrNotExist, Err: fmt.Errorf("there is no compaction to undo at entry %q", sel.leaf)}
	}
	return s.AppendEntry(Revert(sel.compaction.ID))
}
