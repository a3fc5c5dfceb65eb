package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/internal/soak"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/file"
)

// tester is a test of fixed cases or of random ones.
type tester interface {
	rapid.TB
	Context() context.Context
}

// printed runs a command, and returns what it prints.
func printed(t tester, dir string, args ...string) string {
	var out, errs bytes.Buffer
	a := &app{talk: newTalk(&out, &errs, os.Getenv), stdin: strings.NewReader(""), getenv: os.Getenv}
	if code := a.run(t.Context(), append([]string{"--dir", dir}, args...)); code != 0 {
		t.Fatalf("coppice %v: exit %d: %s", args, code, &errs)
	}
	return out.String()
}

// messageLines counts the messages among lines of JSON.
func messageLines(lines string) (n int) { return strings.Count("\n"+lines, "\n{\"type\":\"message\"") }

var messageID = regexp.MustCompile(`(?m)^{"type":"message","id":"([^"]+)"`)

// lastMessage returns the id of the last message among lines of JSON, or "".
func lastMessage(lines string) string {
	found := messageID.FindAllStringSubmatch(lines, -1)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1][1]
}

var (
	mdUpdated    = regexp.MustCompile(`(?m)^\*\*Updated:\*\* (.*)$`)
	mdMessages   = regexp.MustCompile(`(?m)^\*\*Messages:\*\* (\d+)`)
	mdTokens     = regexp.MustCompile(`(?m)^\*\*Total Tokens:\*\* (\d+|unknown)$`)
	htmlMessages = regexp.MustCompile(`([\d,]+) messages?\b`)
)

// checkNumbers compares what the commands say of each conversation of a store.
func checkNumbers(t tester, dir string) {
	for line := range strings.Lines(printed(t, dir, "ls", "--json", "--all", "-n", "0")) {
		var row home.SessionInfo
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		var stats home.StatsResult
		if err := json.Unmarshal([]byte(printed(t, dir, "stats", row.ID, "--json")), &stats); err != nil {
			t.Fatal(err)
		}
		same := func(what string, got, want any) {
			if got, want := fmt.Sprint(got), fmt.Sprint(want); got != want {
				t.Errorf("%s of %s: %s, want %s", what, row.ID, got, want)
			}
		}
		same("messages in stats", stats.Messages, row.Messages)
		all := printed(t, dir, "show", row.ID, "--all", "--json")
		same("messages in show --all", messageLines(all), row.Messages)
		used := stats.Total
		same("tokens in stats", used.Input+used.CacheRead+used.CacheWrite+used.Output+used.Recorded+stats.Shared, row.Tokens)
		md := printed(t, dir, "export", row.ID, "--format", "md")
		onPath := messageLines(printed(t, dir, "show", row.ID, "--json"))
		same("messages in the Markdown", mdMessages.FindStringSubmatch(md)[1], onPath)
		tokens := "unknown"
		if row.TokensFrom != "" {
			tokens = strconv.FormatInt(row.Tokens, 10)
		}
		same("tokens in the Markdown", mdTokens.FindStringSubmatch(md)[1], tokens)
		same("updated in the Markdown", mdUpdated.FindStringSubmatch(md)[1], row.Updated.UTC().Format(time.DateTime))
		if last := lastMessage(all); row.Branches == 1 && row.Links <= 1 && last != "" {
			// Not up to the leaf: it may have gone back, and the rest of the branch counts too.
			same("messages on the only branch", messageLines(printed(t, dir, "show", row.ID, "--leaf", last, "--json")), row.Messages)
		}
		if found := htmlMessages.FindStringSubmatch(printed(t, dir, "export", row.ID, "--format", "html")); found != nil {
			same("messages in the page", strings.ReplaceAll(found[1], ",", ""), row.Messages)
		}
	}
}

// What the commands say of one conversation is the same number, whichever says it.
func TestAllAgreeOnTheNumbers(t *testing.T) {
	root := t.TempDir()
	runs := 0
	soak.Few(t, 5, func(t *rapid.T) {
		runs++
		dir := filepath.Join(root, strconv.Itoa(runs))
		addCounted(t, dir, writeKeyed(t, dir, "chat:1", rapid.IntRange(1, 20).Draw(t, "steps")))
		chain := chatOn(&author{t: t}, dir, "", rapid.IntRange(5, 25).Draw(t, "messages"))
		checkNumbers(t, dir)
		loseLink(t, dir, chain)
		checkNumbers(t, dir)
	})
}

// A conversation that went back from its end still has one branch. All of its messages
// count, and what follows the leaf is not shown.
func TestNumbersAfterTheLeafWentBack(t *testing.T) {
	dir := t.TempDir()
	s, err := session.New(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ids []string
	for _, role := range []session.MessageRole{session.RoleUser, session.RoleAssistant, session.RoleUser} {
		id, err := s.AppendMessage(role, []session.Content{session.Text("hello")})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := s.Branch(ids[1]); err != nil {
		t.Fatal(err)
	}

	var row home.SessionInfo
	if err := json.Unmarshal([]byte(printed(t, dir, "ls", "--json")), &row); err != nil {
		t.Fatal(err)
	}
	if row.Messages != 3 || row.Branches != 1 || row.Leaf != ids[1] {
		t.Errorf("ls: %d messages, %d branches, leaf %s; want 3, 1, %s", row.Messages, row.Branches, row.Leaf, ids[1])
	}
	if n := messageLines(printed(t, dir, "show", row.ID, "--json")); n != 2 {
		t.Errorf("show: %d messages, want the 2 up to the leaf", n)
	}
	checkNumbers(t, dir)
}

// addCounted adds answers to a session: with a report, in two messages, with a count,
// and without anything in them.
func addCounted(t *rapid.T, dir, id string) {
	st, err := file.Open(dir, &file.Options{Sync: file.Never})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := session.Open(t.Context(), st, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range rapid.IntRange(0, 4).Draw(t, "answers") {
		n := rapid.IntRange(1, 100).Draw(t, "tokens")
		m := &session.MessageEntry{Role: session.RoleAssistant, Model: "m", Content: []session.Content{session.Text("answer")}}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			m.Tokens = &n
		case 1:
			m.Usage = &session.Usage{Input: n, Output: 1}
		case 2:
			m.Usage, m.ResponseID = &session.Usage{Input: 5, Output: n}, "grows"
		case 3:
			m.Content = []session.Content{session.Text("")}
		}
		if err := s.Append(session.Entry{Type: session.TypeMessage, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
}

// loseLink removes a session of a conversation, if it has several.
func loseLink(t *rapid.T, dir, id string) {
	st, err := file.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	chain, err := session.FindChain(t.Context(), st, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(chain.Links) > 1 {
		if err := st.Remove(t.Context(), rapid.SampledFrom(chain.Links).Draw(t, "lost")); err != nil {
			t.Fatal(err)
		}
	}
}
