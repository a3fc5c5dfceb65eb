package transcript

import "github.com/coppice-dev/coppice/redact"

// Redact removes secrets from a line, a document or an entry. It is for Importer.Clean
// and Exporter.Clean.
func Redact(raw []byte) []byte {
	if clean, _, err := redact.JSON(raw); err == nil {
		return clean
	}
	clean, _ := redact.Bytes(raw)
	return clean
}
