package tools_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/agent/tools"
	"github.com/coppice-dev/coppice/internal/soak"
)

// The rules that are offered for a command can be read, and allow it and no other.
func TestRulesForACommandAllowJustThat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	none, err := tools.NewRules(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	decide := func(t rapid.TB, command string, rules []string) agent.Decision {
		t.Helper()
		r, err := tools.NewRules(dir, rules, nil)
		if err != nil {
			t.Fatalf("for %s: %v", command, err)
		}
		d, _ := r.Decide(call("bash", args("command", command)))
		return d
	}
	for _, command := range []string{`git commit -m "it's (done)"`, `echo ')' "'" '' '\' "a b" '*' 'é'`, `'time' "it's"`, `echo "'" && ls '('`} {
		rules, err := none.RulesFor(call("bash", args("command", command)))
		if err != nil || decide(t, command, rules) != agent.Allow {
			t.Errorf("%s: the rules are %q, %v", command, rules, err)
		}
	}
	soak.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune(`ab'"()\*?$=!~{[;&| é`)), 0, 5, -1), 1, 4)
		one, other := words.Draw(t, "one"), words.Draw(t, "other")
		line := func(words []string) string {
			var quoted []string
			for _, w := range words {
				quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'"'"'`)+"'")
			}
			return strings.Join(quoted, " ")
		}
		if strings.Contains(one[0], "=") {
			return // it is taken for a variable
		}
		rules, err := none.RulesFor(call("bash", args("command", line(one))))
		if err != nil {
			t.Fatalf("%s: %v", line(one), err)
		}
		if decide(t, line(one), rules) != agent.Allow {
			t.Fatalf("%q do not allow %s", rules, line(one))
		}
		if !slices.Equal(one, other) && decide(t, line(other), rules) == agent.Allow {
			t.Fatalf("%q allow %s", rules, line(other))
		}
	})
}
