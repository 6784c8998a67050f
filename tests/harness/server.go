// Package harness starts the built server for black-box tests.
package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
	"github.com/caddy-analytics/caddy-analytics/internal/lifeline"
)

// Server is a running server with its own data folder, on free ports of the loopback interface.
type Server struct {
	URL    string // of the site, without a trailing slash
	Admin  string // host:port of the admin API
	Folder string // contains the Caddyfile, the data and the log

	binary string
	global string
	cmd    *exec.Cmd
	ended  chan struct{}
	log    *os.File
}

// AllScopes has every scope that a route requires.
const AllScopes = "action:read,action:write,alert:read,alert:write,annotation:read,annotation:write,batch_import:read,batch_import:write,cohort:read,cohort:write," +
	"dashboard:read,dashboard:write,endpoint:read,endpoint:write,event_definition:read,event_definition:write,feature_flag:read,group:read," +
	"insight:read,insight:write,insight_variable:read,insight_variable:write,organization:read,organization_member:read,person:read,person:write," +
	"project:read,project:write,property_definition:read,property_definition:write,query:read,user:read"

// Binary builds the server, with the console, once for the whole test process, and returns its path. All test processes of a checkout share that path.
var Binary = sync.OnceValues(func() (path string, err error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(root, "bin", "test")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("creating a folder for the binary: %w", err)
	}
	lock := flock.New(filepath.Join(folder, "lock"))
	if err := lock.Lock(); err != nil {
		return "", fmt.Errorf("waiting for other tests to build the server: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	console := exec.Command("scripts/console.sh", "build")
	console.Dir = root
	if out, err := console.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the console: %w\n%s", err, out)
	}
	path = filepath.Join(folder, "caddy")
	build := exec.Command("scripts/build.sh", path)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the server: %w\n%s", err, out)
	}
	return path, nil
})

// Root returns the folder of the repository.
func Root() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("this binary does not contain the path of its source")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file))), nil
}

// Start starts a server that is stopped when the test ends. extra are lines for the global analytics block.
func Start(tb testing.TB, extra ...string) *Server {
	tb.Helper()
	s, err := Open(tb.TempDir(), extra...)
	if err != nil {
		tb.Fatalf("starting the server: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Stop(); err != nil {
			tb.Errorf("stopping the server: %v", err)
		}
	})
	return s
}

// Open starts a server with all its files in folder. The caller must Stop it.
func Open(folder string, extra ...string) (*Server, error) {
	binary, err := Binary()
	if err != nil {
		return nil, err
	}
	ports, err := freeport.Find(2)
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL: fmt.Sprintf("http://127.0.0.1:%d", ports[1]), Admin: fmt.Sprintf("127.0.0.1:%d", ports[0]), Folder: folder,
		binary: binary, global: strings.Join(extra, "\n\t\t"),
	}
	if err := os.WriteFile(s.Caddyfile(), []byte(s.Config("")), 0o600); err != nil {
		return nil, fmt.Errorf("writing the Caddyfile: %w", err)
	}
	return s, s.Run()
}

// Caddyfile returns the path of the config.
func (s *Server) Caddyfile() string { return filepath.Join(s.Folder, "Caddyfile") }

// Config returns the text of the config, with additional site lines after the analytics directive.
func (s *Server) Config(site string) string {
	return fmt.Sprintf(`{
	admin %s
	auto_https off
	persist_config off
	analytics {
		data_dir %s
		%s
	}
}
%s {
	respond /plain "plain"
	analytics
	%s
}
`, s.Admin, filepath.Join(s.Folder, "data"), s.global, s.URL, site)
}

