package session_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-dev/coppice/session"
)

func TestCheckRoleTakesTheFourRolesOfAConversation(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"user", "assistant", "system", "tool"} {
		if err := session.CheckRole(role); err != nil {
			t.Errorf("%q: %v", role, err)
		}
	}
	for _, role := range []string{"", "User", "function", "bashExecution", "custom"} {
		if err := session.CheckRole(role); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", role, err)
		}
	}
}

// waysIn are the generic ways in which an entry can be written.
var waysIn = map[string]func(*session.Session, session.Entry) error{
	"Append":      (*session.Session).Append,
	"AppendEntry": func(s *session.Session, e session.Entry) error { _, err := s.AppendEntry(e); return err },
	"AppendAll":   func(s *session.Session, e session.Entry) error { _, err := s.AppendAll(e); return err },
	"AppendAll, second of two": func(s *session.Session, e session.Entry) error {
		_, err := s.AppendAll(session.Entry{Type: "first"}, e)
		return err
	},
	"Graft": func(s *session.Session, e session.Entry) error { return graft(s, e) },
}

// graft grafts an entry onto the leaf.
func graft(s *session.Session, e session.Entry) error {
	if e.ID == "" {
		e.ID = session.NewID()
	}
	if leaf := s.LeafID(); leaf != "" && e.Type != session.TypeLeaf {
		e.ParentID = &leaf
	}
	if e.Timestamp.IsZero() {
		e.Timestamp = time.Now()
	}
	return s.Graft(e)
}

func compaction(firstKept string) session.Entry {
	return session.Entry{Type: session.TypeCompaction, Compaction: &session.CompactionEntry{Summary: "so far", FirstKeptEntryID: firstKept}}
}

// An entry that is not what its type says would lose something when it is read.
// It is refused by every way in, and nothing of it is written.
func TestEveryWayInRefusesWhatIsNotWhatItsTypeSays(t *testing.T) {
	t.Parallel()
	text, use := &session.TextContent{Content: "x"}, &session.ToolUseContent{ID: "c", Name: "n"}
	result := func(parts ...session.Content) session.Content {
		return session.Content{Type: "tool_result", ToolResult: &session.ToolResultContent{ToolUseID: "c", Parts: parts}}
	}
	two := session.Content{Type: "text", Text: text, ToolUse: use}
	edit := func(blocks ...session.Content) session.Entry {
		return session.Entry{Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: "u", Replacement: blocks}}
	}
	for name, e := range map[string]session.Entry{
		"no payload":                {Type: session.TypeMessage},
		"no payload, label":         {Type: session.TypeLabel},
		"payload of another type":   {Type: session.TypeLabel, Message: &session.MessageEntry{Role: "user"}},
		"two payloads":              {Type: session.TypeMessage, Message: &session.MessageEntry{Role: "user"}, Leaf: &session.LeafEntry{}},
		"unknown type, payload":     {Type: "odd", Message: &session.MessageEntry{Role: "user"}},
		"two members":               session.Message("user", two),
		"two members, second block": session.Message("user", session.Text("fine"), two),
		"two members, no type":      session.Message("user", session.Content{Text: text, ToolUse: use}),
		"member of another type":    session.Message("user", session.Content{Type: "image", Text: text}),
		"known type, no member":     session.Message("user", session.Content{Type: "text"}),
		"nothing at all":            session.Message("user", session.Content{}),
		"unknown type, member":      session.Message("user", session.Content{Type: "odd", Text: text}),
		"raw and a member":          session.Message("user", session.Content{Type: "odd", Text: text, Raw: json.RawMessage(`{"type":"odd"}`)}),
		"raw that is not JSON":      session.Message("user", session.Content{Type: "odd", Raw: json.RawMessage(`{"type":`)}),
		"two members in a part":     session.Message("tool", result(two)),
		"two members in an edit":    edit(two),
		"no member in an edit":      edit(session.Content{Type: "text"}),
		"id too long":               {Type: "odd", ID: strings.Repeat("x", 4096)},
		"id not UTF-8":              {Type: "odd", ID: "\xff"},
		"year 10000":                {Type: "odd", Timestamp: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		for way, write := range waysIn {
			s := newScribe(t)
			mustDo(t, s.Append(session.Entry{Type: session.TypeMessage, ID: "u", Message: &session.MessageEntry{Role: "user"}}))
			if err := write(s.Session, e); !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%s, %s: %v, want ErrInvalid", way, name, err)
			}
			if got := s.again().ids(); len(got) != 1 {
				t.Errorf("%s, %s: the log has %q", way, name, got)
			}
		}
	}
	s := newScribe(t)
	u := s.user("one")
	if _, err := s.AppendEntry(session.ContextEdit(u, two)); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("EditContext with two members: %v", err)
	}
	if _, err := s.AppendMessage("user", []session.Content{two}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("AppendMessage with two members: %v", err)
	}
	if _, err := s.Continue(session.Message("user", two)); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("Continue with two members: %v", err)
	}
}

