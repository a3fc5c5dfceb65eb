package aider

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/coppice-dev/coppice/session"
)

var (
	tokensLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^Tokens: ([\d.,]+[kM]?) sent(?:, ([\d.,]+[kM]?) cache write)?(?:, ([\d.,]+[kM]?) cache hit)?, ([\d.,]+[kM]?) received\.(?: Cost: \$([\d.]+) (?:request|message))?`)
	})
	modelLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^(?:Main model|Models?): (\S+)`) })
)

// readOutput takes from aider's output which model answers, and what its last message
// cost.
func (r *reader) readOutput(text string) {
	if m := modelLine().FindStringSubmatch(text); m != nil {
		r.answers = strings.TrimSuffix(m[1], ",")
	}
	m := tokensLine().FindStringSubmatch(text)
	if m == nil || r.held == nil || r.held.Entry.Message.Role != session.RoleAssistant {
		return
	}
	usage := &session.Usage{CacheWrite: count(m[2]), CacheRead: count(m[3]), Output: count(m[4])}
	usage.Input = max(0, count(m[1])-usage.CacheRead-usage.CacheWrite)
	if cost, err := strconv.ParseFloat(m[5], 64); err == nil {
		usage.CostMicroUSD = session.MicroUSD(cost)
	}
	r.held.Entry.Message.Usage = usage
}

// count reads a number as aider prints it: "5,244" or "4.2k".
func count(text string) int {
	factor := 1.0
	switch {
	case strings.HasSuffix(text, "k"):
		factor = 1e3
	case strings.HasSuffix(text, "M"):
		factor = 1e6
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimRight(text, "kM"), ",", ""), 64)
	if err != nil {
		return 0
	}
	return int(math.Round(n * factor))
}
