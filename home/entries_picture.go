package home

import (
	"cmp"
	"context"
	"slices"

	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window"
)

// PictureRequest says of which path to make a picture.
type PictureRequest struct {
	Session string `json:"session"`        // as a person names it: see Resolve
	Link    bool   `json:"link,omitempty"` // only the session that is named
	Leaf    string `json:"leaf,omitempty"` // the end of the path, as a person names it; "" means the leaf
	// Points is how many points to return at most: requests that follow each other become one.
	// Default: 200; -1 means one for each request.
	Points int `json:"points,omitempty"`
}

// defaultPoints is more than a screen shows beside each other.
const defaultPoints = 200

// PictureResult is how a conversation went.
type PictureResult struct {
	Session string `json:"session"` // its name or, if there are several sessions, the conversation's id
	Leaf    string `json:"leaf"`    // the id of the last entry of the path; "" if it is empty
	render.Picture
}

// Picture returns how a conversation went along a path: for each request, how full the context was,
// what came from the provider's cache, what it cost, and where the time went; with compactions, branches and
// errors. The cost is that of the path, whoever paid for it: see Search.Stats for what the
// conversation was charged. It reads every entry of the path.
func (e *Entries) Picture(ctx context.Context, r PictureRequest) (*PictureResult, error) {
	return call(ctx, e.home, "entries.picture", r, e.picture)
}

func (e *Entries) picture(ctx context.Context, r PictureRequest) (*PictureResult, error) {
	if err := allOrMore("points", r.Points); err != nil {
		return nil, err
	}
	var result *PictureResult
	err := e.home.look(ctx, OpenRequest{r.Session, r.Link}, func(v *viewed, _ render.Conversation) error {
		leaf, err := v.leafNamed(r.Leaf)
		if err != nil {
			return err
		}
		drawn, err := e.home.draw(ctx, v.sketch, leaf)
		if err != nil {
			return err
		}
		drawn.Points = render.Fit(drawn.Points, cmp.Or(r.Points, defaultPoints))
		result = &PictureResult{Session: v.Handle, Picture: *drawn}
		if leaf >= 0 {
			result.Leaf = v.sketch.Shape().ID(leaf)
		}
		return nil
	})
	return result, err
}

// draw makes a picture of the path to a leaf.
func (h *Home) draw(ctx context.Context, k *render.Sketch, leaf int32) (*render.Picture, error) {
	prices, err := h.settings.prices()
	if err != nil {
		return nil, err
	}
	counter := window.Estimate("", "")
	drawn, err := render.NewPicture(ctx, k, leaf, render.PictureOptions{
		Price: prices.CostOf,
		Count: func(e *session.Entry) int { return window.CountEntry(counter, "", e).Tokens },
	})
	if err != nil {
		return nil, err
	}
	for _, at := range slices.Backward(drawn.Points) {
		if at.Model != "" {
			drawn.Window = int64(h.settings.family(at.Model).Window)
			break
		}
	}
	return drawn, nil
}

// picture returns a picture of the path to a leaf, for a page.
func (c *Conversation) picture(ctx context.Context, drawn render.Conversation, leaf string) (*render.Picture, error) {
	k, err := render.NewSketch(drawn, false)
	if err != nil {
		return nil, err
	}
	at := k.Shape().Leaf()
	if leaf != "" {
		at = k.Shape().Index(leaf)
	}
	return c.home.draw(ctx, k, k.At(at))
}
