// Coppice is the command line over a directory of sessions.
package main

import (
	"os"

	"github.com/coppice-dev/coppice/cmd/coppice/internal/cli"
	_ "github.com/coppice-dev/coppice/home/all" // everything that a home can do
)

func main() { os.Exit(cli.Main()) }
