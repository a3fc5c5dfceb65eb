package wire

// Stops translates between a wire format's reasons to stop and Coppice's.
type Stops struct {
	In  map[string]string // from the wire
	Out map[string]string // to the wire, where several lead to one
}

// Decode returns the reason, and what must be kept to write the same again, which is "" if
// the reason alone is enough.
func (s Stops) Decode(native string) (reason, keep string) {
	reason, ok := s.In[native]
	if !ok {
		reason = native
	}
	if s.Encode(reason) != native {
		keep = native
	}
	return reason, keep
}

// Encode returns the wire format's name for a reason.
func (s Stops) Encode(reason string) string {
	if native, ok := s.Out[reason]; ok {
		return native
	}
	return reason
}
