package repo_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rules stand in one place each. What matches belongs into the files and directories in in, and nowhere
// else: what to say instead is in use.
var rules = []struct {
	what    string
	matches *regexp.Regexp
	in      []string
	use     string
}{
	{
		"opening a file", // a named pipe under a file's name would hang whoever opens it
		regexp.MustCompile(`\b(os\.Open|os\.ReadFile|ioutil\.ReadFile|[rR]oot\.Open|[rR]oot\.ReadFile)\(`),
		nil, "store/vfs",
	},
	{
		"the mark of what a program said in the user's name",
		regexp.MustCompile(`"injected"`),
		[]string{"session/pairs.go"},
		"session.MetaInjected or Entry.IsInjected",
	},
	{
		"what a request sent, and the sum of two usages",
		regexp.MustCompile(`\.CacheRead ?(\+ |\+\w|\+=)`),
		[]string{"session/entry.go", "index/usage.go", "index/prices.go"},
		"Usage.Sent, Usage.Context or Usage.Plus",
	},
	{
		"when a request that failed is sent again",
		regexp.MustCompile(`\.Temporary\(\)`),
		[]string{"provider/retry.go"},
		"provider.Retries.After",
	},
	{
		"how far calls have come, and which may run",
		regexp.MustCompile(`\bsession\.CustomCalls\b|\bcoppice\.CustomCalls\b`),
		[]string{"agent/pending.go", "agent/sign.go"},
		"agent.Keeper, or agent.Running",
	},
	{
		"what a continuation is given, and the marker in it",
		regexp.MustCompile(`&session\.ContinuesEntry\{`),
		[]string{"internal/boundary/boundary.go", "internal/boundary/message.go"},
		"boundary.Part.Carry",
	},
	{
		"the message with which another program's session says that it continues one",
		regexp.MustCompile(`"session_transition"|"earlier_messages"`),
		[]string{"internal/boundary/message.go"},
		"boundary.IsMarker, boundary.MarkerIn or boundary.MarkerMessage",
	},
	{
		"how a data: URL is taken apart",
		regexp.MustCompile(`Cut\(.*";base64,"`),
		[]string{"provider/source.go"},
		"provider.SourceAt",
	},
	{
		"which pictures a model can look at",
		regexp.MustCompile(`"image/webp"`),
		[]string{"provider/media/limits.go"},
		"provider/media",
	},
	{
		"how a block is put together",
		regexp.MustCompile(`Type: session\.ContentType(Image|Thinking|File), \w+: &session\.\w+\{(Content|Source|Name):.*\}\}`),
		nil,
		"session.Thinking, session.ImageFrom, session.File or session.Media",
	},
	{
		"which command helps", // a server must not tell its clients to type one
		regexp.MustCompile(`"[^"]*\b[cC]oppice (append|archive|backup|chat|config|export|fsck|import|ls|new|repair|restore|rm|search|show|trash)\b`),
		[]string{"cmd/coppice/internal/cli/", "cmd/coppice/internal/tui/", "interop/"},
		"a hint in words for every face; cmd/coppice/internal/cli adds its command",
	},
	{
		"the words before a summary",
		regexp.MustCompile(`"(Previous conversation summary|Summary of a(nother)? branch of the conversation)`),
		[]string{"session/content.go"},
		"session.CompactionLead, BranchLead or MergeLead",
	},
	{
		"how much of a conversation is kept, reserved or assumed",
		regexp.MustCompile(`(?i)(keep|reserve|window)\w*( =|,|:) (20_000|16_384|100_000)`),
		[]string{"window/budget.go"},
		"window.DefaultKeep, DefaultReserve or DefaultWindow",
	},
	{
		"that a revert counts unless it was reverted",
		regexp.MustCompile(`\[(\w+\.)*[tT]arget(ID)?\] = true`),
		[]string{"session/reverts.go", "session/check_paths.go", "session/past.go"}, // the others collect targets, whatever counts
		"session.RevertedIn",
	},
	{
		"which call a result answers",
		regexp.MustCompile(`(open|answers|found|waiting)\w*\[(\w+\.)*(ToolUseID|ToolUse\.ID)\]`),
		[]string{"transcript/format/geminicli/encode.go", "transcript/format/opencode/write.go"}, // the results of one reply, of which the first counts
		"session.Pairs or session.OpenCalls",
	},
	{
		"which messages are one response",
		regexp.MustCompile(`(==|!=) (\w+\.)+ResponseID\b|\.ResponseID (==|!=) \w`),
		[]string{"session/pairs.go", "window/usage.go"}, // the latter asks whether two reports are the same
		"session.Pairs or transcript.Replies",
	},
	{
		"which errors of a listing end it",
		regexp.MustCompile(`range .*\bList\((\w+\.)?ctx\)`),
		[]string{"store/list.go", "store/file/limits.go", "home/search_index.go", "cmd/coppice/internal/demo/demo.go", "adapter/adk/service.go", "store/storetest/concurrent.go"}, // the latter only ask whether there is any
		"store.All or store.Names",
	},
	{
		"how the arguments of a call are read", // by two readers, one argument could mean two things
		regexp.MustCompile(`Unmarshal\(\w+\.Input\b`),
		[]string{"interop/"},
		"agent.NewTool or agent.Arguments",
	},
	{
		"dollars to millionths",
		regexp.MustCompile(`(?i)(cost|dollars|number)\S* ?\* ?1e6`),
		[]string{"session/entry.go", "index/prices.go"},
		"session.MicroUSD",
	},
}

// TestRulesStandInOnePlace reads the code: a rule that is written down a second time is
// a rule that will be changed in one place only.
func TestRulesStandInOnePlace(t *testing.T) {
	inTop(t)
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bench" || name == "scripts" || name == "examples" || name == "tools" || d.Name() == "testdata" || d.Name() == "transcripttest" || len(name) > 1 && strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		name = filepath.ToSlash(name)
		for i, line := range strings.Split(string(text), "\n") {
			for _, r := range rules {
				if r.matches.MatchString(line) && !slices.ContainsFunc(r.in, func(in string) bool { return name == in || strings.HasSuffix(in, "/") && strings.HasPrefix(name, in) }) {
					t.Errorf("%s:%d states %s once more: use %s\n%s", name, i+1, r.what, r.use, line)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
