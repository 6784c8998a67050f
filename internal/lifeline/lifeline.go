// Package lifeline ends the servers that a test has started when the test's process is gone.
package lifeline

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// Hold has a process that was started get a signal when this one ends, however it does: by Ctrl-C, by a panic, or killed. Whoever has waited
// for the process calls release.
//
// A shell waits for the end of a pipe that only this process can write to. It has a group of its own, so that Ctrl-C does not reach it.
func Hold(cmd *exec.Cmd, signal syscall.Signal) (release func(), err error) {
	watcher := exec.Command("sh", "-c", `read -r ended || kill "-$2" "$1"`, "lifeline", strconv.Itoa(cmd.Process.Pid), strconv.Itoa(int(signal))) //nolint:gosec // numbers
	watcher.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	line, err := watcher.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("making a lifeline: %w", err)
	}
	if err := watcher.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a lifeline: %w", err), line.Close())
	}
	return func() {
		_, _ = io.WriteString(line, "ended\n") // whoever killed the shell does not need it
		_ = watcher.Wait()
	}, nil
}
