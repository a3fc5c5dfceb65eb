package clean

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"strings"

	"github.com/coppice-dev/coppice/redact"
	"github.com/coppice-dev/coppice/session"
)

// idOf returns a name for a finding. It is made of what everyone may know: the place, the kind
// and the preview. A digest of the secret would help to guess it. The name stays the same, in
// any process and whatever else is searched, until something is taken out of that place.
func (s *Sweep) idOf(secret *Secret) string {
	in := []string{secret.File, secret.Session, secret.Entry, secret.Path}
	if ref := cmp.Or(secret.in, secret.Blob); ref != "" {
		in = []string{string(ref)} // whichever place leads to it
	}
	place := fmt.Sprintf("%q %s %q %d", in, secret.Kind, secret.Preview, secret.start)
	nth := s.ids[place] // several damaged lines may be the same place
	s.ids[place]++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", place, nth))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5]))
}

// allow notes that the secrets with some IDs are not to be removed.
func (s *Sweep) allow(ids []string) error {
	s.kept = make(map[uint64]bool)
	for _, id := range ids {
		known := false
		for _, secret := range s.Secrets {
			if secret.ID == id {
				s.kept[secret.Same], known = true, true
			}
		}
		if !known {
			return &session.Error{
				Op: "redact", Kind: session.ErrInvalid, Err: fmt.Errorf("no secret with the id %q was found", id),
				Hint: "list the secrets again, in the same sessions, for the ids that they have now",
			}
		}
	}
	maps.DeleteFunc(s.secrets, func(k redact.Known, _ bool) bool { return s.kept[s.sameAs(redact.SameAs([]byte(k.Value)))] })
	return nil
}

// isAllowed reports whether a finding of a rule is not to be removed.
func (s *Sweep) isAllowed(f redact.Finding) bool {
	if s.opts.Listed { // then the rules only say where words are secrets
		return s.same[f.Same] == 0
	}
	return s.kept[s.sameAs(f.Same)]
}
