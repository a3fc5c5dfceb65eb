package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/coppice-dev/coppice/agent"
	"github.com/coppice-dev/coppice/provider/media"
	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/store/vfs"
)

const (
	maxLines = 2000     // that a read returns by default
	maxLine  = 2 << 10  // bytes of a line that are shown
	maxNames = 1000     // of a directory
	sniffed  = 8 << 10  // bytes that decide what kind of file it is
	maxImage = 32 << 20 // bytes of a picture, which is made smaller if a model cannot take it
)

func (k *toolset) read() (agent.Tool, error) {
	return pathTool(k, Read, "reads", fmt.Sprintf("Read a text file or an image, or list a directory. "+
		"Returns up to %d lines or %s; offset and limit select lines.", maxLines, size(int64(k.MaxOutput))), k.readPath)
}

func (k *toolset) readPath(ctx context.Context, call agent.Call, in readInput, p path) (agent.Result, error) {
	from, err := number("offset", in.Offset, 1, math.MaxInt32)
	if err != nil {
		return agent.Result{}, err
	}
	lines, err := number("limit", in.Limit, maxLines, math.MaxInt32)
	if err != nil {
		return agent.Result{}, err
	}
	at, err := k.openToRead(call, p)
	if err != nil {
		return agent.Result{}, err
	}
	defer at.close()
	if info, err := at.root.Stat(at.name); err == nil && info.IsDir() {
		text, err := list(at, p)
		return agent.Result{Text: text}, err
	}
	is, err := at.digest() // before reading, so that the digest is not newer than what was read
	if err != nil {
		return agent.Result{}, err
	}
	f, err := at.openFile()
	if err != nil {
		return agent.Result{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return agent.Result{}, err
	}
	head := make([]byte, sniffed)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return agent.Result{}, err
	}
	head = head[:n]
	isImage, isWide := media.ImageType(head) != "", bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff"))
	if isImage || isWide || bytes.IndexByte(head, 0) >= 0 { // the model cannot see more of it
		k.memory.recordSeen(call, at, is, 1, 1, true)
	}
	switch {
	case isImage:
		return image(p, f, head)
	case isWide:
		return agent.Result{}, fmt.Errorf("%s is in UTF-16: convert it to UTF-8 to read it", p)
	case bytes.IndexByte(head, 0) >= 0:
		return agent.Result{}, fmt.Errorf("%s is a binary file (%s, %s)", p, http.DetectContentType(head), size(info.Size()))
	}
	page := &page{ctx: ctx, from: from, lines: lines, max: k.MaxOutput}
	if err := page.fill(bufio.NewReader(io.MultiReader(bytes.NewReader(head), f))); err != nil {
		return agent.Result{}, err
	}
	text, err := page.text(p)
	if err == nil {
		k.memory.recordSeen(call, at, is, from, page.line, !page.more)
	}
	return agent.Result{Text: text}, err
}

// image returns a picture that the model can look at.
func image(p path, f *os.File, head []byte) (agent.Result, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxImage))
	if err != nil {
		return agent.Result{}, err
	}
	if len(data) == maxImage {
		return agent.Result{}, fmt.Errorf("the image %s has more than %s: make it smaller first", p, size(maxImage))
	}
	data = append(head, data...)
	shown, err := media.Image(data)
	if err != nil {
		return agent.Result{}, fmt.Errorf("the image %s: %w", p, err)
	}
	text := fmt.Sprintf("%s (%s, %s)", p, shown.Image.Source.MediaType, size(int64(len(data))))
	return agent.Result{Text: text, Parts: []session.Content{session.Text(text), shown}}, nil
}

