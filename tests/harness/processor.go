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
)

// ProcessorTime returns the CPU time that the server and its engine have used so far. Unlike wall-clock time, it hardly
// depends on other load.
func (s *Server) ProcessorTime() (time.Duration, error) {
	children, err := s.Children()
	if err != nil {
		return 0, err
	}
	return ProcessorTime(append(children, strconv.Itoa(s.PID()))...)
}

// ProcessorTime returns the CPU time that processes have used so far. It needs Linux.
func ProcessorTime(pids ...string) (time.Duration, error) {
	var ticks int64
	for _, pid := range pids {
		raw, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return 0, fmt.Errorf("reading a process's times: %w", err)
		}
		_, rest, _ := strings.Cut(string(raw), ") ")
		fields := strings.Fields(rest) // from the third field on; utime and stime are the 14th and 15th
		if len(fields) < 13 {
			return 0, fmt.Errorf("process %s has no times: %q", pid, raw)
		}
		for _, field := range fields[11:13] {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("process %s has no times: %w", pid, err)
			}
			ticks += n
		}
	}
	const ticksPerSecond = 100 // on every Linux system that Go supports
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// Children returns the ids of the server's child processes, in order: its engine, unless that is being restarted.
func (s *Server) Children() ([]string, error) { return Children(s.PID()) }

// Children returns the ids of the running child processes of a process, in order. It needs Linux, and reads the states of all processes: the kernel's
// own lists of children may lack some while threads and processes come and go.
func Children(parent int) ([]string, error) {
	states, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var pids []string
	for _, state := range states {
		raw, err := os.ReadFile(state)
		if err != nil {
			continue // the process has ended
		}
		name := bytes.LastIndexByte(raw, ')') // it may hold spaces
		fields := strings.Fields(string(raw[name+1:]))
		if len(fields) < 2 {
			return nil, fmt.Errorf("%s has no state: %q", state, raw)
		}
		const ended = "Z"
		if fields[0] != ended && fields[1] == strconv.Itoa(parent) {
			pids = append(pids, filepath.Base(filepath.Dir(state)))
		}
	}
	return pids, nil
}

// KillChildren ends those child processes of a process without warning whose command lines contain a text. It waits until there is one: an engine that
// was killed before is not there for a moment.
func KillChildren(t *testing.T, parent int, command string) {
	t.Helper()
	Eventually(t, time.Minute, func() error {
		children, err := Children(parent)
		if err != nil {
			return err
		}
		killed := 0
		for _, child := range children {
			line, err := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
			if err != nil || !strings.Contains(string(line), command) {
				continue
			}
			pid, err := strconv.Atoi(child)
			if err != nil {
				return err
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
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
