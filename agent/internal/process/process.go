// Package process runs the programs of an agent: commands, and servers of tools.
package process

import (
	"os"
	"slices"
	"strings"

	"github.com/coppice-dev/coppice/provider/client"
)

// Environ returns the environment of this program without the keys of model providers.
// A program that prints its environment would put them into the log, and a foreign
// program has no business with them.
func Environ() []string {
	hidden := make(map[string]bool)
	for _, name := range client.Providers() {
		hidden[client.KeyVariable(name)] = true
	}
	return slices.DeleteFunc(os.Environ(), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return hidden[name]
	})
}
