package home

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/coppice-dev/coppice/session/files"
	"github.com/coppice-dev/coppice/store/vfs"
)

// baseInstructions are the instructions of a model with tools if no others were given.
const baseInstructions = `You help a person with the work in the directory below, on their own machine.

Use the tools to look before you answer or change anything: read a file before you edit it, and follow the style of what is there. Make the smallest change that does what was asked, and check that it works, for example with the project's tests. Some calls ask the person first; if one is refused, do not try to get the same effect in another way: ask, or do without.

Be brief. Say what you did and what you found, name files by their paths, and say so when you are not sure or when something failed.`

// projectNotes are the files with a project's notes for agents.
var projectNotes = []string{"AGENTS.md", "CLAUDE.md"}

// maxProjectNote is how long such a file may be, in bytes: it is sent with every request.
const maxProjectNote = 64 << 10

// Instructions returns the instructions for the model: those of the request, or the file that
// the settings name. For a model with tools it adds where it works, and the project's notes
// for agents if they are trusted. "" means that the conversation keeps the instructions that it has.
func (c *Chat) Instructions() (string, error) {
	text, err := c.ownInstructions()
	if err != nil || len(c.tools) == 0 {
		return text, err
	}
	if text == "" {
		text = baseInstructions
	}
	var b strings.Builder
	b.WriteString(strings.TrimSpace(text))
	fmt.Fprintf(&b, "\n\nWorking directory: %s\nPlatform: %s\nDate: %s\n", c.dir, runtime.GOOS+"/"+runtime.GOARCH, time.Now().Format(time.DateOnly))
	root, branch := repositoryOf(c.dir)
	switch {
	case root == "":
		b.WriteString("The directory is not in a Git repository.\n")
	case branch != "":
		fmt.Fprintf(&b, "Git repository: %s, on the branch %s\n", root, branch)
	default:
		fmt.Fprintf(&b, "Git repository: %s\n", root)
	}
	return b.String() + c.projectNotes(), nil
}

// ownInstructions returns the instructions that a person gave.
func (c *Chat) ownInstructions() (string, error) {
	if c.r.System != "" {
		return c.r.System, nil
	}
	if c.project != nil && c.project.Trusted && c.project.system != "" {
		return c.project.system, nil
	}
	return readSystemSetting(c.home.settings.Get(SettingSystem))
}

// readSystemSetting reads the file that a setting names, "" if it names none. Its path is relative
// to the file with the setting.
func readSystemSetting(v Setting) (string, error) {
	if v.Value == "" {
		return "", nil
	}
	path := v.Value
	if !filepath.IsAbs(path) && filepath.IsAbs(v.Origin) {
		path = filepath.Join(filepath.Dir(v.Origin), path)
	}
	text, err := ReadInstructions(path)
	if err == nil && !files.IsText([]byte(text)) {
		err = fmt.Errorf("%s is not text", path)
	}
	return text, err
}

// projectNotes returns the notes for agents from the root of the project down to the chat's
// directory, if the person trusts it.
func (c *Chat) projectNotes() string {
	if c.project == nil || !c.project.Trusted {
		return ""
	}
	var b strings.Builder
	for _, n := range c.project.notes {
		if n.err != nil {
			fmt.Fprintf(&b, "\n%s could not be read: %v\n", n.path, n.err)
			continue
		}
		fmt.Fprintf(&b, "\nFrom %s:\n\n%s\n", n.path, strings.TrimSpace(string(n.text)))
	}
	return b.String()
}

// readInside reads a file of a project. A link must not lead out of the project: otherwise
// the project's author could have any file of the person sent to a provider.
func readInside(root, path string) ([]byte, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	if inside, err := filepath.Rel(root, target); err != nil || !filepath.IsLocal(inside) {
		return nil, fmt.Errorf("%s is a link that leads out of the project", path)
	}
	return vfs.ReadFile(target, maxProjectNote)
}

// upTo returns the directories from root down to dir; dir alone if it is in no project:
// other people may have written what is above it.
func upTo(dir, root string) []string {
	if root == "" {
		return []string{dir}
	}
	var all []string
	for {
		all = append([]string{dir}, all...)
		if dir == root || dir == filepath.Dir(dir) {
			return all
		}
		dir = filepath.Dir(dir)
	}
}

// repositoryOf returns the root of the Git repository that a directory is in, and the branch
// that is checked out. It does not run Git, which runs programs that a repository names.
func repositoryOf(dir string) (root, branch string) {
	for root = dir; ; root = filepath.Dir(root) {
		info, err := os.Lstat(filepath.Join(root, ".git"))
		if err == nil {
			return root, branchIn(root, info)
		}
		if root == filepath.Dir(root) {
			return "", ""
		}
	}
}

func branchIn(root string, git fs.FileInfo) string {
	dir := filepath.Join(root, ".git")
	if git.Mode().IsRegular() { // a work tree: the file says where the rest is
		text, _ := vfs.ReadFile(dir, vfs.SmallFile) // without it, there is no branch to name
		to, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		if !ok {
			return ""
		}
		if dir = to; !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
	}
	head, _ := vfs.ReadFile(filepath.Join(dir, "HEAD"), vfs.SmallFile)
	branch, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: refs/heads/")
	if !ok {
		return ""
	}
	return branch
}
