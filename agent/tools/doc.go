// Package tools has the tools that an agent can work with in a directory: read, write,
// edit and bash, and search for what was said in earlier sessions.
//
// # What a call may do
//
// A path in a call is relative to the working directory. One that stays in it as it is
// written (after "a/../b" has become "b") is opened in such a way that no symbolic link
// leads out: such a call fails, and the error says where the link leads. A path that
// is written so that it lies elsewhere, such as /etc/hosts, is a call that asks, and
// is opened only if it names the file itself and no link on the way to it. So what a
// person approved by its name is what is read or written.
//
// Reading in the working directory and searching need no approval. Writing, editing
// and commands always ask, unless a rule allows the call: see Rules. A command can do
// whatever the user can; the working directory is only where it starts.
package tools
