package wire

import "github.com/coppice-dev/coppice/session"

// Usage takes and reads the member of a response that says what it cost, and keeps its text
// beside the numbers: providers count more than we do. A member that is not an object stays.
func Usage(o *Object, name, format string, read func([]byte) *session.Usage) *session.Usage {
	raw := o.Get(name)
	u := read(raw)
	if u == nil {
		return nil
	}
	o.Take(name)
	u.Extra = session.Fields{{Name: format, Value: raw}}
	return u
}
