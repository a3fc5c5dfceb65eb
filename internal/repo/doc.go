// Package repo has the tests that are about the repository as a whole: its layers, its
// documents, and rules that must be in one place.
package repo
