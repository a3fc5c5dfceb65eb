package provider_test

import (
	"testing"

	"github.com/coppice-dev/coppice/provider/internal/wiretest"
)

func FuzzOpenAIChat(f *testing.F)      { fuzz(f, chat, chatBodies) }
func FuzzOpenAIResponses(f *testing.F) { fuzz(f, responses, responsesBodies) }

// fuzz checks that whatever can be decoded comes back.
func fuzz(f *testing.F, codec wiretest.Codec, bodies map[string]string) {
	f.Helper()
	for _, body := range bodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := codec.Decode(body); err != nil || wiretest.Ambiguous(body) {
			return
		}
		if _, err := codec.RoundTrip(body); err != nil {
			t.Error(err)
		}
	})
}
