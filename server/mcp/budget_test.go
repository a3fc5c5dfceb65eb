package mcp_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// pieces are what random texts are made of: what has few bytes and many tokens, and the other
// way round, what shows nothing, and what has no place to cut.
var pieces = []string{
	"the kiln is late ", "窑炉的心跳", "👩‍👩‍👧‍👦", "🇯🇵", "é", "aB3+/xQ9", "\n", "\t", "\x00", "\u202e", "{\"a\":[1,2]}", "\xff", "—", "0123456789abcdef", "  ",
}

func randomText(r *rand.Rand, most int) string {
	var b strings.Builder
	piece := pieces[r.IntN(len(pieces))]
	for n := r.IntN(most + 1); b.Len() < n; {
		if r.IntN(3) == 0 {
			piece = pieces[r.IntN(len(pieces))]
		}
		b.WriteString(piece)
	}
	return strings.ToValidUTF8(b.String(), "?")
}

// randomEntries are messages of all kinds, some of them huge.
func randomEntries(r *rand.Rand, n int) (entries []session.Entry) {
	for i := range n {
		most := []int{40, 400, 4_000, 60_000}[r.IntN(4)]
		text := "mark " + randomText(r, most)
		switch id := fmt.Sprint(i); r.IntN(4) {
		case 0:
			entries = append(entries, said(session.RoleUser, text))
		case 1:
			entries = append(entries, session.Message(session.RoleAssistant, session.Thinking(randomText(r, most), ""), session.Text(text)))
		case 2:
			entries = append(entries, session.Message(session.RoleUser, session.Image("image/png", base64.StdEncoding.EncodeToString(png)), session.Text(text)))
		default:
			entries = append(entries,
				session.Message(session.RoleAssistant, session.ToolUse(id, "edit_file", map[string]any{"path": "fan.go", "text": randomText(r, most)})),
				session.Message(session.RoleTool, session.ToolResult(id, text, r.IntN(2) == 0)))
		}
	}
	return entries
}

var entryLine = regexp.MustCompile(`(?m)^## entry (\S+)`)

// Whatever sessions say, every answer keeps to its budget, and a caller that follows the cursors gets
// everything, once.
func TestRandomSessionsKeepToTheBudget(t *testing.T) {
	t.Parallel()
	count := window.Estimate("", "").CountText
	for n := range soak.N(3) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := soak.Rand(t)
			h := newHome(t)
			var ids []string
			for range 3 {
				ids = append(ids, newSession(t, h, home.CreateRequest{Title: "t" + randomText(r, 300), CWD: "/x/fan"}, randomEntries(r, 1+r.IntN(8))...))
			}
			c := connect(t, h, nil)
			ask := func(tool string, a args) string {
				budget := 500 + r.IntN(2)*r.IntN(6000)
				if tool != "append_note" && tool != "set_label" {
					a["max_tokens"] = budget
				}
				text := textOf(c.call(tool, a))
				if n := count(text); n > budget {
					t.Errorf("%s %v has %d tokens of %d:\n%.600q", tool, a, n, budget, text)
				}
				return text
			}
			follow := func(tool string, a args, advice string) (all string) {
				for pages := 0; ; pages++ {
					text := ask(tool, a)
					all += text
					if a["cursor"] = cursorOf(text, advice); a["cursor"] == "" {
						return all
					}
					if pages == 2000 {
						t.Fatalf("%s %v has no end", tool, a)
					}
				}
			}
			for _, id := range ids {
				start := follow("read_session", args{"session": id, "from_start": true}, "after")
				end := follow("read_session", args{"session": id}, "before")
				once := entryLine.FindAllStringSubmatch(start, -1)
				seen := make(map[string]bool)
				for _, m := range once {
					if seen[m[1]] {
						t.Errorf("entry %s is there twice", m[1])
					}
					seen[m[1]] = true
				}
				if n := len(entryLine.FindAllStringSubmatch(end, -1)); n != len(once) || n == 0 {
					t.Errorf("%d entries from the start, %d from the end", len(once), n)
				}
				follow("read_session", args{"session": id, "entry": once[r.IntN(len(once))][1]}, "The rest")
				follow("get_image", args{"session": id}, "More")
				ask("get_image", args{"session": id, "image": "1"})
				ask("append_note", args{"session": id, "text": randomText(r, 3000)})
				ask("set_label", args{"session": id, "entry": "leaf", "label": strings.TrimSpace("l " + randomText(r, 20))})
			}
			for _, id := range ids {
				if all := follow("recent_sessions", args{"limit": 2}, "More"); strings.Count(all, "session "+id) != 1 {
					t.Errorf("%s is not listed once", id)
				}
			}
			follow("search", args{"query": "mark", "limit": 4}, "more hit")
			follow("sessions_with_file", args{"path": "fan.go", "limit": 1}, "more session")
		})
	}
}
