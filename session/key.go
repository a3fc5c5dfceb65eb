package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"unicode/utf8"
)

// MaxKey is the greatest length of a key in bytes.
const MaxKey = 64 << 10

// idBytes is how much of the hash makes the id: 160 bits, as git uses to tell apart
// everything that was ever committed.
const idBytes = 20

// KeyID returns the id of the session of a key. Different keys have different ids, and
// the id reveals nothing about the key. An invalid key gives an error that matches
// os.ErrInvalid.
func KeyID(key string) (string, error) {
	if reason := badKey(key); reason != "" {
		return "", &Error{Op: "use key", Kind: ErrInvalid, Err: fmt.Errorf("%.80q %s", key, reason)}
	}
	sum := sha256.Sum256([]byte("coppice session key\n" + key))
	return hex.EncodeToString(sum[:idBytes]), nil
}

func badKey(key string) string {
	switch {
	case key == "":
		return "is empty"
	case len(key) > MaxKey:
		return fmt.Sprintf("is %d bytes long, over the limit of %d", len(key), MaxKey)
	case !utf8.ValidString(key):
		return "is not valid UTF-8" // it could not be stored in the header
	}
	return ""
}
