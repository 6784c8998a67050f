// Package lifeline ends the servers that a test started when the test's process is gone.
package lifeline

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// Hold sends a signal to a started process when this one ends in any way: by Ctrl-C, by a panic, or killed. The caller calls release after it has
// waited for the process.
//
// A shell waits for the end of a pipe that only this process can write to. It runs in its own process group, so that Ctrl-C does not reach it.
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
		_, _ = io.WriteString(line, "ended\n") // the shell may have been killed
		_ = watcher.Wait()
	}, nil
}
