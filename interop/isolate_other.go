//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

func isolated(*exec.Cmd) {}

func raiseLoopback() error { return errors.ErrUnsupported }