// list returns the names in a directory, those of directories with a slash.
func list(at *openedPath, p path) (string, error) {
	entries, err := vfs.In(at.root).ReadDir(at.name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, e := range entries {
		if i == maxNames {
			fmt.Fprintf(&b, "[%d more names]\n", len(entries)-i)
			break
		}
		name := plainName(e.Name())
		if e.IsDir() {
			name += "/"
		}
		b.WriteString(name + "\n")
	}
	if len(entries) == 0 {
		return fmt.Sprintf("[the directory %s is empty]", p), nil
	}
	return b.String(), nil
}

// plainName returns a name as a line of text.
func plainName(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if strings.ContainsAny(name, "\n\r") {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// page is the part of a file that a read returns. It skips to the first requested line and
// stops after the last, and keeps no more of a line than it shows.
type page struct {
	ctx         context.Context
	from, lines int
	max         int

	out     []byte
	line    int  // number of the line before the next one
	shown   int  // lines in out
	more    bool // the file continues after the page
	crlf    bool
	foreign bool // there are bytes that are not UTF-8
}

func (g *page) fill(r *bufio.Reader) error {
	if mark, _ := r.Peek(3); bytes.Equal(mark, []byte("\uFEFF")) {
		_, _ = r.Discard(3)
	}
	for {
		wanted := g.line+1 >= g.from
		if wanted && (g.shown == g.lines || len(g.out) >= g.max) {
			_, err := r.Peek(1)
			g.more = err == nil
			return nil
		}
		line, left, err := g.readLine(r, wanted)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		g.line++
		if wanted && !g.add(line, left) {
			g.line--
			g.more = true
			return nil
		}
	}
}

// add shows a line; left is how many of its bytes are missing. It reports false if
// there is no room; the first line always fits.
func (g *page) add(line []byte, left int) bool {
	end := "\n"
	if !bytes.HasSuffix(line, []byte("\n")) && left == 0 {
		end = ""
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	if cut, ok := bytes.CutSuffix(line, []byte("\r")); ok && end != "" {
		line, g.crlf = cut, true
	}
	if left > 0 {
		whole := wholeRunes(line)
		left += len(line) - len(whole)
		line = whole
		line = fmt.Appendf(line, " [%d more bytes in this line]", left)
	}
	if !utf8.Valid(line) {
		line, g.foreign = bytes.ToValidUTF8(line, []byte("\uFFFD")), true
	}
	if g.shown > 0 && len(g.out)+len(line)+1 > g.max {
		return false
	}
	g.out = append(append(g.out, line...), end...)
	g.shown++
	return true
}

// wholeRunes returns text without a character at its end that was cut.
func wholeRunes(text []byte) []byte {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return text[:i]
			}
			break
		}
	}
	return text
}

// readLine reads a line with its end. If the line is not wanted, nothing is kept; left
// is how much of a long line was dropped.
func (g *page) readLine(r *bufio.Reader, wanted bool) (line []byte, left int, err error) {
	read := false
	for {
		if err := ended(g.ctx); err != nil {
			return nil, 0, err
		}
		piece, err := r.ReadSlice('\n')
		read = read || len(piece) > 0
		if wanted {
			n := min(len(piece), maxLine-len(line))
			line, left = append(line, piece[:n]...), left+len(piece)-n
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && read:
			return line, left, nil
		default:
			return line, left, err
		}
	}
}

// text returns the page with notes for the model.
func (g *page) text(p path) (string, error) {
	switch {
	case g.shown == 0 && g.line == 0 && g.from == 1:
		return fmt.Sprintf("[the file %s is empty]", p), nil
	case g.shown == 0:
		return "", fmt.Errorf("%s has only %s; there is no line %d", p, count(g.line, "line"), g.from)
	}
	var notes []string
	if g.more {
		notes = append(notes, fmt.Sprintf("lines %d to %d; the file continues: read it with offset %d", g.from, g.line, g.line+1))
	}
	if g.crlf {
		notes = append(notes, "lines end with CRLF")
	}
	if g.foreign {
		notes = append(notes, "bytes that are not UTF-8 are shown as \uFFFD")
	}
	if len(notes) == 0 {
		return string(g.out), nil
	}
	return strings.TrimSuffix(string(g.out), "\n") + "\n[" + strings.Join(notes, "; ") + "]", nil
}