// Run starts the process again after Stop or Kill, on the same ports and data.
func (s *Server) Run() error {
	log, err := os.OpenFile(filepath.Join(s.Folder, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	s.log = log
	s.cmd = exec.Command(s.binary, "run", "--config", s.Caddyfile(), "--adapter", "caddyfile")
	s.cmd.Dir = s.Folder
	s.cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+filepath.Join(s.Folder, "xdg"), "XDG_CONFIG_HOME="+filepath.Join(s.Folder, "xdg"))
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("starting the server: %w", err), log.Close())
	}
	release, err := lifeline.Hold(s.cmd, syscall.SIGKILL)
	if err != nil {
		return errors.Join(err, s.cmd.Process.Kill(), log.Close())
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // tests read the status from ProcessState
		release()
		close(ended)
	}(s.cmd, s.ended)
	if err := s.waitReady(); err != nil {
		return errors.Join(err, s.Kill())
	}
	return nil
}

func (s *Server) waitReady() error {
	limit := time.After(3 * time.Minute)
	for {
		resp, err := http.Get(s.URL + "/api/projects/1/query/")
		if err == nil {
			return resp.Body.Close()
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the server stopped during startup:\n%s", s.LogEnd())
		case <-limit:
			return fmt.Errorf("the server did not respond in time:\n%s", s.LogEnd())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Log returns the server's output.
func (s *Server) Log() string {
	raw, err := os.ReadFile(filepath.Join(s.Folder, "server.log"))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// LogEnd returns the end of the server's output, for messages.
func (s *Server) LogEnd() string {
	text := s.Log()
	return text[max(0, len(text)-64<<10):]
}

// ServeConsole adds the console to the site.
func (s *Server) ServeConsole() error {
	config := strings.Replace(s.Config(""), "\n\tanalytics\n", "\n\tanalytics {\n\t\tconsole\n\t}\n", 1)
	if err := os.WriteFile(s.Caddyfile(), []byte(config), 0o600); err != nil {
		return fmt.Errorf("writing the Caddyfile: %w", err)
	}
	return s.Reload()
}

// PID returns the server's process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop terminates the server and waits until it has exited.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have exited
	defer transport.CloseIdleConnections()
	select {
	case <-s.ended:
		return s.log.Close()
	case <-time.After(time.Minute):
		return errors.Join(errors.New("the server did not stop within a minute"), s.Kill())
	}
}

// Kill kills the server, like a crash.
func (s *Server) Kill() error {
	_ = s.cmd.Process.Kill() // it may have exited
	<-s.ended
	transport.CloseIdleConnections()
	return s.log.Close()
}

// Command runs `caddy analytics …` against the server and returns what it printed.
func (s *Server) Command(stdin io.Reader, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, append(append([]string{"analytics"}, args...), "--address", s.Admin)...)
	var out, messages bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &messages
	err = cmd.Run()
	return out.String(), messages.String(), err
}

// MustCommand runs a command that must succeed, and decodes its JSON output into out unless that is nil.
func (s *Server) MustCommand(tb testing.TB, out any, stdin io.Reader, args ...string) {
	tb.Helper()
	stdout, stderr, err := s.Command(stdin, args...)
	if err != nil {
		tb.Fatalf("analytics %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(stdout), out); err != nil {
			tb.Fatalf("analytics %s printed %q: %v", strings.Join(args, " "), stdout, err)
		}
	}
}

// Project creates a project, and returns its number and a key with all scopes.
func (s *Server) Project(tb testing.TB, name string, more ...string) (id int64, key string) {
	tb.Helper()
	var project struct{ ID int64 }
	s.MustCommand(tb, &project, nil, append([]string{"project", "create", "--name", name}, more...)...)
	return project.ID, s.Key(tb, project.ID, AllScopes, "personal")
}

// Key creates a key.
func (s *Server) Key(tb testing.TB, project int64, scopes, kind string) string {
	tb.Helper()
	var key struct{ Key string }
	s.MustCommand(tb, &key, nil, "key", "create", "--project", strconv.FormatInt(project, 10), "--scopes", scopes, "--kind", kind)
	return key.Key
}

// Reload reloads the Caddyfile.
func (s *Server) Reload() error {
	cmd := exec.Command(s.binary, "reload", "--config", s.Caddyfile(), "--adapter", "caddyfile", "--address", s.Admin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("reloading the config: %w\n%s", err, out)
	}
	transport.CloseIdleConnections() // the old config's server is closing them
	return nil
}
