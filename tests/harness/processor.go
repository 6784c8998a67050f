package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime returns the CPU time that the server and its engine have used so far. Unlike wall-clock time, it hardly
// depends on other load.
func (s *Server) ProcessorTime() (time.Duration, error) {
	children, err := s.Children()
	if err != nil {
		return 0, err
	}
	return ProcessorTime(append(children, s.PID())...)
}

// ProcessorTime returns the CPU time that processes have used so far. It needs Linux. It reads a process's clock, which is accurate to a nanosecond: the
// stat file in /proc is accurate only to a hundredth of a second, which is more than a short query takes.
func ProcessorTime(pids ...int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		const allThreads = 2 // CPUCLOCK_SCHED of clock_getcpuclockid
		var used unix.Timespec
		if err := unix.ClockGettime(int32(^pid<<3|allThreads), &used); err != nil {
			return 0, fmt.Errorf("reading the time of process %d: %w", pid, err)
		}
		sum += time.Duration(used.Nano())
	}
	return sum, nil
}

// Children returns the ids of the server's child processes, in order: its engine, unless that is being restarted.
func (s *Server) Children() ([]int, error) { return Children(s.PID()) }

// Engine returns the process id of the server's embedded engine, its only child.
func (s *Server) Engine(tb testing.TB) int {
	tb.Helper()
	children, err := s.Children()
	if err != nil || len(children) != 1 {
		tb.Fatalf("the server has the children %v: %v", children, err)
	}
	return children[0]
}

// Children returns the ids of the running child processes of a process, in order. It needs Linux, and reads the states of all processes: the kernel's
// own lists of children may lack some while threads and processes come and go.
func Children(parent int) ([]int, error) {
	states, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, state := range states {
		raw, err := os.ReadFile(state)
		if err != nil {
			continue // the process has ended
		}
		name := bytes.LastIndexByte(raw, ')') // it may contain spaces
		fields := strings.Fields(string(raw[name+1:]))
		if len(fields) < 2 {
			return nil, fmt.Errorf("%s has no state: %q", state, raw)
		}
		const ended = "Z"
		if fields[0] != ended && fields[1] == strconv.Itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(state)))
			if err != nil {
				return nil, fmt.Errorf("listing processes: %w", err)
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// KillChildren kills the child processes of a process whose command lines contain command. It waits until there is one: after an engine was killed, it
// takes a moment to restart.
func KillChildren(t *testing.T, parent int, command string) {
	t.Helper()
	Eventually(t, time.Minute, func() error {
		children, err := Children(parent)
		if err != nil {
			return err
		}
		killed := 0
		for _, child := range children {
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
			if err != nil || !strings.Contains(string(line), command) {
				continue
			}
			if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
				return err
			}
			killed++
		}
		if killed == 0 {
			return fmt.Errorf("none of the children %v is a %q", children, command)
		}
		return nil
	})
}
