package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
	"github.com/caddy-analytics/caddy-analytics/internal/lifeline"
)

// Demo is what `make run` starts: a server with the demo's project, on http://localhost.
type Demo struct {
	*Server

	Project     int64  `json:"project"`
	PersonalKey string `json:"personal_key"` // with every scope
	SecretKey   string `json:"secret_key"`
}

// OpenDemo starts the program of `make run` on free ports, with all its files in folder, and waits until its data is loaded. The caller must Stop it.
func OpenDemo(folder string) (*Demo, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	program := filepath.Join(folder, "demo")
	build := exec.Command("go", "build", "-o", program, "./demo")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the demo: %w\n%s", err, out)
	}
	ports, err := freeport.Find(2)
	if err != nil {
		return nil, err
	}
	state := filepath.Join(folder, "state")
	d := &Demo{Server: &Server{
		URL: fmt.Sprintf("http://localhost:%d", ports[0]), Admin: fmt.Sprintf("localhost:%d", ports[1]), Folder: folder, binary: binary,
		ended: make(chan struct{}),
	}}
	if d.log, err = os.Create(filepath.Join(folder, "server.log")); err != nil {
		return nil, fmt.Errorf("opening the demo's output: %w", err)
	}
	d.cmd = exec.Command(program, "-server", binary, "-folder", state, "-port", strconv.Itoa(ports[0]), "-admin-port", strconv.Itoa(ports[1]))
	d.cmd.Dir, d.cmd.Stdout, d.cmd.Stderr = root, d.log, d.log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the demo: %w", err), d.log.Close())
	}
	release, err := lifeline.Hold(d.cmd, syscall.SIGTERM) // it then stops its server
	if err != nil {
		return nil, errors.Join(err, d.cmd.Process.Signal(syscall.SIGTERM), d.log.Close())
	}
	go func() {
		_ = d.cmd.Wait() // the output says why it ended
		release()
		close(d.ended)
	}()
	if err := d.wait(state); err != nil {
		return nil, errors.Join(err, d.Stop())
	}
	return d, nil
}

// wait waits until the demo has printed its keys.
func (d *Demo) wait(state string) error {
	limit := time.After(5 * time.Minute)
	for !strings.Contains(d.Log(), "Try, in another terminal:") {
		select {
		case <-d.ended:
			return fmt.Errorf("the demo ended:\n%s", d.Log())
		case <-limit:
			return fmt.Errorf("the demo is not ready in time:\n%s", d.Log())
		case <-time.After(20 * time.Millisecond):
		}
	}
	raw, err := os.ReadFile(filepath.Join(state, "demo.json"))
	if err != nil {
		return fmt.Errorf("reading the demo's keys: %w", err)
	}
	return json.Unmarshal(raw, d)
}
