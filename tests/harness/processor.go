package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// Children returns the ids of the server's child processes: its engine.
func (s *Server) Children() (pids []string, err error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.PID()))
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		raw, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		pids = append(pids, strings.Fields(string(raw))...)
	}
	return pids, nil
}
