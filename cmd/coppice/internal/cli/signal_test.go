package cli

import (
	"fmt"
	"os"
	"sync/atomic"
)

// stubborn is a program that takes note of the first signal, and goes on
// computing.
func stubborn() {
	ctx := interruptible(new(atomic.Bool))
	fmt.Println("computing")
	for ctx.Err() == nil { // without a pause: nothing else would run by itself
	}
	fmt.Println("still computing")
	for n := uint64(1); n != 0; n += 2 {
	}
	os.Exit(exitOK)
}
