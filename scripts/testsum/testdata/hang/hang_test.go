// Package hang_test has a test that does not end, beside others that do.
package hang_test

import "testing"

func TestHangs(t *testing.T) {
	t.Parallel()
	t.Run("inside", func(t *testing.T) {
		t.Parallel()
		c := make(chan int)
		go neverSends(c)
		waitsForEver(c)
	})
}

func waitsForEver(c chan int) { <-c }

func neverSends(chan int) { select {} }

func TestPasses(t *testing.T) {
	t.Parallel()
	go aBystander()
}

func aBystander() { select {} }
