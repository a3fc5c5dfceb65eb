package summary

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// FieldFiles is the member of a compaction or a branch summary that has its Files.
const FieldFiles = "files"

// maxFiles is how many files of each kind are passed on. The most recently used are kept.
const maxFiles = 1000

// Files are the files that tools have read and changed, each once, in the order in which
// they were last used. A file that was changed is not among those that were read.
type Files struct {
	Read    []string `json:"read,omitempty"`
	Changed []string `json:"changed,omitempty"`
}

// FilesOf returns the files that a compaction or a branch summary passes on.
func FilesOf(e *session.Entry) Files {
	var extra session.Fields
	switch {
	case e.Compaction != nil:
		extra = e.Compaction.Extra
	case e.BranchSummary != nil:
		extra = e.BranchSummary.Extra
	}
	var f Files
	for i := range extra {
		if extra[i].Name == FieldFiles && json.Unmarshal(extra[i].Value, &f) != nil {
			return Files{} // another program's member of this name
		}
	}
	return f
}

func (f *Files) isEmpty() bool { return len(f.Read)+len(f.Changed) == 0 }

func (f *Files) extra() session.Fields {
	if f.isEmpty() {
		return nil
	}
	value, err := json.Marshal(f)
	if err != nil {
		return nil // cannot happen: these are texts
	}
	return session.Fields{{Name: FieldFiles, Value: value}}
}

// add adds files that were used later.
func (f *Files) add(read, changed []string) {
	for _, file := range changed {
		f.Changed = renewed(f.Changed, file)
		f.Read = slices.DeleteFunc(f.Read, func(other string) bool { return other == file })
	}
	for _, file := range read {
		if slices.Contains(f.Changed, file) {
			f.Changed = renewed(f.Changed, file)
		} else {
			f.Read = renewed(f.Read, file)
		}
	}
}

// renewed moves a file to the end of a list.
func renewed(list []string, file string) []string {
	if file = strings.TrimSpace(file); file == "" {
		return list
	}
	if at := slices.Index(list, file); at >= 0 {
		list = slices.Delete(list, at, at+1)
	} else if len(list) >= maxFiles {
		list = list[1:]
	}
	return append(list, file)
}

// filesHeading begins the part of a summary that names the files. The model does not write
// it.
const filesHeading = "## Files"

// text returns the files for the end of a summary, in at most a number of tokens. If there
// are too many, it has the most recently used, and says how many are missing.
func (f *Files) text(most int, count func(string) int) string {
	for shown := maxFiles; ; shown /= 2 {
		var b strings.Builder
		b.WriteString("\n\n" + filesHeading)
		writeFiles(&b, "Changed", f.Changed, shown)
		writeFiles(&b, "Read", f.Read, shown)
		if text := b.String(); shown == 0 || count(text) <= most {
			return text
		}
	}
}

func writeFiles(b *strings.Builder, what string, files []string, shown int) {
	if len(files) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:", what)
	last := files[max(0, len(files)-shown):]
	for _, file := range slices.Sorted(slices.Values(last)) {
		b.WriteString("\n- " + lineEnds.Replace(file))
	}
	if left := len(files) - len(last); left > 0 {
		fmt.Fprintf(b, "\n- and %d more, used earlier", left)
	}
}

// lineEnds keeps a file's name on one line.
var lineEnds = strings.NewReplacer("\n", "\uFFFD", "\r", "\uFFFD")

// withoutFiles returns a summary without the part that names the files.
func withoutFiles(text string) string {
	at := strings.LastIndex("\n"+text, "\n"+filesHeading+"\n")
	if at < 0 {
		return text
	}
	return strings.TrimSpace(text[:at])
}
