package leak_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coppice-dev/coppice/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func waits(c <-chan bool) { <-c }

// A goroutine that stays is named. One that is slow to end is waited for.
func TestFind(t *testing.T) {
	stop := make(chan bool)
	go waits(stop)
	if err := leak.Find(0); err == nil || !strings.Contains(err.Error(), "leak_test.waits") {
		t.Errorf("found %v", err)
	}
	late := time.AfterFunc(time.Second, func() { close(stop) }) // longer than goleak waits
	defer late.Stop()
	if err := leak.Find(time.Hour); err != nil {
		t.Error(err)
	}
}
