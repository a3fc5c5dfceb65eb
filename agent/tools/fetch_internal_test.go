package tools

import "testing"

func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::1]:80": true, "127.0.0.1:80": false, "[::1]:80": false, "10.1.2.3:80": false, "172.16.0.1:80": false,
		"192.168.1.1:80": false, "169.254.169.254:80": false, "[fe80::1]:80": false, "[fd00::1]:80": false, "0.0.0.0:80": false, "100.64.0.1:80": false,
		"[::ffff:127.0.0.1]:80": false, "[64:ff9b::7f00:1]:80": false, "224.0.0.1:80": false, "x": false,
	} {
		if got := isPublic(address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
