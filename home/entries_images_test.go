package home_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-dev/coppice/home"
	"github.com/coppice-dev/coppice/session"
)

// picture returns a PNG of a size.
func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pictureBlock(data []byte) session.Content {
	return session.Image("image/png", base64.StdEncoding.EncodeToString(data))
}

// album has an image that the user sent, one on another branch that a tool answered
// with, and one that is only linked to.
func album(t *testing.T) (h *house, drawing, shot []byte) {
	t.Helper()
	h = newHouseInFiles(t)
	drawing, shot = picture(t, 30, 20), picture(t, 8, 4)
	s := h.say(session.Header{ID: "album"}, "hello")
	add := func(m session.MessageEntry) string {
		id, err := s.AppendEntry(session.Entry{Type: session.TypeMessage, Message: &m})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	said := func(role string, blocks ...session.Content) string {
		return add(session.MessageEntry{Role: role, Content: blocks})
	}
	first := said("user", session.Text("Look at this drawing"), pictureBlock(drawing))
	said("assistant", session.Text("A heron by a pond."))
	if err := s.Branch(first); err != nil {
		t.Fatal(err)
	}
	call := session.Content{Type: "tool_use", ToolUse: &session.ToolUseContent{ID: "c", Name: "screenshot", Input: map[string]any{"page": "login"}}}
	said("assistant", call)
	said("tool", session.Content{Type: "tool_result", ToolResult: &session.ToolResultContent{ToolUseID: "c", Parts: []session.Content{pictureBlock(shot)}}})
	for range 8 {
		said("assistant", session.Text("and so on"))
	}
	said("user", session.Content{Type: "image", Image: &session.ImageContent{Source: &session.Source{Type: "url", MediaType: "image/png", Data: "https://example.com/x.png"}}})
	return h, drawing, shot
}

func numbers(images []home.Image) (all []int) {
	for i := range images {
		all = append(all, images[i].Number)
	}
	return all
}

func TestImagesListsThoseOfAllBranches(t *testing.T) {
	t.Parallel()
	h, drawing, _ := album(t)
	got := must[*home.ImagesResult](t)(h.Entries.Images(t.Context(), home.ImagesRequest{Session: "album"})).Images
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	first := got[0]
	if first.Width != 30 || first.Height != 20 || first.Bytes != len(drawing) || first.MediaType != "image/png" || first.Role != "user" {
		t.Errorf("%+v", first)
	}
	if got[1].Width != 8 || got[2].URL == "" || got[2].Bytes != 0 {
		t.Errorf("%+v", got[1:])
	}
}

// An image is found by what was said about it: with it, in the call that made it, in
// the answer that describes it.
func TestImagesAreFoundByWhatWasSaidAboutThem(t *testing.T) {
	t.Parallel()
	h, _, _ := album(t)
	for query, want := range map[string][]int{
		"drawing":     {1, 2}, // the screenshot was taken two entries later
		"heron":       {1},
		"login":       {1, 2},
		"nothing":     nil,
		"heron login": nil, // no text has both
	} {
		got := must[*home.ImagesResult](t)(h.Entries.Images(t.Context(), home.ImagesRequest{Search: query})).Images
		if !slices.Equal(numbers(got), want) {
			t.Errorf("%s: %v, want %v", query, numbers(got), want)
		}
	}
	if _, err := h.Entries.Images(t.Context(), home.ImagesRequest{}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("of nothing: %v", err)
	}
}

// Whatever names an image gives its bytes back, above all the reference that a
// context has instead of an image that it left out.
func TestImageComesBackByItsReference(t *testing.T) {
	t.Parallel()
	h, _, shot := album(t)
	ctx := t.Context()
	all := must[*home.ImagesResult](t)(h.Entries.Images(ctx, home.ImagesRequest{Session: "album"})).Images
	for _, name := range []string{"2", all[1].Reference, all[1].Entry} {
		got := must[*home.ImageResult](t)(h.Entries.Image(ctx, home.ImageRequest{Session: "album", Image: name}))
		if !bytes.Equal(got.Data, shot) || got.Number != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, want := range map[string]error{"4": session.ErrNotExist, "0": session.ErrNotExist, "3": session.ErrInvalid, "nope": session.ErrNotExist, "image:nope#0": session.ErrNotExist} {
		if _, err := h.Entries.Image(ctx, home.ImageRequest{Session: "album", Image: name}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func TestImageIsWrittenToAFile(t *testing.T) {
	t.Parallel()
	h, drawing, _ := album(t)
	dir := t.TempDir()
	r := home.ImageRequest{Session: "album", Image: "1", Path: dir}
	got := must[*home.ImageResult](t)(h.Entries.Image(t.Context(), r))
	if data, err := os.ReadFile(got.Path); err != nil || !bytes.Equal(data, drawing) || filepath.Ext(got.Path) != ".png" || got.Data != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := h.Entries.Image(t.Context(), r); !errors.Is(err, session.ErrExist) {
		t.Errorf("again: %v", err)
	}
	r.Path = h.Dir()
	if _, err := h.Entries.Image(t.Context(), r); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("among the sessions: %v", err)
	}
}

func TestAllImagesAreWrittenAtOnce(t *testing.T) {
	t.Parallel()
	h, drawing, shot := album(t)
	dir := t.TempDir() + "/all/"
	var paths []string
	r := home.WriteImagesRequest{Session: "album", Path: dir}
	send := func(image home.ImageResult) error {
		paths = append(paths, image.Path)
		return nil
	}
	got := must[*home.WriteImagesResult](t)(h.Entries.WriteImages(t.Context(), r, send))
	if got.Written != 2 || got.Linked != 1 || len(paths) != 3 || paths[2] != "" {
		t.Fatalf("%+v, %v", got, paths)
	}
	for i, want := range [][]byte{drawing, shot} {
		if data, err := os.ReadFile(paths[i]); err != nil || !bytes.Equal(data, want) {
			t.Errorf("image %d: %v", i+1, err)
		}
	}
	if _, err := h.Entries.WriteImages(t.Context(), r, send); !errors.Is(err, session.ErrExist) {
		t.Errorf("again: %v", err)
	}
	r.Numbers, r.Force = []int{2}, true
	if got := must[*home.WriteImagesResult](t)(h.Entries.WriteImages(t.Context(), r, send)); got.Written != 1 || got.Linked != 0 {
		t.Errorf("one of them: %+v", got)
	}
}
