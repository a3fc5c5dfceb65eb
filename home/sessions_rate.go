package home

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// A rating is a tag, so that sessions are listed, searched and counted by it.
const (
	Good = "good"
	Bad  = "bad"

	ratings = "rated/" // what the tags of ratings begin with
)

func isRating(tag string) bool { return strings.HasPrefix(tag, ratings) }

// otherRatings returns the ratings that the last one among some tags replaces.
func otherRatings(add []string) []string {
	var last string
	for _, tag := range add {
		if isRating(tag) {
			last = tag
		}
	}
	return slices.DeleteFunc([]string{ratings + Good, ratings + Bad}, func(tag string) bool { return tag == last })
}

// RateRequest says how good a conversation was.
type RateRequest struct {
	Session string `json:"session"`          // as a person names it: see Resolve
	Rating  string `json:"rating,omitempty"` // one of Good and Bad; "" takes the rating back
	Note    string `json:"note,omitempty"`   // why it is rated so
	// Entry is the entry that it is about, as a person names it. Default: none, the
	// conversation as a whole.
	Entry string `json:"entry,omitempty"`
}

// RateResult says how a conversation is rated now.
type RateResult struct {
	Session string `json:"session"` // the session or, if there are several, the conversation
	Rating  string `json:"rating"`
	// Entry is the entry that records the rating; "" if there was no rating to take back.
	Entry string `json:"entry,omitempty"`
}

// Rate records whether a conversation was good or bad. The last rating counts; earlier
// ones stay in the log, with their notes. None of it is sent to a model.
func (s *Sessions) Rate(ctx context.Context, r RateRequest) (*RateResult, error) {
	return call(ctx, s.home, "sessions.rate", r, s.rate)
}

func (s *Sessions) rate(ctx context.Context, r RateRequest) (*RateResult, error) {
	if r.Rating != "" && r.Rating != Good && r.Rating != Bad {
		return nil, wrong("rating", "{rating} is %q; it must be %s, %s or none", r.Rating, Good, Bad)
	}
	if err := checkUTF8("note", r.Note); err != nil {
		return nil, err
	}
	s.home.beforeWriting(ctx)
	about := ""
	if r.Entry != "" {
		c, err := s.home.Conversation(ctx, OpenRequest{Session: r.Session})
		if err != nil {
			return nil, err
		}
		about, err = c.Resolve(r.Entry)
		if err := errors.Join(err, c.Close()); err != nil {
			return nil, err
		}
	}
	name, links, err := s.home.openEach(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	result := &RateResult{Session: name, Rating: r.Rating}
	result.Entry, err = rate(links, r, about)
	return result, errors.Join(forCaller("rate", name, err), closeAll(links))
}

func rate(links []*Conversation, r RateRequest, about string) (entry string, err error) {
	tags, err := tagsOf(links)
	if err != nil {
		return "", err
	}
	old := slices.DeleteFunc(tags, func(tag string) bool { return !isRating(tag) || tag == ratings+r.Rating })
	last := len(links) - 1
	if _, err := changeTags(links[:last], nil, old); err != nil {
		return "", err
	}
	change := session.TagChange{Remove: old, Note: r.Note, About: about}
	if r.Rating != "" {
		change.Add = []string{ratings + r.Rating}
	}
	if len(change.Add)+len(old) == 0 && r.Note == "" && about == "" {
		return "", nil // there was none to take back
	}
	s := links[last].Session
	return remark(s, func() (string, error) { return s.AppendEntry(change.Entry()) })
}
