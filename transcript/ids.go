package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/coppice-dev/coppice/session"
)

// HashID returns an id made from the given parts: the same parts give the same id,
// other parts another. It has the form of a UUID of version 8.
func HashID(parts ...string) string {
	h := sha256.New()
	var length [8]byte
	for _, part := range parts {
		for i, n := 0, uint64(len(part)); i < 8; i, n = i+1, n>>8 {
			length[i] = byte(n)
		}
		h.Write(length[:])
		h.Write([]byte(part))
	}
	sum := h.Sum(nil)
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	digits := hex.EncodeToString(sum[:16])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

// isPlainID reports whether a native id can be an entry's id as it is: a word that
// people can read aloud, and that means nothing to a shell, a terminal, a URL or a
// flag parser. Other ids are hashed.
func isPlainID(id string) bool {
	if id == "" || len(id) > maxID || strings.HasPrefix(id, session.InterruptedPrefix) {
		return false
	}
	inside := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:-/+@~", r)
	}
	return !strings.ContainsRune("-~.", rune(id[0])) && !strings.ContainsFunc(id, func(r rune) bool { return !inside(r) })
}

const maxID = 200

// wasPlainID reports whether older versions used such a native id unchanged. What they
// imported is found again under that id.
func wasPlainID(id string) bool {
	if id == "" || len(id) > maxID || strings.HasPrefix(id, session.InterruptedPrefix) {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\uFFFD' })
}