// An error says which entry of several is wrong.
func TestRefusalNamesTheEntry(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	bad := session.Message("user", session.Content{Type: "text"})
	bad.ID = "bad-one"
	_, err := s.AppendAll(session.Message("user", session.Text("fine")), bad)
	if !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "bad-one") || !strings.Contains(err.Error(), "2 of 2") || !strings.Contains(err.Error(), "content[0]") {
		t.Errorf("got %v", err)
	}
}

// A block whose type was left out gets that of its member; the caller's own block
// stays as it is. What is raw but well known is read as what it is.
func TestLeftOutBlockTypesAreFilledIn(t *testing.T) {
	t.Parallel()
	for way, write := range waysIn {
		s := newScribe(t)
		given := []session.Content{
			{Text: &session.TextContent{Content: "x"}},
			{ToolResult: &session.ToolResultContent{ToolUseID: "c", Parts: []session.Content{{Text: &session.TextContent{Content: "y"}}}}},
			{Type: "tool_result", ToolResult: &session.ToolResultContent{ToolUseID: "d", Parts: []session.Content{{Text: &session.TextContent{Content: "z"}}}}},
			{Raw: json.RawMessage(`{"type":"odd","k":[1.0]}`)},
			{Raw: json.RawMessage(`{"type":"text","text":{"content":"w"}}`)},
			{Type: "odd", Extra: session.Fields{{Name: "k", Value: json.RawMessage("1")}}},
		}
		mustDo(t, write(s.Session, session.Message("tool", given...)))
		if given[0].Type != "" || given[1].ToolResult.Parts[0].Type != "" || given[4].Raw == nil {
			t.Errorf("%s: the caller's blocks were changed", way)
		}
		e := mustGet(s.again().Entry(s.LeafID()))(t)
		blocks := string(mustGet(json.Marshal(e.Message.Content))(t))
		want := `[{"type":"text","text":{"content":"x"}},` +
			`{"type":"tool_result","tool_result":{"tool_use_id":"c","is_error":false,"content":"","parts":[{"type":"text","text":{"content":"y"}}]}},` +
			`{"type":"tool_result","tool_result":{"tool_use_id":"d","is_error":false,"content":"","parts":[{"type":"text","text":{"content":"z"}}]}},` +
			`{"type":"odd","k":[1.0]},{"type":"text","text":{"content":"w"}},{"type":"odd","k":1}]`
		if diff := cmp.Diff(want, blocks); diff != "" {
			t.Errorf("%s: blocks (-want +got):\n%s", way, diff)
		}
		if e.Message.Content[4].Text == nil {
			t.Errorf("%s: the raw text is read as %+v", way, e.Message.Content[4])
		}
	}
}

