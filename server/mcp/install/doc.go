// Package install writes a server into the configuration of an agent, so that the agent
// starts it, and takes it out again.
//
// Every byte of the file around the change stays: comments, order, spaces. What was written
// is read back before it replaces the file; if it does not say what it should, nothing is
// written.
package install
