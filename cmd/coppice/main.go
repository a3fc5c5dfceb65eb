// Coppice is the command line over a directory of sessions.
package main

import (
	"os"

	_ "github.com/coppice-dev/coppice/home/all" // everything that a home can do
	"github.com/coppice-dev/coppice/internal/cli"
)

func main() { os.Exit(cli.Main()) }
