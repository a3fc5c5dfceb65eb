package cli

import "github.com/coppice-dev/coppice/index"

// usageJSON is what some responses cost, in the output of --json: see docs/cli.md.
type usageJSON struct {
	Key          string `json:"key,omitempty"`
	Responses    int64  `json:"responses"`
	Input        int64  `json:"input"`
	CacheRead    int64  `json:"cache_read"`
	CacheWrite   int64  `json:"cache_write"`
	Output       int64  `json:"output"`
	Reasoning    int64  `json:"reasoning"`
	Recorded     int64  `json:"recorded"`
	CostMicroUSD int64  `json:"cost_micro_usd"`
	Unpriced     int64  `json:"unpriced_responses"`
}

func usagesJSON(sums []index.Usage) []usageJSON {
	list := make([]usageJSON, 0, len(sums))
	for _, u := range sums {
		list = append(list, usageJSON(u))
	}
	return list
}

// statsJSON is the output of stats --json: see docs/cli.md.
type statsJSON struct {
	Session  string        `json:"session,omitempty"`
	Context  *int64        `json:"context_tokens,omitempty"`
	Shared   int64         `json:"shared_tokens,omitempty"`
	Messages int64         `json:"messages"`
	Total    usageJSON     `json:"total"`
	Days     []usageJSON   `json:"days"`
	Models   []usageJSON   `json:"models"`
	Sessions []usageJSON   `json:"sessions"`
	Tools    []index.Count `json:"tools"`
	Roles    []index.Count `json:"roles"`
	Hours    [24]int64     `json:"hours"`
	Weekdays [7]int64      `json:"weekdays"`
	Topics   []string      `json:"topics"`
}

func (a *app) printStatsJSON(session string, s *stats) error {
	topics := make([]string, 0, len(s.topics))
	for _, t := range s.topics {
		topics = append(topics, t.Word)
	}
	return a.printJSON(statsJSON{
		Session: session, Context: s.context, Shared: s.shared, Messages: s.activity.Messages, Total: usageJSON(s.total),
		Days: usagesJSON(s.days), Models: usagesJSON(s.models), Sessions: usagesJSON(s.sessions),
		Tools: orEmpty(s.activity.Tools), Roles: orEmpty(s.activity.Roles),
		Hours: s.activity.Hours, Weekdays: s.activity.Weekdays, Topics: topics,
	})
}