// Appending takes the roles that a session has, grafting whatever a source has.
func TestRolesAreThoseOfTheFormat(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"user", "assistant", "tool", "system", "bashExecution", "custom", "branchSummary", "compactionSummary"} {
		for way, write := range waysIn {
			if err := write(newScribe(t).Session, session.Message(role)); err != nil {
				t.Errorf("%s: %v", way, err)
			}
		}
	}
	for _, role := range []string{"", "User", "critic"} {
		for way, write := range waysIn {
			s := newScribe(t)
			err := write(s.Session, session.Message(role))
			switch {
			case way == "Graft" && err != nil:
				t.Errorf("Graft of role %q: %v", role, err)
			case way != "Graft" && !errors.Is(err, session.ErrInvalid):
				t.Errorf("%s of role %q: %v, want ErrInvalid", way, role, err)
			}
		}
		if _, err := newScribe(t).AppendMessage(role, nil); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("AppendMessage of role %q: %v, want ErrInvalid", role, err)
		}
	}
}

// What the typed methods refuse, the generic ones refuse too. Grafts may refer to
// what is not there: other programs do.
func TestGenericAppendRefusesWhatTypedMethodsRefuse(t *testing.T) {
	t.Parallel()
	label := func(id string) session.Entry {
		return session.Entry{Type: session.TypeLabel, Label: &session.LabelEntry{TargetID: id, Label: "l"}}
	}
	edit := func(id string) session.Entry {
		return session.Entry{Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: id}}
	}
	revert := func(id string) session.Entry {
		return session.Entry{Type: session.TypeRevert, Revert: &session.RevertEntry{TargetID: id}}
	}
	merge := func(from, summary string, ids ...string) session.Entry {
		return session.Entry{Type: session.TypeMerge, Merge: &session.MergeEntry{FromID: from, Summary: summary, EntryIDs: ids}}
	}
	for name, test := range map[string]struct {
		entry session.Entry
		want  error
	}{
		"label of nothing":            {label("nowhere"), fs.ErrNotExist},
		"label of no id":              {label(""), fs.ErrNotExist},
		"edit of nothing":             {edit("nowhere"), fs.ErrNotExist},
		"edit off the path":           {edit("other"), session.ErrInvalid},
		"edit of no message":          {edit("think"), session.ErrInvalid},
		"revert of nothing":           {revert("nowhere"), fs.ErrNotExist},
		"revert of a message":         {revert("u"), session.ErrInvalid},
		"revert off the path":         {revert("edit"), session.ErrInvalid},
		"merge of nothing":            {merge("nowhere", "s"), fs.ErrNotExist},
		"merge that brings nothing":   {merge("other", ""), session.ErrInvalid},
		"merge of what is not there":  {merge("other", "s", "nowhere"), session.ErrInvalid},
		"merge of half a pair":        {merge("call", "s", "call"), session.ErrInvalid},
		"compaction that keeps none":  {compaction("nowhere"), session.ErrInvalid},
		"compaction off the path":     {compaction("other"), session.ErrInvalid},
		"move of the leaf to nowhere": {session.Entry{Type: session.TypeLeaf, ParentID: new("nowhere"), Leaf: &session.LeafEntry{}}, fs.ErrNotExist},
	} {
		for way, write := range waysIn {
			if way == "Graft" {
				continue
			}
			s := newScribe(t)
			add := func(id string, e session.Entry) {
				e.ID = id
				mustDo(t, s.Append(e))
			}
			add("u", session.Message("user", session.Text("one")))
			add("think", session.Entry{Type: session.TypeThinkingLevel, ThinkingLevel: &session.ThinkingLevelEntry{ThinkingLevel: "low"}})
			add("other", session.Message("user", session.Text("two")))
			add("edit", edit("other"))
			add("call", session.Message("assistant", session.ToolUse("c", "n", nil)))
			mustDo(t, s.Branch("think"))
			before := len(s.ids())
			if err := write(s.Session, test.entry); !errors.Is(err, test.want) {
				t.Errorf("%s, %s: %v, want %v", way, name, err, test.want)
			}
			if got := len(s.again().ids()); got != before {
				t.Errorf("%s, %s: something was written", way, name)
			}
		}
	}
}

