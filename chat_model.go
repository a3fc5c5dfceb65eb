package coppice

import (
	"strings"

	"github.com/coppice-dev/coppice/provider"
	"github.com/coppice-dev/coppice/provider/offline"
)

// chatModel returns the model that a chat asks for.
func (h *Home) chatModel(providerName, model string) (provider.Model, error) {
	if providerName == "" || providerName == offline.Name {
		return &offline.Model{}, nil
	}
	return nil, invalid("unknown provider %q", providerName)
}

func joined(list []string) string { return strings.Join(list, ", ") }
