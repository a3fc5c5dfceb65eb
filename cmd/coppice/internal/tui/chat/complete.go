package chat

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-dev/coppice/agent/tools"
	"github.com/coppice-dev/coppice/cmd/coppice/internal/tui/line"
	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/render"
	"github.com/coppice-dev/coppice/render/terminal"
)

// maxOffers is how many ways to complete a word are listed.
const maxOffers = 40

// complete completes the word before the cursor: the name of a command, an argument of one, or
// the path of a file after an @.
func (u *ui) complete(ctx context.Context) {
	before := u.editor.Before()
	lead, word, offers := u.offers(ctx, before)
	var found []string
	for _, o := range offers {
		if strings.HasPrefix(strings.ToLower(o), strings.ToLower(word)) || strings.Contains(o, "/"+word) {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 0:
		return
	case 1:
		u.editor.Replace(len(word)+len(lead), completed(lead, found[0]))
		return
	}
	common := found[0]
	for _, f := range found[1:] {
		common = common[:render.SharedPrefix(common, f)]
	}
	if len(common) > len(word) {
		u.editor.Replace(len(word)+len(lead), lead+common)
		return
	}
	u.list(strings.Trim(lead, `@"`), found, strings.LastIndexByte(common, '/')+1)
}

// completed returns a word that is whole. A space follows it, unless it is a directory.
func completed(lead, word string) string {
	switch {
	case strings.HasSuffix(word, "/"):
		return lead + word
	case lead == `@"`, lead == "@" && strings.Contains(word, " "):
		return `@"` + word + `" `
	}
	return lead + word + " "
}

// list prints what a word may become, without the first bytes, which all have.
func (u *ui) list(lead string, found []string, shared int) {
	more := ""
	if len(found) > maxOffers {
		more = "  … " + strconv.Itoa(len(found)-maxOffers) + " more"
		found = found[:maxOffers]
	}
	for i := range found {
		found[i] = lead + render.OneLine(found[i][shared:], 0)
	}
	for _, row := range terminal.Wrap(strings.Join(found, "  ")+more, u.style().Width-2) {
		u.note("  " + row)
	}
}

// offers returns the word before the cursor, what is before it, and what it may become.
func (u *ui) offers(ctx context.Context, before string) (lead, word string, offers []string) {
	word = before[strings.LastIndexAny(before, " \n\t")+1:]
	name, isCommand := commandIn(before)
	_, _, isShell := shellIn(before)
	switch at := strings.LastIndex(before, `@"`); {
	case isCommand && !strings.Contains(before, " "):
		for _, c := range commands() {
			offers = append(offers, c.name)
		}
		return "/", name, offers
	case isCommand:
		if found := commandsNamed(name); len(found) == 1 && u.arguments()[found[0].name] != nil {
			offers = u.arguments()[found[0].name](ctx, word)
		}
		return "", word, offers
	case at >= 0 && !strings.ContainsAny(before[at+2:], "\"\n"):
		return `@"`, before[at+2:], u.chat.Files(ctx, before[at+2:])
	case strings.HasPrefix(word, "@"):
		return "@", word[1:], u.chat.Files(ctx, word[1:])
	case isShell:
		return "", word, u.chat.Files(ctx, word)
	}
	return "", "", nil
}

// arguments are what the arguments of commands may be.
func (u *ui) arguments() map[string]func(ctx context.Context, word string) []string {
	words := func(list ...string) func(context.Context, string) []string {
		return func(context.Context, string) []string { return list }
	}
	return map[string]func(ctx context.Context, word string) []string{
		"model":    u.modelNames,
		"thinking": words(provider.ThinkingLevels...),
		"tools":    words(append(tools.Names(), home.AllTools, home.NoTools)...),
		"load":     u.sessionNames,
		"branch":   u.entryOffers,
		"fork":     u.entryOffers,
		"label":    u.entryOffers,
		"context":  u.paths,
		"image":    u.paths,
		"export":   u.paths,
		"approve":  words(tools.Names()...),
	}
}

func (u *ui) modelNames(context.Context, string) (names []string) {
	if found, err := u.o.Home.Settings().Models(); err == nil {
		for i := range found.Models {
			names = append(names, found.Models[i].Name())
		}
	}
	return names
}

// paths returns paths as commands take them.
func (u *ui) paths(ctx context.Context, word string) []string {
	minus := ""
	if strings.HasPrefix(word, "-") { // of a context file that should go
		minus, word = "-", word[1:]
	}
	found := u.chat.Files(ctx, word)
	for i := range found {
		found[i] = minus + found[i]
	}
	return found
}

// maxNames is how many sessions or entries are offered.
const maxNames = 50

func (u *ui) sessionNames(ctx context.Context, _ string) []string {
	list, err := u.o.Home.Sessions.List(ctx, home.ListRequest{Limit: maxNames})
	if err != nil {
		return nil
	}
	var ids, names []string
	for i := range list.Sessions {
		ids = append(ids, list.Sessions[i].Name)
	}
	short, err := u.o.Home.Sessions.Short(ctx, home.SessionNamesRequest{Sessions: ids})
	if err != nil {
		return nil
	}
	for _, id := range ids {
		names = append(names, render.Names(short.Names).Shown(id))
	}
	return names
}

// entryOffers returns the labels of the conversation, and the entries of its present path.
func (u *ui) entryOffers(ctx context.Context, _ string) (names []string) {
	id, err := u.session()
	if err != nil {
		return nil
	}
	short, err := u.entryNames(ctx, id)
	if err != nil {
		return nil
	}
	now, err := u.o.Home.Conversation(ctx, home.OpenRequest{Session: id}) // the chat's may not have the latest labels
	if err != nil {
		return nil
	}
	defer now.Close() // it was only read
	labels, _ := now.Labels()
	for _, label := range labels {
		names = append(names, label)
	}
	slices.Sort(names)
	shape, err := u.chat.Conversation().Shape()
	if err != nil {
		return names
	}
	for n, most := shape.Leaf(), maxNames; n >= 0 && most > 0; n, most = shape.Parent(n), most-1 {
		names = append(names, short.Shown(shape.ID(n)))
	}
	return names
}

// pastes looks at what is pasted. The path of an image, as terminals paste it when a file is
// dragged there, becomes a mention of the image.
func (u *ui) pastes(k line.Key) line.Key {
	if k.Kind != line.Paste {
		return k
	}
	path := strings.TrimSpace(k.Text)
	if strings.Contains(path, "\n") {
		u.pasted = append(u.pasted, k.Text)
		return k
	}
	path = strings.TrimPrefix(path, "file://")
	if n := len(path); n > 1 && path[0] == path[n-1] && (path[0] == '\'' || path[0] == '"') {
		path = path[1 : n-1]
	}
	path = strings.ReplaceAll(path, `\ `, " ")
	if !filepath.IsAbs(path) || len(u.chat.Mentions(`@"`+path+`"`).Images) == 0 {
		return k
	}
	if strings.Contains(path, " ") {
		path = `"` + path + `"`
	}
	k.Text = "@" + path + " "
	return k
}

// mentions finds the files that a message names, and says which they are.
func (u *ui) mentions(text string) home.Mentions {
	for _, lines := range u.pasted {
		text = strings.ReplaceAll(text, lines, " ")
	}
	m := u.chat.Mentions(text)
	for _, path := range slices.Concat(m.Files, m.Images) {
		if rel, err := filepath.Rel(u.chat.Dir(), path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
		u.note("  + " + render.OneLine(path, 0))
	}
	for _, name := range m.Missing {
		u.note("  there is no file " + render.OneLine(name, 0) + " in " + u.chat.Dir() + "; it is sent as text")
	}
	for _, name := range m.Directories {
		u.note("  " + render.OneLine(name, 0) + " is a directory, so only its name is sent; name the files, or have the model look with /tools")
	}
	return m
}
