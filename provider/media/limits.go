// Package media knows which pictures, documents and recordings each provider takes, and
// makes fit what it does not take: a picture is scaled or converted, a text file becomes
// text, and anything else becomes a line that says what it was.
//
// A provider refuses a request with a picture that it cannot read, and then every later
// request of the conversation. So the type that a sender claims does not count: the bytes
// are decoded.
package media

import "slices"

// Limits are what a provider takes. The comments name where that is written.
type Limits struct {
	// Images are the media types of pictures. A picture has at most ImageBytes bytes,
	// before base64, and no side of more than Side pixels; 0 is any.
	Images     []string
	ImageBytes int
	Side       int
	// Documents are the media types of files, which have at most DocumentBytes bytes.
	Documents     []string
	DocumentBytes int
	// Audio are the media types of recordings.
	Audio []string
	// Results: the result of a tool may have pictures and documents.
	Results bool
}

const (
	png, jpeg, gif, webp = "image/png", "image/jpeg", "image/gif", "image/webp"
	pdf                  = "application/pdf"
)

// The limits of the dialects.
var (
	// Types, 8,000 pixels, and 2,000 if a request has more than 20 pictures, which any
	// conversation may have later: https://platform.claude.com/docs/en/build-with-claude/vision.
	// The 5 MB are those of the base64: https://github.com/aipoch/open-science/pull/225.
	// Files are PDF: https://github.com/langchain-ai/langchain/pull/37585. A request has at
	// most 32 MB.
	Anthropic = &Limits{
		Images: []string{png, jpeg, gif, webp}, ImageBytes: 3_750_000, Side: 2000,
		Documents: []string{pdf}, DocumentBytes: 20_000_000, Results: true,
	}
	// Types and 20 MB: https://github.com/CosmosShadow/gptpdf/issues/6. Files are PDF:
	// https://github.com/openai/openai-dotnet/issues/613. Recordings are WAV and MP3:
	// https://github.com/vercel/ai/pull/12847. Only users send pictures:
	// https://github.com/OpenHands/OpenHands/issues/7700.
	Chat = &Limits{
		Images: []string{png, jpeg, gif, webp}, ImageBytes: 15_000_000,
		Documents: []string{pdf}, DocumentBytes: 20_000_000, Audio: []string{"audio/wav", "audio/mp3"},
	}
	// As Chat, but results may have pictures, and there are no recordings:
	// https://github.com/Mirascope/mirascope/pull/1460.
	Responses = &Limits{
		Images: []string{png, jpeg, gif, webp}, ImageBytes: 15_000_000,
		Documents: []string{pdf}, DocumentBytes: 20_000_000, Results: true,
	}
	// Types, without GIF:
	// https://discuss.ai.google.dev/t/gemini-2-api-returns-invalid-parameter-error-for-gif-inputs/71468.
	// A request has at most 20 MB:
	// https://firebase.google.com/docs/ai-logic/input-file-requirements. Recordings:
	// https://ai.google.dev/gemini-api/docs/audio.
	Google = &Limits{
		Images: []string{png, jpeg, webp, "image/heic", "image/heif"}, ImageBytes: 7_000_000,
		Documents: []string{pdf}, DocumentBytes: 14_000_000,
		Audio: []string{"audio/wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"},
	}
)

// accepts reports whether pictures like this are taken as they are.
func (l *Limits) accepts(i *info) bool {
	return slices.Contains(l.Images, i.mediaType) && i.bytes <= l.ImageBytes && (l.Side == 0 || max(i.width, i.height) <= l.Side)
}
