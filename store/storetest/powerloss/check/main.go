// Command check looks at what a power cut left of the worker's sessions: see
// package powerloss for the protocol.
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/coppice-dev/coppice/store/storetest/powerloss"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: check check DIR K")
		os.Exit(2)
	}
	step, err := strconv.Atoi(os.Args[3])
	if err == nil {
		err = powerloss.Check(os.Args[2], step)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
