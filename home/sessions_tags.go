package home

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/session"
)

// TagRequest changes the tags of a conversation, or only asks for them. The two lists have no
// order, so a tag that is in both is removed.
type TagRequest struct {
	Session string   `json:"session"`          // as a person names it: see Resolve
	Add     []string `json:"add,omitempty"`    // tags that it gets
	Remove  []string `json:"remove,omitempty"` // tags that it loses
}

// Change adds a change as a person writes it: +tag or -tag. It replaces an earlier change of
// the same tag. Anything else is session.ErrInvalid.
func (r *TagRequest) Change(change string) error {
	list, field := &r.Add, "add"
	if strings.HasPrefix(change, "-") {
		list, field = &r.Remove, "remove"
	} else if !strings.HasPrefix(change, "+") {
		return wrong("add", "%q is not a change of a tag; it must be +TAG or -TAG", change)
	}
	tag := strings.TrimSpace(change[1:])
	if tag == "" {
		return wrong(field, "%q names no tag", change)
	}
	same := func(other string) bool { return other == tag }
	r.Add, r.Remove = slices.DeleteFunc(r.Add, same), slices.DeleteFunc(r.Remove, same)
	*list = append(*list, tag)
	return nil
}

// TagResult has the tags of a conversation.
type TagResult struct {
	Session string   `json:"session"` // the session or, if there are several, the conversation
	Tags    []string `json:"tags"`    // sorted
	// Entry is the last entry that was written for it; "" if nothing had to change.
	Entry string `json:"entry,omitempty"`
}

// Tag adds tags to a conversation and removes others. New tags go to its last session;
// tags are removed from every session that has them. Without changes it only returns
// the tags and writes nothing.
func (s *Sessions) Tag(ctx context.Context, r TagRequest) (*TagResult, error) {
	return call(ctx, s.home, "sessions.tag", r, s.tag)
}

