// Package dataset reads the shapes in which conversations are published: those that
// models are trained on and judged by, and the runs of agents at benchmarks. It writes one
// of them, ShareGPT's.
//
// A file holds many conversations. sets.go has a table of the data sets; builder.go makes
// conversations of records. A data set with a good and a bad answer to one prompt becomes
// branches, and the leaf is the good one.
package dataset
