package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/agent"
)

const (
	defaultHits = 10
	maxHits     = 50
)

// SearchFunc finds what was said in earlier sessions, best matches first. For a query
// that it does not understand, it returns an error that says how to write one.
type SearchFunc func(ctx context.Context, query string, limit int) ([]Hit, error)

// Hit is something that a search has found.
type Hit struct {
	Session string    // its id
	Title   string    // of the session; may be empty
	Entry   string    // id of the entry; may be empty
	Time    time.Time // when it was said; may be zero
	Role    string    // who said it; may be empty
	Text    string    // the passage
}

type searchInput struct {
	Query string `json:"query"`
	Limit int    `json:"limit,omitempty" jsonschema:"number of passages"`
}

func (k *toolset) search() (agent.Tool, error) {
	t, err := agent.NewTool(Search, fmt.Sprintf("Search earlier sessions for words. Returns passages with the session they are from, best first: %d, or as many as limit says.", defaultHits),
		func(ctx context.Context, call agent.Call, in searchInput) (agent.Result, error) {
			err := words("query", in.Query)
			if err == nil {
				in.Limit, err = number("limit", in.Limit, defaultHits, maxHits)
			}
			if err != nil {
				return refused(err)
			}
			hits, err := k.Search(ctx, in.Query, in.Limit)
			if err != nil {
				return agent.Result{}, err
			}
			return agent.Result{Text: passages(hits, k.MaxOutput)}, nil
		})
	t.Repeatable = true
	return t, err
}

// passages writes as many hits as fit.
func passages(hits []Hit, max int) string {
	if len(hits) == 0 {
		return "[nothing found: try other or fewer words]"
	}
	var b strings.Builder
	for i, hit := range hits {
		head := []string{"session " + hit.Session}
		for _, s := range []string{hit.Title, hit.Role} {
			if s != "" {
				head = append(head, s)
			}
		}
		if hit.Entry != "" {
			head = append(head, "entry "+hit.Entry)
		}
		if !hit.Time.IsZero() {
			head = append(head, hit.Time.UTC().Format("2006-01-02 15:04"))
		}
		one := fmt.Sprintf("## %s\n%s\n\n", strings.Join(head, ", "), strings.TrimSpace(hit.Text))
		if i > 0 && b.Len()+len(one) > max {
			fmt.Fprintf(&b, "[%d more left out: they would be too long]", len(hits)-i)
			break
		}
		b.WriteString(one)
	}
	return strings.TrimSpace(b.String())
}
