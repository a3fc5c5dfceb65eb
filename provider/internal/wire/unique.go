package wire

import "strconv"

// UniqueIDs gives the calls of a conversation ids that a provider accepts. Programs
// count their calls from the beginning in every turn, or use none; a provider refuses
// two calls with the same id, and finds the call of a result by its id. The zero value
// is ready.
//
// An id depends only on what comes before it, so that a longer conversation begins with
// the bytes of a shorter one.
type UniqueIDs struct {
	// Verbatim: ids that are used twice stay as they are.
	Verbatim bool

	used map[string]bool
	open map[string][]string // by the id in the log, the ids of its calls without a result
}

// Own is Call for an id that the provider gave: it stays as it is if it can be sent at
// all.
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
		u.used, u.open = make(map[string]bool), make(map[string][]string)
	}
	for n := 2; u.used[unique]; n++ {
		unique = SafeID(id+"-"+strconv.Itoa(n), longest)
	}
	u.used[unique] = true
	u.open[id] = append(u.open[id], unique)
	return unique
}

// Result returns the id of a result: that of the call it answers, which is the latest
// open one, as in session.Pairs.
func (u *UniqueIDs) Result(id string, longest int) string {
	calls := u.open[id]
	if len(calls) == 0 {
		return SafeID(id, longest)
	}
	u.open[id] = calls[:len(calls)-1]
	return calls[len(calls)-1]
}
