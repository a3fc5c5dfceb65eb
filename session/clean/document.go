package clean

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/coppice-dev/coppice/redact"
)

// maxUnpacked limits the size of unpacked data.
const maxUnpacked = 512 << 20

// magic is how compressed data begins.
var magic = []byte{0x28, 0xb5, 0x2f, 0xfd}

func isPacked(data []byte) bool { return bytes.HasPrefix(data, magic) }

// packed takes the secrets out of bytes that an import kept, which are compressed with
// zstd, and compresses them again. It returns the SHA-256 of the bytes before compression,
// too. If there are no secrets, it returns the data unchanged. Nothing in them moves: see
// redact.Scanner.SameLength.
func (c *cleaner) packed(data []byte) (out []byte, sum string, found []redact.Finding, err error) {
	plain, err := unpack(data)
	if err != nil {
		return nil, "", nil, err
	}
	c.see(plain)
	cleaned, found := document(c.raw, plain)
	if len(found) == 0 {
		return data, "", nil, nil
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, "", nil, err
	}
	defer enc.Close()
	return enc.EncodeAll(cleaned, nil), hexSum(cleaned), found, nil
}

func unpack(data []byte) ([]byte, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	plain, err := dec.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("unpacking what was kept of a source: %w", err)
	}
	return plain, nil
}

// document cleans bytes of unknown form: JSON, lines of JSON, or text. Lines that are
// JSON are searched one by one. What is between them is one text, because a private key
// has many lines. Data with NULs is not text.
func document(s *redact.Scanner, data []byte) ([]byte, []redact.Finding) {
	if bytes.IndexByte(data, 0) >= 0 {
		return data, nil
	}
	if out, found, err := s.JSON(data); err == nil {
		return out, found
	}
	var out []byte
	var found []redact.Finding
	add := func(part []byte) {
		cleaned, more := s.Bytes(part)
		out, found = append(out, cleaned...), append(found, more...)
	}
	text := 0 // the beginning of the text before the present line
	for at := 0; at < len(data); {
		end := len(data)
		if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		if line := bytes.TrimSpace(data[at:end]); len(line) > 0 && (line[0] == '{' || line[0] == '[') && json.Valid(line) {
			if text < at {
				add(data[text:at])
			}
			add(data[at:end])
			text = end
		}
		at = end
	}
	if text < len(data) {
		add(data[text:])
	}
	return out, found
}
