// Package dataset reads the forms in which conversations are published: data for training and
// evaluating models, and the runs of agents at benchmarks. It writes one of them, ShareGPT's.
//
// A file holds many conversations. sets.go has a table of the data sets; builder.go turns
// records into conversations. A data set with a good and a bad answer to one prompt becomes
// branches, and the leaf is the good one.
package dataset
