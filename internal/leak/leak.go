// Package leak finds goroutines that the tests of a package have left. What ends by itself is
// waited for, however slow the machine is.
package leak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, for its TestMain. They fail if a goroutine is left.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := Find(time.Minute); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Find returns an error with the stacks of the goroutines that the tests have left. It gives
// them some time to end. Options can leave out those that were there before.
func Find(patience time.Duration, o ...goleak.Option) error {
	for end := time.Now().Add(patience); ; { // goleak itself waits for half a second
		if err := goleak.Find(o...); err == nil || !time.Now().Before(end) {
			return err
		}
	}
}
