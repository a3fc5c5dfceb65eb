//go:build unix

package s3test_test

import (
	"net/http"
	"testing"

	"github.com/coppice-dev/coppice/internal/s3test"
)

// The server asks for a key. This is also how make builds it, before tests that have less time.
func TestServer(t *testing.T) {
	b := s3test.New(t)
	answer, err := http.Get(b.Endpoint + "/" + b.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("without a key: %s", answer.Status)
	}
}
