package window

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/session"
	"github.com/coppice-dev/coppice/window/estimate"
	"github.com/coppice-dev/coppice/window/imagesize"
)

// unknownImage is the price of an image whose size cannot be read: that of the largest.
const unknownImage = 1600

// imageTokens is what an image costs with a provider, by its size in pixels.
func imageTokens(provider string, s *session.Source) int {
	size, ok := pixelsOf(s)
	if !ok {
		return unknownImage
	}
	switch estimate.For(provider, "").Family {
	case estimate.OpenAI:
		return tiledTokens(size)
	case estimate.Gemini:
		return geminiTokens(size)
	case estimate.Claude:
		return areaTokens(size)
	}
	return max(areaTokens(size), tiledTokens(size), geminiTokens(size))
}

func pixelsOf(s *session.Source) (imagesize.Size, bool) {
	if s == nil || s.Type != "base64" {
		return imagesize.Size{}, false
	}
	size, err := imagesize.Read(base64.NewDecoder(base64.StdEncoding, strings.NewReader(s.Data)))
	return size, err == nil
}

// areaTokens is Anthropic's way: a token for 750 pixels, after the image was
// made to fit 1568 by 1568.
func areaTokens(s imagesize.Size) int {
	w, h := fit(s, 1568)
	return min(unknownImage, int(math.Ceil(w*h/750)))
}

// tiledTokens is OpenAI's way: the image is made to fit 2048 by 2048, its short
// side then 768; each tile of 512 by 512 costs 170, the whole 85.
func tiledTokens(s imagesize.Size) int {
	w, h := fit(s, 2048)
	if short := min(w, h); short > 768 {
		w, h = w*768/short, h*768/short
	}
	return 85 + 170*int(math.Ceil(w/512))*int(math.Ceil(h/512))
}

// geminiTokens is Google's way: 258 for a small image or for each tile of 768
// by 768.
func geminiTokens(s imagesize.Size) int {
	if s.Width <= 384 && s.Height <= 384 {
		return 258
	}
	w, h := fit(s, 3072)
	return 258 * int(math.Ceil(w/768)) * int(math.Ceil(h/768))
}

// fit scales a size down until neither side is longer than most.
func fit(s imagesize.Size, most float64) (w, h float64) {
	w, h = float64(s.Width), float64(s.Height)
	scale := min(1, most/max(w, h))
	return w * scale, h * scale
}

// imagesIn counts the images of blocks, including those in tool results.
func imagesIn(blocks []session.Content) int {
	n := 0
	for i := range blocks {
		switch {
		case blocks[i].Image != nil:
			n++
		case blocks[i].ToolResult != nil && len(blocks[i].ToolResult.Parts) > 0:
			n += imagesIn(blocks[i].ToolResult.Parts)
		}
	}
	return n
}

// replaceImages returns the blocks with images replaced, in order, until replace wants
// no more, and whether any was replaced. The given blocks do not change.
func replaceImages(blocks []session.Content, replace func(image *session.Content) (session.Content, bool)) (_ []session.Content, changed bool) {
	blocks = slices.Clone(blocks)
	for i := range blocks {
		b := &blocks[i]
		switch {
		case b.Image != nil:
			other, ok := replace(b)
			if !ok {
				return blocks, changed
			}
			*b, changed = other, true
		case b.ToolResult != nil && imagesIn(b.ToolResult.Parts) > 0:
			if parts, ok := replaceImages(b.ToolResult.Parts, replace); ok {
				result := *b.ToolResult
				result.Parts, result.Content = parts, session.TextOf(parts)
				b.ToolResult, changed = &result, true
			}
		}
	}
	return blocks, changed
}

// placeholder returns the text that replaces an image.
func placeholder(s *session.Source, reference string) string {
	what := "image"
	if s != nil && s.MediaType != "" {
		what = s.MediaType
	}
	if size, ok := pixelsOf(s); ok {
		what += fmt.Sprintf(", %d by %d", size.Width, size.Height)
	}
	return fmt.Sprintf("[image left out to save room: %s; reference %s]", what, reference)
}
