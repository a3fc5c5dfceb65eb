package clean

import "github.com/coppice-dev/coppice/redact"

// Packed takes the secrets out of compressed bytes.
func Packed(data []byte) ([]byte, []redact.Finding, error) {
	out, _, found, err := newCleaner(new(redact.Scanner)).packed(data)
	return out, found, err
}
