// Package dataset reads the shapes in which conversations are published for
// training and judging models, and writes one of them, ShareGPT's.
//
// A file holds many conversations. Where a data set has a good and a bad answer
// to the same prompt, they are branches, and the conversation stands at the good
// one.
package dataset