// Entries that are written together are checked in order, each as if those before
// it were in the log.
func TestBatchIsJudgedInOrder(t *testing.T) {
	t.Parallel()
	with := func(id string, e session.Entry) session.Entry {
		e.ID = id
		return e
	}
	call, result := session.Message("assistant", session.ToolUse("c", "n", nil)), session.Message("tool", session.ToolResult("c", "r", false))
	move := func(to string) session.Entry {
		return session.Entry{Type: session.TypeLeaf, ParentID: &to, Leaf: &session.LeafEntry{}}
	}
	edit := func(id string) session.Entry {
		return session.Entry{Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: id}}
	}
	for name, test := range map[string]struct {
		entries []session.Entry
		legal   bool
	}{
		"a call, then a compaction of everything": {[]session.Entry{call, compaction("")}, false},
		"a call, its result, then the compaction": {[]session.Entry{call, result, compaction("")}, true},
		"a cut between the two":                   {[]session.Entry{call, with("r", result), compaction("r")}, false},
		"a cut before a call that waits":          {[]session.Entry{with("v", session.Message("user", session.Text("two"))), call, compaction("v")}, true},
		"a call that the leaf has left":           {[]session.Entry{call, move("u"), compaction("")}, true},
		"a call that the leaf comes back to":      {[]session.Entry{with("c", call), move("u"), move("c"), compaction("")}, false},
		"an edit of one before it":                {[]session.Entry{with("v", session.Message("user", session.Text("two"))), edit("v")}, true},
		"an edit of one after it":                 {[]session.Entry{edit("v"), with("v", session.Message("user", session.Text("two")))}, false},
		"an edit of one that the leaf has left":   {[]session.Entry{with("v", session.Message("user", session.Text("two"))), move("u"), edit("v")}, false},
		"an edit of one that it comes back to": {[]session.Entry{
			with("v", session.Message("user", session.Text("two"))), session.Message("user"), move("u"), session.Message("user"), move("v"), session.Message("user"), edit("v"), edit("u"),
		}, true},
	} {
		s := newScribe(t)
		mustDo(t, s.Append(with("u", session.Message("user", session.Text("one")))))
		ids, err := s.AppendAll(test.entries...)
		switch {
		case test.legal && err != nil:
			t.Errorf("%s: %v", name, err)
		case !test.legal && (!errors.Is(err, session.ErrInvalid) && !errors.Is(err, session.ErrNotExist) || len(ids) > 0):
			t.Errorf("%s: %v, %v", name, ids, err)
		}
		if !test.legal && len(s.again().ids()) != 1 {
			t.Errorf("%s: something was written", name)
		}
	}
}

// No way in separates a call from its result, or from the one that it waits for.
func TestNoWayInSeparatesACallFromItsResult(t *testing.T) {
	t.Parallel()
	for way, write := range waysIn {
		s := newScribe(t)
		s.user("one")
		s.add(session.Message("assistant", session.ToolUse("c", "n", nil)))
		var cut *session.CutError
		if err := write(s.Session, compaction("")); !errors.As(err, &cut) || !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s while a call waits: %v, want a CutError", way, err)
		}
		r := s.add(session.Message("tool", session.ToolResult("c", "r", false)))
		if err := write(s.Session, compaction(r)); !errors.As(err, &cut) || cut.EntryID != r {
			t.Errorf("%s between a call and its result: %v, want a CutError", way, err)
		}
		after := s.user("two")
		mustDo(t, write(s.Session, compaction(after)))
		if got := mustGet(s.again().Context(session.ContextOptions{}))(t); len(got.Problems) > 0 {
			t.Errorf("%s: %v", way, got.Problems)
		}
	}
}

