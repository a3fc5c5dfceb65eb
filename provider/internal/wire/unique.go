package wire

import (
	"strconv"

	"github.com/coppice-dev/coppice/session"
)

// UniqueIDs gives the calls of a conversation ids that a provider accepts. Some programs
// start numbering their calls again in every turn, or use no ids; a provider refuses two calls with the
// same id, and finds the call of a result by its id. The zero value is ready.
//
// An id depends only on what comes before it, so that a longer conversation begins with
// the bytes of a shorter one.
type UniqueIDs struct {
	// Verbatim keeps ids that are used twice as they are.
	Verbatim bool

	used map[string]bool
	open session.OpenCalls[string] // the new ids of the calls without a result
}

// Own is Call for an id that the provider gave: it stays unchanged if it can be sent at all.
func (u *UniqueIDs) Own(id string, longest int) string {
	if len(id) > longest {
		return u.Call(id, longest)
	}
	return u.call(id, id, longest)
}

// Call returns the id of a call.
func (u *UniqueIDs) Call(id string, longest int) string {
	return u.call(id, SafeID(id, longest), longest)
}

func (u *UniqueIDs) call(id, unique string, longest int) string {
	if u.Verbatim {
		return unique
	}
	if u.used == nil {
		u.used = make(map[string]bool)
	}
	for n := 2; u.used[unique]; n++ {
		unique = SafeID(id+"-"+strconv.Itoa(n), longest)
	}
	u.used[unique] = true
	u.open.Call(id, unique)
	return unique
}

// Result returns the id of a result: that of the call it answers.
func (u *UniqueIDs) Result(id string, longest int) string {
	if unique, ok := u.open.Result(id); ok {
		return unique
	}
	return SafeID(id, longest)
}
