package anthropic

import "github.com/coppice-dev/coppice/provider/internal/wire"

// ToolIDs gives the calls of a conversation ids that Messages accepts, for programs
// that keep its messages in files of their own. An id that is good stays as it is.
// The zero value is ready; the calls and results must come in their order.
type ToolIDs struct{ ids wire.UniqueIDs }

// Call returns the id of a call.
func (t *ToolIDs) Call(id string) string { return t.ids.Call(id, maxID) }

// Result returns the id of a result: that of the call it answers.
func (t *ToolIDs) Result(id string) string { return t.ids.Result(id, maxID) }

// ToolName returns the name of a tool as Messages accepts it.
func ToolName(name string) string { return new(wire.Notes).SafeName(name, maxName) }
