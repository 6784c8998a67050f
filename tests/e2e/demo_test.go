package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// screen collects a program's output.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// demoProgram builds the program of `make run`, and returns a command for it that stores everything in a folder.
func demoProgram(t *testing.T, folder string, port, admin int) (*exec.Cmd, *screen) {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "demo")
	build := exec.Command("go", "build", "-o", program, "./demo")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the demo: %v\n%s", err, out)
	}
	cmd := exec.Command(program, "-server", binary, "-folder", folder, "-port", strconv.Itoa(port), "-admin-port", strconv.Itoa(admin))
	out := new(screen)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, out, out
	return cmd, out
}

// TestDemoNamesTakenPorts starts the demo while other programs use its ports.
func TestDemoNamesTakenPorts(t *testing.T) {
	var taken [2]int
	for i, address := range []string{"127.0.0.1:0", "127.0.0.1:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		taken[i] = l.Addr().(*net.TCPAddr).Port
	}
	ports, err := freeport.Find(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		port, admin int
		want        []string
	}{
		{taken[0], ports[1], []string{fmt.Sprintf("port %d, for the site, is in use", taken[0]), "make run PORT="}},
		{ports[0], taken[1], []string{fmt.Sprintf("port %d, for Caddy's admin API, is in use", taken[1]), "make run ADMIN_PORT="}},
		{taken[0], taken[1], []string{fmt.Sprintf("port %d, for the site", taken[0]), fmt.Sprintf("port %d, for Caddy's", taken[1]), " ADMIN_PORT="}},
	} {
		folder := filepath.Join(t.TempDir(), "demo")
		cmd, out := demoProgram(t, folder, tt.port, tt.admin)
		if err := cmd.Run(); err == nil {
			t.Error("the demo runs")
		}
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the demo does not say %q but\n%s", want, out)
			}
		}
		if _, err := os.Stat(folder); err == nil {
			t.Error("the demo began to keep things")
		}
	}
}

// TestDemo starts the demo: its keys are the last thing it prints, they work, and the user's own Caddy config is unchanged.
func TestDemo(t *testing.T) {
	ports, err := freeport.Find(2)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	autosave := filepath.Join(home, "caddy", "autosave.json")
	if err := os.MkdirAll(filepath.Dir(autosave), 0o700); err != nil {
		t.Fatal(err)
	}
	const mine = `{"admin":{"listen":"localhost:1"}}`
	if err := os.WriteFile(autosave, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	cmd, out := demoProgram(t, folder, ports[0], ports[1])
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the demo ended with %v", err)
			}
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			t.Error("the demo does not stop")
		}
	})
	harness.Eventually(t, 5*time.Minute, func() error {
		if !strings.Contains(out.String(), "Try, in another terminal:") {
			return fmt.Errorf("no banner yet:\n%s", out)
		}
		return nil
	})
	time.Sleep(time.Second) // for late messages of the server
	_, banner, _ := strings.Cut(out.String(), "The demo project")
	for line := range strings.Lines(banner) {
		if strings.HasPrefix(line, "{") || strings.Contains(line, "INFO") || strings.Contains(line, "WARN") {
			t.Errorf("after the banner comes %s", line)
		}
	}
	_, key, _ := strings.Cut(banner, "every scope:")
	key, _, _ = strings.Cut(strings.TrimSpace(key), "\n")
	c := &harness.Client{Server: &harness.Server{URL: fmt.Sprintf("http://localhost:%d", ports[0])}, Project: 1, Key: key}
	if rows := c.Query(t, "select count() from events"); len(rows) != 1 {
		t.Errorf("rows %v", rows)
	}
	_, code, _ := strings.Cut(banner, fmt.Sprintf("http://localhost:%d/#code=", ports[0]))
	code, _, _ = strings.Cut(code, "\n")
	if answer := c.Do(t, http.MethodPost, "/api/console/session/", map[string]any{"code": code}); answer.Status != http.StatusCreated {
		t.Errorf("the link to the console answers %d %s\n%s", answer.Status, answer.Raw, banner)
	}
	list := c.Do(t, http.MethodGet, "cohorts/", nil)
	cohorts, _ := list.Body["results"].([]any)
	for _, one := range cohorts {
		if cohort, _ := one.(map[string]any); cohort["is_calculating"] != false || cohort["count"] == nil || cohort["count"] == 0.0 {
			t.Errorf("a cohort has no members: %v", cohort)
		}
	}
	if len(cohorts) != 2 {
		t.Errorf("cohorts: %s", list.Raw)
	}
	if raw, err := os.ReadFile(autosave); err != nil || string(raw) != mine {
		t.Errorf("the user's saved config became %q, %v", raw, err)
	}
	if log, err := os.ReadFile(filepath.Join(folder, "server.log")); err != nil || !strings.Contains(string(log), "serving initial configuration") {
		t.Errorf("the server's log is not there: %v", err)
	}
}
