package wire

import (
	"encoding/json"

	"github.com/coppice-dev/coppice/session"
)

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

// UsageText returns the text of the usage that this format's provider gave. ok is false if
// there is none, or if the numbers have changed.
func UsageText(u *session.Usage, format string, read func([]byte) *session.Usage) (raw json.RawMessage, ok bool) {
	raw = Object(u.Extra).Get(format)
	was := read(raw)
	if was == nil {
		return nil, false
	}
	return raw, equalUsage(was, u)
}

func equalUsage(a, b *session.Usage) bool {
	return a.Input == b.Input && a.Output == b.Output && a.CacheRead == b.CacheRead &&
		a.CacheWrite == b.CacheWrite && a.CacheWriteHour == b.CacheWriteHour && a.Reasoning == b.Reasoning && a.CostMicroUSD == b.CostMicroUSD
}

// Count is a number under a name.
type Count struct {
	Name string
	N    int
}

// Counts returns an object with the numbers.
func Counts(list ...Count) Object {
	var o Object
	for _, c := range list {
		o.Put(c.Name, Number(c.N))
	}
	return o
}
