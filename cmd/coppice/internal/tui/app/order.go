package app

import (
	"reflect"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/index"
	"github.com/coppice-dev/coppice/render"
)

// order is how the sessions are sorted. The zero value has those first in which something was said
// last.
type order struct {
	by      string // as sessions.shelf has it; "" is the first of orders
	reverse bool
}

// orderWords are the words for each order: its key, its name, and which sessions come first.
var orderWords = map[string]struct{ key, name, first, last string }{
	string(index.ByUpdated):  {"u", "time", "last said first", "last said last"},
	string(index.ByCreated):  {"c", "begun", "begun last first", "begun first first"},
	string(index.ByTitle):    {"t", "title", "by title", "by title, from Z to A"},
	string(index.ByMessages): {"m", "messages", "most messages first", "fewest messages first"},
	string(index.ByTokens):   {"k", "tokens", "most tokens first", "fewest tokens first"},
	string(index.BySize):     {"s", "size", "largest first", "smallest first"},
}

func (o order) words() string {
	if o.reverse {
		return orderWords[o.by].last
	}
	return orderWords[o.by].first
}

// number is a number that a row of the list has.
type number struct {
	name  string
	width int
	of    func(info *home.SessionInfo) string
}

// numbers are those that a row has room for: the one by which the list is sorted always.
func (o order) numbers(width int) []number {
	messages := number{"messages", 5, func(info *home.SessionInfo) string { return strconv.Itoa(info.Messages) }}
	tokens := number{"tokens", 6, home.ShortTokens}
	all := []number{messages, tokens}
	switch by := index.Sort(o.by); {
	case by == index.BySize:
		all[0] = number{"size", 8, func(info *home.SessionInfo) string { return render.Bytes(info.Size) }}
	case by == index.ByTokens && width < tokensWidth:
		return all[1:]
	}
	if width >= costWidth {
		return append(all, number{"cost", 7, func(info *home.SessionInfo) string { return costOf(info.Cost) }})
	}
	if width >= tokensWidth {
		return all
	}
	return all[:1]
}

func (s *sessions) whyNotSort() string {
	if s.shelf.isSearch {
		return "a search has what fits best first"
	}
	return ""
}

// askSort asks for another order. The one that is there can be reversed.
func (s *sessions) askSort() tea.Cmd {
	var answers []answer
	for i, by := range home.Choices(reflect.TypeFor[home.ShelfRequest](), "sort") {
		words, next := orderWords[by], order{by: by}
		if now := s.order; now.by == by || now.by == "" && i == 0 {
			next.reverse = !now.reverse
			words.name = "reverse"
		}
		answers = append(answers, answer{words.key, words.name, func() tea.Cmd {
			s.order = next
			s.say("sorted: " + next.words())
			return s.load()
		}})
	}
	s.choose("sort by", answers...)
	return nil
}
