package client

// shell runs a command line.
var shell = []string{"cmd", "/c"}
