package provider

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coppice-dev/coppice/session"
)

// Family is what is known about the models of a family: how large they are, and what they take
// besides the conversation and tools. The zero value takes nothing, which is right for a model
// that is not known: a provider refuses every request that has something its model does not
// take. models.txt has the families that are known.
type Family struct {
	Name              string // the beginning of the names of its models
	Window, MaxOutput int    // in tokens; 0 if not known

	// Thinking is how a request asks for thinking: one of the constants; "" if that is not
	// known.
	Thinking    string
	Levels      []string // of efforts, in the provider's words, least first
	Least, Most int      // of a budget, in tokens; 0 is no limit
	Off         string   // what switches thinking off; "" if nothing does
	Unasked     bool     // it thinks even if a request does not say so
	Summary     string   // what asks for thoughts that people can read; "" if nothing does

	Temperature bool
	CacheMarks  int    // how many a request may have
	CacheKey    int    // how many characters one may have
	Encrypted   bool   // reasoning comes encrypted if asked for, to be sent back
	Signature   string // stands in place of the signature of a call that another model made
	ChatEffort  string // what Chat Completions wants from a request with tools

	Date, Source string // when the provider documented this, and where
}

// The ways to ask for thinking.
const (
	ThinkingBudget   = "budget"   // with a number of tokens
	ThinkingAdaptive = "adaptive" // Anthropic's: the model decides, within an effort
	ThinkingEffort   = "effort"   // OpenAI's
	ThinkingLevel    = "level"    // Gemini's
	ThinkingNone     = "none"     // there is none: the models do not think
)

//go:embed models.txt
var knownFamilies string

// families are the known ones.
var families = sync.OnceValue(func() []Family {
	all, err := parseFamilies(strings.Split(knownFamilies, "\n"), nil)
	if err != nil {
		panic("models.txt: " + err.Error()) // a test reads it
	}
	return all
})

// FamilyOf returns what is known about a model; ok is false if that is nothing. Families of the
// caller's own count before the known ones.
func FamilyOf(model string, own ...Family) (f Family, ok bool) {
	model = strings.ToLower(model)
	for _, list := range [][]Family{own, families()} {
		if f, ok = longest(list, model); ok {
			return f, true
		}
		if at := strings.LastIndexByte(model, '/'); at >= 0 { // as gateways call it
			if f, ok = longest(list, model[at+1:]); ok {
				return f, true
			}
		}
	}
	return Family{}, false
}

// longest returns the family with the longest name that fits a model.
func longest(list []Family, model string) (found Family, ok bool) {
	for i := range list {
		if f := &list[i]; f.has(model) && (!ok || len(f.Name) > len(found.Name)) {
			found, ok = *f, true
		}
	}
	return found, ok
}

