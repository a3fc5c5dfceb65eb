package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// peakOf runs a command and returns the most memory that its process had. Its exit
// code says what it found, which does not matter here.
//
// On Linux a process begins with the peak of the one that started it, which may be
// large here. So a process that does nothing else starts the command: see tellPeak.
func peakOf(cmd *exec.Cmd) int64 {
	between := exec.Command(executable(), append([]string{"-peak"}, cmd.Args...)...)
	between.Env, between.Stderr = cmd.Env, os.Stderr
	out, err := between.Output()
	check(err)
	peak, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	check(err)
	return peak
}

// tellPeak runs a command and prints the most memory that it had.
func tellPeak(command []string) {
	cmd := exec.Command(command[0], command[1:]...)
	if err := cmd.Run(); cmd.ProcessState == nil {
		panic(err)
	}
	fmt.Println(peakMemory(cmd.ProcessState))
}

// executable is this program.
func executable() string {
	path, err := os.Executable()
	check(err)
	return path
}