// A compaction that is appended gets the State that is in force, so that resuming
// needs nothing of what came before it.
func TestAppendedCompactionGetsItsState(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	mustGet(s.AppendModelChange("p", "m"))(t)
	u := s.user("one")
	mustGet(s.AppendAll(session.Entry{Type: session.TypeThinkingLevel, ThinkingLevel: &session.ThinkingLevelEntry{ThinkingLevel: "high"}}, compaction(u)))(t)
	e := mustGet(s.Entry(s.LeafID()))(t)
	if st := e.Compaction.State; st == nil || st.Provider != "p" || st.Model != "m" || st.ThinkingLevel != "high" {
		t.Errorf("state %+v", st)
	}
}

// Grafts keep what other programs wrote, odd as it is.
func TestGraftKeepsOddities(t *testing.T) {
	t.Parallel()
	s := newScribe(t)
	for _, e := range []session.Entry{
		session.Message("critic", session.Text("x")),
		session.Message("tool", session.ToolResult("nowhere", "r", false)),
		{Type: session.TypeLabel, Label: &session.LabelEntry{TargetID: "nowhere", Label: "l"}},
		{Type: session.TypeContextEdit, ContextEdit: &session.ContextEditEntry{TargetID: "nowhere"}},
		{Type: session.TypeMerge, Merge: &session.MergeEntry{FromID: "nowhere"}},
		{Type: "future", Extra: session.Fields{{Name: "k", Value: json.RawMessage("1.0")}}},
		compaction("nowhere"),
	} {
		if err := graft(s.Session, e); err != nil {
			t.Errorf("%s: %v", e.Type, err)
		}
	}
	if err := graft(s.Session, session.Entry{Type: session.TypeLeaf, ParentID: new("nowhere"), Leaf: &session.LeafEntry{}}); !errors.Is(err, session.ErrNotExist) {
		t.Errorf("a parent that is not there: %v", err)
	}
}

