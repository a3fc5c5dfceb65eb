package wire

import "strconv"

// UniqueIDs gives the calls of a conversation ids that a provider accepts. Programs
// count their calls from the beginning in every turn, or use none; a provider
// refuses two calls with the same id, and tells by the id which call a result
// answers. The zero value is ready.
//
// An id depends only on what stands before it, so that a longer conversation
// begins with the bytes of a shorter one.
type UniqueIDs struct {
	// Verbatim: ids that are used twice stay as they are.
	Verbatim bool

	used map[string]bool
	open map[string][]string // by the id in the log, the ids of its calls without a result
}

// Call returns the id of a call.
func (u *UniqueIDs) Call(id string, longest int) string {
	unique := SafeID(id, longest)
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

// Result returns the id of a result: that of the call it answers, which is the
// latest that has none, as session.Pairs has it.
func (u *UniqueIDs) Result(id string, longest int) string {
	calls := u.open[id]
	if len(calls) == 0 {
		return SafeID(id, longest)
	}
	u.open[id] = calls[:len(calls)-1]
	return calls[len(calls)-1]
}
