package lifeline_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/lifeline"
)

// end is the environment variable that says how a test's process ends.
const end = "LIFELINE_TEST_END"

func TestMain(m *testing.M) {
	if how := os.Getenv(end); how != "" {
		start(how)
	}
	os.Exit(m.Run())
}

// start starts a server, and ends as told. The server inherits our output, which stays open while it runs.
func start(how string) {
	server := exec.Command("sleep", "120")
	server.Stdout = os.Stdout
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		panic(err)
	}
	if _, err := lifeline.Hold(server, syscall.SIGTERM); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("started\n") // the reader notices if it is missing
	switch how {
	case "panic":
		panic("as when the time of a test is up")
	case "exit":
		os.Exit(3)
	}
	time.Sleep(time.Minute)
}

// TestHold: however a test's process ends, the server that it started ends too.
func TestHold(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		signal syscall.Signal
	}{{"panic", 0}, {"exit", 0}, {"Ctrl-C", syscall.SIGINT}, {"stack", syscall.SIGQUIT}, {"kill", syscall.SIGKILL}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), end+"="+tt.name)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			output, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(output)
			if line, err := lines.ReadString('\n'); line != "started\n" {
				t.Fatalf("the process says %q, %v", line, err)
			}
			if tt.signal != 0 {
				if err := syscall.Kill(-cmd.Process.Pid, tt.signal); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = io.Copy(io.Discard, lines) // until both have ended
			}()
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Error("the server runs on")
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the process did not end as it was told")
			}
		})
	}
}

// TestRelease: a released process is not ended, and one that has already ended does no harm.
func TestRelease(t *testing.T) {
	t.Parallel()
	server := exec.Command("sleep", "120")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	let, err := lifeline.Hold(server, syscall.SIGTERM)
	if err != nil {
		t.Fatal(err)
	}
	after, err := lifeline.Hold(server, syscall.SIGTERM)
	if err != nil {
		t.Fatal(err)
	}
	let()
	if err := server.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = server.Wait()
	after()
	if status, ok := server.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the process ended with %v", server.ProcessState)
	}
}