// What is handed in as text is read strictly: what a log would keep as unknown is
// a mistake there.
func TestParseEntryRefusesMistakes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `[]`, `{"type":`, `{}`, `{"type":"session"}`, `{"type":5}`,
		`{"type":"message","id":5,"message":{"role":"user","content":"x"}}`,
		`{"type":"message"}`, `{"type":"message","message":5}`, `{"type":"message","message":{"role":"user"}}`,
		`{"type":"message","message":{"role":5,"content":"x"}}`, `{"type":"message","message":{"role":"critic","content":"x"}}`,
		`{"type":"message","message":{"role":"user","content":"x","tokens":"many"}}`,
		`{"type":"message","message":{"role":"user","content":[{"a":1}]}}`, `{"type":"message","message":{"role":"user","content":[5]}}`,
		`{"type":"message","message":{"role":"user","content":[{"type":"text"}]}}`,
		`{"type":"message","message":{"role":"user","content":[{"type":"text","text":{"content":"x"},"image":{}}]}}`,
		`{"type":"message","message":{"role":"user","content":"x"},"label":{}}`,
		`{"type":"label","label":{"label":"x"}}`, `{"type":"revert","revert":{}}`, `{"type":"merge","merge":{}}`,
		`{"type":"context_edit","context_edit":{"target_id":"a","replacement":[{"type":"text"}]}}`,
		`{"type":"context_edit","context_edit":{"target_id":"a","replacement":5}}`,
		`{"type":"message","type":"label","message":{"role":"user","content":"x"}}`,
		`{"type":"message","message":{"role":"user","content":"x","content":"y"}}`,
		`{"type":"message","role":"user","content":"x","tokens":"5"}`,
		`{"type":"message","message":{"role":"assistant","content":"x","usage":{"input":"5"}}}`,
		`{"type":"message","message":{"role":"assistant","content":"x","usage":{"input":-5}}}`,
		`{"type":"message","message":{"role":"assistant","content":"x","tokens":-4}}`,
		`{"type":"message","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"k","name":"n","input":"str"}}]}}`,
		`{"type":"message","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"k","name":"n","input":[1]}}]}}`,
		`{"type":"message","message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"k","content":7}}]}}`,
		`{"type":"message","message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"k","is_error":"yes"}}]}}`,
		`{"type":"message","timestamp":"0001-01-01T00:00:00Z","message":{"role":"user","content":"x"}}`,
		`{"type":"model_change","model_change":{"provider":3,"model_id":"m"}}`,
		`{"type":"compaction","compaction":{"summary":"s","tokens_before":-1}}`,
		`{"type":"compaction","compaction":{"summary":"s","state":5}}`,
		`{"type":"custom","custom":{"custom_type":"t","data":"x"}}`,
		`{"type":"leaf","leaf":{}}`,
		`{"type":"continues","continues":{"session":"x","created":5}}`, `{"type":"continues","continues":{"original":"x"}}`,
		`{"type":"message","message":{"role":"user","content":""}}`,
		`{"type":"message","message":{"role":"assistant","content":[{"type":"tool_use","tool_use":{"id":"k","name":"n"}},{"type":"tool_use","tool_use":{"id":"k","name":"n"}}]}}`,
		`{"type":"message","message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"k","parts":[{"type":"text"}]}}]}}`,
		`{"type":"message","message":{"role":"tool","content":[{"type":"tool_result","tool_result":{"tool_use_id":"k","blob":"../../etc/passwd"}}]}}`,
		`{"type":"message","message":{"role":"user","content":[{"type":"image","image":{}}]}}`,
		`{"type":"message","message":{"role":"user","content":[{"type":"image","image":{"source":{"type":"ftp","data":"x"}}}]}}`,
		`{"type":"message","message":{"role":"user","content":[{"type":"image","image":{"source":{"type":"base64","data":"%"}}}]}}`,
		`{"type":"custom","custom":{"custom_type":"coppice.tags","data":{"add":"x"}}}`,
		`{"type":"custom","custom":{"custom_type":"coppice.pinned","data":{"pinned":"yes"}}}`,
	} {
		if _, err := session.ParseEntry([]byte(text)); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", text, err)
		}
	}
	for _, text := range []string{
		`{"type":"message","message":{"role":"user","content":"x"}}`, `{"type":"message","role":"user","content":["x"],"k":1.0}`,
		`{"type":"future","message":{}}`, `{"type":"thinking_level_change","thinking_level":"high"}`,
		`{"type":"message","message":{"role":"user","content":[{"type":"odd","k":1}]}}`,
		`{"type":"message","message":{"role":"user","content":[{"type":"image","image":{"source":{"type":"base64","media_type":"image/png","data":"AAAA"}}}]}}`,
		`{"type":"leaf","parent_id":null,"leaf":{}}`,
	} {
		e, err := session.ParseEntry([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		mustDo(t, newScribe(t).Append(e))
	}
}

// A count that is negative or absurd would spoil every sum it is part of.
func TestAppendRefusesWhatIsNoCount(t *testing.T) {
	t.Parallel()
	spent := func(u session.Usage) session.Entry {
		e := session.Message("assistant", session.Text("x"))
		e.Message.Usage = &u
		return e
	}
	counted := func(n int) session.Entry {
		e := session.Message("user", session.Text("x"))
		e.Message.Tokens = &n
		return e
	}
	before := compaction("")
	before.Compaction.TokensBefore = -1
	for name, e := range map[string]session.Entry{
		"input": spent(session.Usage{Input: -5}), "output": spent(session.Usage{Output: math.MaxInt}),
		"cache read": spent(session.Usage{CacheRead: -1}), "cache write": spent(session.Usage{CacheWrite: -1}),
		"reasoning": spent(session.Usage{Reasoning: -1}), "cost": spent(session.Usage{CostMicroUSD: math.MaxInt}),
		"tokens": counted(-4), "too many tokens": counted((1 << 40) + 1), "tokens before": before,
	} {
		for way, write := range waysIn {
			if way == "Graft" {
				continue // it keeps what others wrote; readers pass it over
			}
			s := newScribe(t)
			if err := write(s.Session, e); !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%s, %s: %v, want ErrInvalid", way, name, err)
			}
		}
	}
	s := newScribe(t)
	mustDo(t, s.Append(counted((1 << 40))))
}

