// Package trajectory reads what agents did at benchmarks: the trajectories of
// SWE-agent and mini-swe-agent, OpenHands and tau-bench.
package trajectory

import "github.com/coppice-dev/coppice/transcript"

// Formats returns the formats.
func Formats() []*transcript.Format {
	return []*transcript.Format{SWEAgent(), OpenHands(), TauBench()}
}
