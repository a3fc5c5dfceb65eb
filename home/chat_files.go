package home

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/session/files"
)

// AddFiles adds context files. They are read once now, to catch
// mistakes, and loaded with the next message.
func (c *Chat) AddFiles(names ...string) error {
	for _, name := range names {
		if _, err := c.readFile(name); err != nil {
			return err
		}
		if !slices.Contains(c.r.Context, name) {
			c.r.Context = append(c.r.Context, name)
		}
	}
	return nil
}

// RemoveFiles removes context files: they are no longer loaded, and
// the model is no longer sent their content.
func (c *Chat) RemoveFiles(names ...string) error {
	for _, name := range names {
		path, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		before := len(c.r.Context)
		c.r.Context = slices.DeleteFunc(slices.Clone(c.r.Context), func(had string) bool {
			whole, err := filepath.Abs(had)
			return err == nil && whole == path
		})
		removed := len(c.r.Context) < before
		if c.c != nil {
			err = retry(c.c.Session, func() error {
				was, err := files.Remove(c.c.Session, path)
				removed = removed || was
				return err
			})
		}
		switch {
		case err != nil:
			return err
		case !removed:
			return session.Invalidf("%s is not among the files that the model is sent", name)
		}
	}
	return nil
}

// readFiles reads the context files, and those that a message mentions. A context file that
// the model was shown may be gone by now: the model keeps what it was shown.
func (c *Chat) readFiles(ctx context.Context, mentioned []string) (all []*session.MessageEntry, _ error) {
	for _, name := range c.r.Context {
		file, err := c.readFile(name)
		had, wasShown := c.shown[name]
		switch {
		case err == nil:
			all = append(all, file)
			if c.shown == nil {
				c.shown = make(map[string]bool)
			}
			c.shown[name] = true
		case !wasShown:
			return nil, err
		case had:
			c.shown[name] = false
			c.home.notify(ctx, Notice{Kind: FileGone, Path: name, Error: described(err)})
		}
	}
	for _, name := range mentioned {
		file, err := c.readFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, file)
	}
	return all, nil
}

// readFile reads a file that the model should know. The model is shown the path that its
// tools accept: relative to their directory, or the whole path for a file elsewhere.
func (c *Chat) readFile(name string) (*session.MessageEntry, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	shown, err := filepath.Rel(c.dir, path)
	if err != nil || !filepath.IsLocal(shown) {
		shown = path
	}
	return files.Read(path, filepath.ToSlash(shown))
}

// Prompt returns what a person says as the content of a message: a text and images, which
// are read from files.
func (c *Chat) Prompt(text string, images ...string) ([]session.Content, error) {
	var content []session.Content
	for _, name := range images {
		image, err := media.Load(name)
		if err != nil {
			return nil, err
		}
		content = append(content, image)
	}
	return asPrompt(text, content)
}

// asPrompt returns what a person says: content, and a text after it.
func asPrompt(text string, content []session.Content) ([]session.Content, error) {
	if err := checkUTF8("text", text); err != nil {
		return nil, err
	}
	if len(content) > 0 {
		if err := checkForm(&session.MessageEntry{Role: session.RoleUser, Content: content}, "content"); err != nil {
			return nil, err
		}
	}
	content = slices.Clip(content)
	if orNone(text) != "" {
		content = append(content, session.Text(text))
	}
	return content, checkSaid("text", content)
}
