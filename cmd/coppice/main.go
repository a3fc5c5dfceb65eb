// Coppice is the command line over a directory of sessions.
package main

import (
	"os"

	"github.com/coppice-dev/coppice/internal/cli"
)

func main() { os.Exit(cli.Main()) }
