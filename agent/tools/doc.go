// Package tools has the tools that an agent can work with in a directory: read, write,
// edit, bash, grep, glob and ls, fetch for pages on the web, search for what was said in
// earlier sessions, and task for work that another agent does.
//
// # What a call may do
//
// A path in a call is relative to the working directory. A path that stays in it as
// written (after "a/../b" has become "b") is opened so that no symbolic link can lead
// out: the call fails, and the error says where the link leads. A path that is written
// to be elsewhere, such as /etc/hosts, needs approval, and is opened only if it names
// the file itself, without links on the way. So the tool reads or writes exactly the
// file that a person approved.
//
// Reading in the working directory, searching and tasks need no approval; the calls of a task
// do as any others. What may hold secrets asks even there: dot files, except for those that
// projects publish, and files in which programs keep keys and passwords. Writing, editing,
// commands and pages always ask, unless a rule allows the call: see Rules. A command can do
// whatever the user can; the working directory is only where it starts.
package tools