func (s *Sessions) tag(ctx context.Context, r TagRequest) (*TagResult, error) {
	add, err := cleanTags("add", r.Add)
	if err != nil {
		return nil, err
	}
	remove, err := cleanTags("remove", r.Remove)
	if err != nil {
		return nil, err
	}
	if len(add)+len(remove) > 0 {
		s.home.beforeWriting(ctx)
	}
	name, links, err := s.home.openEach(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(add, isRating) { // a session has only one rating
		remove = append(remove, otherRatings(add)...)
	}
	add = slices.DeleteFunc(add, func(tag string) bool { return slices.Contains(remove, tag) })
	result := &TagResult{Session: name}
	if result.Entry, err = changeTags(links, add, remove); err == nil {
		if result.Tags, err = tagsOf(links); result.Entry != "" {
			err = unread("tag", name, err)
		}
	}
	return result, errors.Join(forCaller("tag", name, err), closeAll(links))
}

// maxTag is how long a tag may be, in bytes.
const maxTag = 200

// cleanTags checks the tags in a field.
func cleanTags(field string, tags []string) ([]string, error) {
	if err := checkUTF8(field, tags...); err != nil {
		return nil, err
	}
	clean := make([]string, len(tags))
	for i, tag := range tags {
		clean[i] = strings.TrimSpace(tag)
		switch {
		case clean[i] == "":
			return nil, wrong(field, "a tag is empty")
		case len(clean[i]) > maxTag:
			return nil, wrong(field, "a tag has %d bytes; %d are allowed", len(clean[i]), maxTag)
		case strings.ContainsFunc(clean[i], unicode.IsControl):
			return nil, wrong(field, "the tag %q has control characters", clean[i])
		case slices.Contains(strings.Split(clean[i], "/"), ""):
			return nil, wrong(field, "the tag %q has a / with nothing before or after it", clean[i])
		}
	}
	return clean, nil
}

// tagsOf returns the tags of all sessions of a conversation.
func tagsOf(links []*Conversation) ([]string, error) {
	var all session.TagSet
	for _, c := range links {
		now, err := c.Remarks()
		if err != nil {
			return nil, err
		}
		all.Add(now.Tags...)
	}
	return append([]string{}, all.Sorted()...), nil // in JSON an empty list is a list
}

// changeTags changes the tags of a conversation and returns the id of the last entry
// that does so, or "" if nothing had to change.
func changeTags(links []*Conversation, add, remove []string) (entry string, err error) {
	if len(add)+len(remove) == 0 {
		return "", nil
	}
	all, err := tagsOf(links)
	if err != nil {
		return "", err
	}
	add = slices.DeleteFunc(slices.Clone(add), func(tag string) bool { return slices.Contains(all, tag) })
	for i, c := range links {
		now, err := c.Remarks()
		if err != nil {
			return "", err
		}
		less := slices.DeleteFunc(slices.Clone(remove), func(tag string) bool { return !slices.Contains(now.Tags, tag) })
		more := add
		if i < len(links)-1 {
			more = nil
		}
		if len(more)+len(less) == 0 {
			continue
		}
		if entry, err = remark(c.Session, func() (string, error) { return c.AppendEntry(session.TagChange{Add: more, Remove: less}.Entry()) }); err != nil {
			return "", err
		}
	}
	return entry, nil
}

// SuggestTagsResult has words that would make good tags.
type SuggestTagsResult struct {
	Session   string   `json:"session"`
	Suggested []string `json:"suggested"` // the best first
}

const maxSuggested = 8

// SuggestTags returns words that distinguish a conversation from others and are not
// among its tags. Words that are already tags of others come first.
func (s *Sessions) SuggestTags(ctx context.Context, r SessionRequest) (*SuggestTagsResult, error) {
	return call(ctx, s.home, "sessions.suggest_tags", r, s.suggestTags)
}

func (s *Sessions) suggestTags(ctx context.Context, r SessionRequest) (*SuggestTagsResult, error) {
	found, known, unknown, err := s.home.suggestTags(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	words := append(append([]string{}, known...), unknown...)
	return &SuggestTagsResult{found.ID, words[:min(len(words), maxSuggested)]}, nil
}

// suggestTags returns tags of other sessions and new words, best first.
func (h *Home) suggestTags(ctx context.Context, given string) (found *index.Session, known, unknown []string, err error) {
	if found, err = h.indexed(ctx, given); err != nil {
		return found, nil, nil, err
	}
	ix, err := h.index(ctx)
	if err != nil {
		return found, nil, nil, err
	}
	tags, err := ix.Tags(ctx)
	if err != nil {
		return found, nil, nil, err
	}
	topics, err := ix.Topics(ctx, index.StatsOptions{Session: found.ID}, 4*maxSuggested)
	if err != nil {
		return found, nil, nil, err
	}
	named := make(map[string]string)            // the tag that ends with a word
	for _, tag := range slices.Backward(tags) { // if several end alike, the most frequent one stays
		if !isRating(tag.Name) {
			named[strings.ToLower(path.Base(tag.Name))] = tag.Name
		}
	}
	for _, topic := range topics {
		switch tag, is := named[topic.Word]; {
		case slices.Contains(found.Tags, topic.Word), is && slices.Contains(found.Tags, tag):
		case is:
			known = append(known, tag)
		case !strings.ContainsFunc(topic.Word, index.IsDense): // the index has pairs of these, not words
			unknown = append(unknown, topic.Word)
		}
	}
	return found, known, unknown, nil
}

// TagCount says how many conversations have a tag.
type TagCount struct {
	Tag      string `json:"tag"`
	Sessions int64  `json:"sessions"` // that have it
	// WithBelow is how many have it or a tag below it: as many as a list of the tag has.
	WithBelow int64 `json:"with_below"`
}

// TagsResult has all tags of a home.
type TagsResult struct {
	Tags []TagCount `json:"tags"` // by name, so that forge/parser follows forge
}

// Tags returns all tags. A tag such as forge/parser/tokens is below forge/parser:
// listing the sessions with a tag includes those with tags below it.
func (s *Sessions) Tags(ctx context.Context) (*TagsResult, error) {
	return ask(ctx, s.home, "sessions.tags", s.tags)
}

func (s *Sessions) tags(ctx context.Context) (*TagsResult, error) {
	ix, err := s.home.index(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := ix.Tags(ctx)
	if err != nil {
		return nil, err
	}
	result := &TagsResult{Tags: []TagCount{}}
	for _, c := range counts {
		result.Tags = append(result.Tags, TagCount{c.Name, c.Count, c.Count})
	}
	slices.SortFunc(result.Tags, func(a, b TagCount) int {
		return slices.Compare(strings.Split(a.Tag, "/"), strings.Split(b.Tag, "/"))
	})
	var above []string // the tags that have others below them, which follow at once
	for i := range len(result.Tags) - 1 {
		if strings.HasPrefix(result.Tags[i+1].Tag, result.Tags[i].Tag+"/") {
			above = append(above, result.Tags[i].Tag)
		}
	}
	sums, err := ix.TaggedBelow(ctx, above...)
	for i := range result.Tags {
		t := &result.Tags[i]
		t.WithBelow = max(t.Sessions, sums[t.Tag])
	}
	return result, err
}

// AutoTagRequest says which conversations to tag by what they are about.
type AutoTagRequest struct {
	Sessions []string `json:"sessions,omitempty"` // as a person names them: see Resolve
	All      bool     `json:"all,omitempty"`      // every conversation that has no tag yet
	DryRun   bool     `json:"dry_run,omitempty"`  // write nothing
}

// AutoTagResult says which tags were added to which conversation.
type AutoTagResult struct {
	Tagged []AutoTagged `json:"tagged"`
}

// AutoTagged is a conversation with the tags that were added to it.
type AutoTagged struct {
	Session string   `json:"session"`
	Title   string   `json:"title"`
	Added   []string `json:"added"`
}

// How many tags AutoTag adds. Tags that other sessions already have say more than new
// words; a few new ones are enough to begin with.
const (
	maxKnownTags = 3
	maxNewTags   = 2
)

// AutoTag adds the best of the tags that SuggestTags suggests. If it is interrupted, it
// returns what was done together with the error.
func (s *Sessions) AutoTag(ctx context.Context, r AutoTagRequest) (*AutoTagResult, error) {
	return call(ctx, s.home, "sessions.auto_tag", r, s.autoTag)
}

func (s *Sessions) autoTag(ctx context.Context, r AutoTagRequest) (*AutoTagResult, error) {
	names := r.Sessions
	if r.All {
		list, err := s.List(ctx, ListRequest{Limit: -1})
		if err != nil {
			return nil, err
		}
		for _, c := range list.Sessions {
			if !slices.ContainsFunc(c.Tags, func(tag string) bool { return !isRating(tag) }) {
				names = append(names, c.Name)
			}
		}
	}
	// Choose all before writing any: a tag that one conversation gets must not decide what
	// the next one gets, and a name that means nothing must not stop the work half-way.
	chosen := make([]AutoTagged, 0, len(names))
	for _, name := range names {
		found, known, unknown, err := s.home.suggestTags(ctx, name)
		if err != nil {
			return nil, err
		}
		add := known[:min(len(known), maxKnownTags)]
		if len(add) == 0 {
			add = unknown[:min(len(unknown), maxNewTags)]
		}
		if len(add) > 0 {
			chosen = append(chosen, AutoTagged{Session: found.ID, Title: found.Title, Added: add})
		}
	}
	if r.DryRun {
		return &AutoTagResult{Tagged: chosen}, nil
	}
	for i := range chosen {
		if _, err := s.Tag(ctx, TagRequest{Session: chosen[i].Session, Add: chosen[i].Added}); err != nil {
			return &AutoTagResult{Tagged: chosen[:i]}, err
		}
	}
	return &AutoTagResult{Tagged: chosen}, nil
}
