package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Most providers require that names of tools and ids of calls consist of letters, digits, _
// and -, and are not too long. Names and ids from other providers and programs may be
// different.

// hashSize is how much of a hash is added to make a changed id unique.
const hashSize = 8

// SafeID returns an id that a provider accepts: the id itself if possible, or else one
// made from it, always the same.
func SafeID(id string, most int) string {
	if isSafe(id) && len(id) <= most && id != "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	safe := safe(id)
	if cut := most - hashSize - 1; len(safe) > cut {
		safe = safe[:cut]
	}
	return safe + "_" + hex.EncodeToString(sum[:hashSize/2])
}

// noName is the name sent for a call without one: its answer broke off, or the model
// forgot it.
const noName = "unnamed"

// SafeName returns a name that a provider accepts.
func (n *Notes) SafeName(name string, most int) string {
	if isSafe(name) && len(name) <= most && name != "" {
		return name
	}
	if name == "" {
		n.Add("a call that names no tool is sent as %s", noName)
		return noName
	}
	safe := safe(name)
	if len(safe) > most {
		safe = safe[:most]
	}
	n.Add("the tool %s is called %s", name, safe)
	return safe
}

// KeepUnsafe keeps an id or a name that came from a provider although it breaks the
// provider's own rules, under the name of its member.
func (r *Residue) KeepUnsafe(member, value string, most int) {
	if !isSafe(value) || len(value) > most || value == "" {
		r.Fields.SetStr(member, value)
	}
}

func isSafe(s string) bool { return strings.IndexFunc(s, isUnsafe) < 0 }

func isUnsafe(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
}

func safe(s string) string {
	return strings.Map(func(c rune) rune {
		if isUnsafe(c) {
			return '_'
		}
		return c
	}, s)
}
