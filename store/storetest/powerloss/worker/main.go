// Command worker works on sessions until a block-level crash harness has seen
// enough: see package powerloss for the protocol.
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/coppice-dev/coppice/store/storetest/powerloss"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: worker DIR MODE")
		os.Exit(2)
	}
	in := bufio.NewReader(os.Stdin)
	err := powerloss.Work(os.Args[1], os.Args[2], func(name string, step int) {
		fmt.Println("acked", name, step)
		_, _ = in.ReadString('\n') // the end of input is as good as a line
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