// otherVersion matches what follows the name of a family in the name of a model of another one.
var otherVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([-.][0-9]{1,2}([^0-9]|$)|[a-z0-9])`) })

// has reports whether a model belongs to the family by its name.
func (f *Family) has(model string) bool {
	if strings.HasPrefix(model, "claude-") {
		model = strings.ReplaceAll(model, ".", "-") // gateways write versions so
	}
	rest, ok := strings.CutPrefix(model, f.Name)
	return ok && (strings.HasSuffix(f.Name, "-") || !otherVersion().MatchString(rest))
}

// ParseFamilies reads families of the caller's own, one a line, as models.txt has them. Empty
// lines and those that begin with # say nothing. A line that is wrong is session.ErrInvalid.
func ParseFamilies(lines []string) ([]Family, error) { return parseFamilies(lines, families()) }

// parseFamilies reads families, which may be like those of earlier lines, or like known ones.
func parseFamilies(lines []string, known []Family) ([]Family, error) {
	var all []Family
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		var f Family
		for _, word := range words[1:] {
			member, value, ok := strings.Cut(word, "=")
			if ok && member == "like" {
				if f, ok = familyLike(value, all, known); !ok {
					return nil, session.Invalidf("%s is like %s, which is not known", words[0], value)
				}
			} else if !ok || !f.set(member, value) {
				return nil, session.Invalidf("%q does not say what models of %s take; it must be like thinking=effort or temperature=yes", word, words[0])
			}
		}
		f.Name = strings.ToLower(words[0])
		all = append(all, f)
	}
	return all, nil
}

// familyLike returns the family that a line refers to.
func familyLike(name string, earlier, known []Family) (Family, bool) {
	for _, list := range [][]Family{earlier, known} {
		if at := slices.IndexFunc(list, func(f Family) bool { return f.Name == name }); at >= 0 {
			return list[at], true
		}
	}
	return longest(known, name)
}

// set sets a member by its name in a line.
func (f *Family) set(member, value string) bool {
	number := func(n *int) bool {
		var err error
		*n, err = strconv.Atoi(value)
		return err == nil && *n >= 0
	}
	yes := func(b *bool) bool {
		*b = value == "yes"
		return *b || value == "no"
	}
	word := func(s *string) bool {
		*s = value
		return value != ""
	}
	switch member {
	case "window":
		return number(&f.Window)
	case "output":
		return number(&f.MaxOutput)
	case "thinking":
		return word(&f.Thinking) && slices.Contains([]string{ThinkingBudget, ThinkingAdaptive, ThinkingEffort, ThinkingLevel, ThinkingNone}, value)
	case "levels":
		f.Levels = strings.Split(value, ",")
		return !slices.ContainsFunc(f.Levels, func(l string) bool { return rank(l) < 0 })
	case "least":
		return number(&f.Least)
	case "most":
		return number(&f.Most)
	case "off":
		return word(&f.Off)
	case "unasked":
		return yes(&f.Unasked)
	case "summary":
		return word(&f.Summary)
	case "temperature":
		return yes(&f.Temperature)
	case "marks":
		return number(&f.CacheMarks)
	case "key":
		return number(&f.CacheKey)
	case "encrypted":
		return yes(&f.Encrypted)
	case "signature":
		return word(&f.Signature)
	case "chat":
		return word(&f.ChatEffort)
	case "date":
		return word(&f.Date)
	case "source":
		return word(&f.Source)
	}
	return false
}

// Thinks reports whether the models are known to think if they are asked to.
func (f *Family) Thinks() bool { return f.Thinking != "" && f.Thinking != ThinkingNone }

// rank orders the levels of all providers; -1 is none of them.
func rank(level string) int {
	return slices.Index([]string{ThinkingMinimal, ThinkingLow, ThinkingMedium, ThinkingHigh, ThinkingXHigh, "max"}, level)
}

// Level returns what the family calls a thinking level, or the nearest that it has; "" if
// nothing is sent for it.
func (f *Family) Level(level string) string {
	switch {
	case level == "" || len(f.Levels) == 0:
		return ""
	case level == ThinkingOff && (f.Off != "" || !f.Unasked):
		return f.Off
	case level == ThinkingOff:
		return f.Levels[0]
	}
	best, wanted := f.Levels[0], rank(level)
	for _, l := range f.Levels[1:] {
		if distance(rank(l), wanted) < distance(rank(best), wanted) {
			best = l
		}
	}
	return best
}

func distance(a, b int) int { return max(a-b, b-a) }

// budgets are the tokens that a model may think with, by level.
var budgets = map[string]int{
	ThinkingMinimal: 512, ThinkingLow: 2048, ThinkingMedium: 8192, ThinkingHigh: 16384, ThinkingXHigh: 32768,
}

// Budget returns how many tokens a model of the family may think with at a level: 0 if it does
// not think, or if nothing is asked for.
func (f *Family) Budget(level string) int {
	tokens := budgets[level]
	switch {
	case level == "" || level == ThinkingOff && f.Off != "":
		return 0
	case tokens < f.Least && f.Unasked:
		return f.Least
	case tokens < f.Least:
		return 0
	case f.Most > 0:
		return min(tokens, f.Most)
	}
	return tokens
}

// Without returns the family without some of what it takes: names of members as in models.txt.
func (f Family) Without(members []string) Family {
	for _, member := range members {
		switch member {
		case "thinking":
			if f.Thinking, f.Levels, f.Off, f.ChatEffort = "", nil, "", ""; !f.Unasked {
				f.Thinking = ThinkingNone
			}
		case "summary":
			f.Summary = ""
		case "temperature":
			f.Temperature = false
		case "marks":
			f.CacheMarks = 0
		case "key":
			f.CacheKey = 0
		case "encrypted":
			f.Encrypted = false
		}
	}
	return f
}
