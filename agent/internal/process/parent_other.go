//go:build !linux

package process

// EndWithParent kills the program when this one dies, where the system can do that for
// a single program. On Windows, a job ends with this program anyway.
func (g *Group) EndWithParent() {}
