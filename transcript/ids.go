package transcript

import (
	"crypto/sha256"
	"encoding/hex"
)

// HashID returns an id that stands for the given parts: the same parts give the
// same id, others another. It has the form of a UUID of version 8.
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
