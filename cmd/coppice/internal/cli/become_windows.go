package cli

import (
	"os"
	"os/exec"
)

// become runs another program and waits for it: this system cannot put it in the
// place of this one.
func become(program string, argv []string) error {
	cmd := exec.Command(program, argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
