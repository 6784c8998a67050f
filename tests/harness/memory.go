package harness

import (
	"fmt"
	"os"
	"strings"
)

// Memory is the resident memory of the server's process and of its engine's, in bytes.
type Memory struct{ Server, Engine int64 }

// Sub returns the growth of m since an earlier state.
func (m Memory) Sub(earlier Memory) Memory {
	return Memory{Server: m.Server - earlier.Server, Engine: m.Engine - earlier.Engine}
}

// Rest returns the current memory and resets the peaks. It needs Linux.
func (s *Server) Rest() (Memory, error) {
	const forgetPeak = "5" // proc_pid_clear_refs(5)
	err := s.eachProcess(func(pid int) error {
		return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte(forgetPeak), 0)
	})
	if err != nil {
		return Memory{}, fmt.Errorf("resetting the peaks of memory: %w", err)
	}
	return s.memory("VmRSS:")
}

// Peak returns the peak memory since Rest, as counted by the kernel.
func (s *Server) Peak() (Memory, error) { return s.memory("VmHWM:") }

// eachProcess calls do for the server's process and those of its engine.
func (s *Server) eachProcess(do func(pid int) error) error {
	children, err := s.Children()
	if err != nil {
		return err
	}
	for _, pid := range append(children, s.PID()) {
		if err := do(pid); err != nil {
			return err
		}
	}
	return nil
}

// memory reads a line of the processes' status files.
func (s *Server) memory(line string) (m Memory, err error) {
	err = s.eachProcess(func(pid int) error {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(string(raw), line)
		var kib int64
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			return fmt.Errorf("process %d has no %s %w", pid, line, err)
		}
		if pid == s.PID() {
			m.Server += kib << 10
		} else {
			m.Engine += kib << 10
		}
		return nil
	})
	return m, err
}