// Files of others may have such numbers all the same. They count as missing, and
// are written back as they were.
func TestReadersPassOverWhatIsNoCount(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"type":"message","id":"a","parent_id":null,"timestamp":"2024-01-01T10:00:00.000Z","message":{"role":"assistant","content":[],"tokens":-3}}`,
		`{"type":"message","id":"a","parent_id":null,"timestamp":"2024-01-01T10:00:00.000Z","message":{"role":"assistant","content":[],"usage":{"input":-5,"output":9223372036854775807}}}`,
		`{"type":"compaction","id":"a","parent_id":null,"timestamp":"2024-01-01T10:00:00.000Z","compaction":{"summary":"s","first_kept_entry_id":"","tokens_before":-1}}`,
	} {
		var e session.Entry
		mustDo(t, json.Unmarshal([]byte(text), &e))
		if m := e.Message; m != nil && (m.Tokens != nil || m.Usage != nil && m.Usage.Context() != 0) {
			t.Errorf("%s: tokens %v, usage %+v", text, m.Tokens, m.Usage)
		}
		if e.Compaction != nil && e.Compaction.TokensBefore != 0 {
			t.Errorf("%s: %d tokens before", text, e.Compaction.TokensBefore)
		}
		if got, err := json.Marshal(e); err != nil || string(got) != text {
			t.Errorf("written back as %s, %v\nwant %s", got, err, text)
		}
	}
}

// Readers believe what a compaction says was in force. So a session says it, not
// whoever appends the compaction.
func TestCompactionsSayWhatIsInForceWhateverTheyAreGiven(t *testing.T) {
	t.Parallel()
	for way, write := range waysIn {
		s := newScribe(t)
		mustDo(t, s.Append(session.Message("system", session.Text("be brief"))))
		if _, err := s.AppendModelChange("p", "real"); err != nil {
			t.Fatal(err)
		}
		s.user("one")
		e := compaction("")
		e.Compaction.State = &session.State{Model: "fake", Kept: []session.KeptEntry{{ID: "nosuch", At: 5}}}
		mustDo(t, write(s.Session, e))
		c, err := s.again().Context(session.ContextOptions{})
		mustDo(t, err)
		if want := "real"; way != "Graft" && c.Model != want {
			t.Errorf("%s: the model is %q, want %q", way, c.Model, want)
		}
		if len(c.Entries) != 2 || c.Entries[0].Message == nil || c.Entries[0].Message.Role != "system" {
			t.Errorf("%s: the context is %+v, want the system message and the summary", way, c.Entries)
		}
		if e.Compaction.State.Model != "fake" || e.Compaction.State.Kept == nil {
			t.Errorf("%s: the caller's entry was changed", way)
		}
	}
}

func TestAppendRefusesBranchesThatWereNeverThere(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]session.Entry{
		"leaf":           {Type: session.TypeLeaf, Leaf: &session.LeafEntry{FromID: "nosuch"}},
		"branch summary": {Type: session.TypeBranchSummary, BranchSummary: &session.BranchSummaryEntry{Summary: "s", FromID: "nosuch"}},
	} {
		s := newScribe(t)
		s.user("one")
		if err := s.Append(e); !errors.Is(err, session.ErrNotExist) {
			t.Errorf("%s: %v, want ErrNotExist", name, err)
		}
		mustDo(t, graft(s.Session, e)) // what others wrote is kept
	}
}

func TestAppendRefusesIDsThatNobodyCanName(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"leaf", "a\nb", "a\tb", "\x00", "a\u0085b"} {
		s := newScribe(t)
		e := session.Message("user", session.Text("x"))
		e.ID = id
		if err := s.Append(e); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", id, err)
		}
		mustDo(t, graft(s.Session, e))
	}
}
