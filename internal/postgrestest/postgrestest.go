// Package postgrestest starts the PostgreSQL that Debian packages, for tests.
package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caddy-analytics/caddy-analytics/internal/freeport"
	"github.com/caddy-analytics/caddy-analytics/internal/lifeline"
)

// Server is a PostgreSQL server with a folder of its own.
type Server struct {
	Port int

	folder, binaries string
	credential       *syscall.Credential // nil: the test's own
	options          []string
	mu               sync.Mutex
	process          *exec.Cmd
}

// ErrMissing is returned if PostgreSQL is not installed.
var ErrMissing = errors.New("the package postgresql is not installed")

// binaries returns the folder of the newest version's programs.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin") // where Debian puts them
	if err != nil {
		return "", err
	}
	version := func(folder string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder))) // 0 for anything else
		return n
	}
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	for _, folder := range found {
		if _, err := os.Stat(filepath.Join(folder, "initdb")); err == nil {
			return folder, nil
		}
	}
	return "", ErrMissing
}

// shared is the server that the tests of a package share.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Main runs the tests of a package, and stops the server that they used. It returns the exit status.
func Main(m *testing.M) int {
	status := m.Run()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping PostgreSQL:", err)
			return 1
		}
	}
	return status
}

// databases counts the databases that were created.
var databases atomic.Int64

// DSN returns the DSN of a new database on the package's server, which the first call starts. The package's TestMain must call Main. Without
// PostgreSQL the test is skipped, but not in CI.
func DSN(tb testing.TB) string {
	tb.Helper()
	shared.once.Do(func() { shared.server, shared.err = Start("-c", "fsync=off", "-c", "max_connections=300") })
	skipMissing(tb, shared.err)
	return shared.server.Database(tb)
}

// New starts a server for one test, and stops it when the test ends. Unlike the package's server, it syncs to the disk.
func New(tb testing.TB) *Server {
	tb.Helper()
	s, err := Start()
	skipMissing(tb, err)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func skipMissing(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case errors.Is(err, ErrMissing) && os.Getenv("CI") == "":
		tb.Skip(err)
	default:
		tb.Fatal(err)
	}
}

// Database creates a database, and returns its DSN.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	name := "test" + strconv.FormatInt(databases.Add(1), 10)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }() // it has done its work
	if _, err := conn.Exec(ctx, `CREATE DATABASE `+name); err != nil {
		tb.Fatal(err)
	}
	return s.DSN(name)
}

// DSN returns the DSN of a database.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("postgres://analytics:secret@127.0.0.1:%d/%s?sslmode=disable", s.Port, database)
}

// Start creates a folder for a server and starts it with options.
func Start(options ...string) (_ *Server, err error) {
	s := &Server{options: options}
	if s.binaries, err = binaries(); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 { // the server refuses to run as root
		if s.credential, err = unprivileged(); err != nil {
			return nil, err
		}
	}
	if s.folder, err = os.MkdirTemp("", "analytics-postgres-*"); err != nil {
		return nil, err
	}
	if err := s.initialize(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	if err := s.Run(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	return s, nil
}

// unprivileged returns the user that the server runs as.
func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("there is no user that PostgreSQL could run as")
}

func (s *Server) initialize() error {
	password := filepath.Join(s.folder, "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		return err
	}
	if s.credential != nil {
		for _, path := range []string{s.folder, password} {
			if err := os.Chown(path, int(s.credential.Uid), int(s.credential.Gid)); err != nil {
				return err
			}
		}
	}
	cmd := s.command("initdb", "-D", s.data(), "-U", "analytics", "--pwfile="+password, "-A", "scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.binaries, name), args...) //nolint:gosec // a program of PostgreSQL
	cmd.Dir = s.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.credential, Setpgid: true}
	return cmd
}

// Run starts the server, also after Stop or Kill, and returns when it accepts connections.
func (s *Server) Run() error {
	if s.Port == 0 {
		ports, err := freeport.Find(1)
		if err != nil {
			return err
		}
		s.Port = ports[0]
	}
	output, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer output.Close()
	args := append([]string{
		"-D", s.data(), "-c", "listen_addresses=127.0.0.1", "-c", "port=" + strconv.Itoa(s.Port), "-c", "unix_socket_directories=",
		"-c", "logging_collector=off", "-c", "shared_buffers=32MB",
	}, s.options...)
	cmd := s.command("postgres", args...)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		return err
	}
	release, err := lifeline.Hold(cmd, syscall.SIGQUIT)
	if err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it was stopped
		release()
		close(ended)
	}()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		conn, err := pgx.Connect(ctx, s.DSN("postgres"))
		if err == nil {
			_ = conn.Close(ctx) // it was only tried
			cancel()
			s.mu.Lock()
			s.process = cmd
			s.mu.Unlock()
			return nil
		}
		cancel()
		select {
		case <-ended:
			text, _ := os.ReadFile(output.Name())
			return fmt.Errorf("PostgreSQL ended: %s", text)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return errors.Join(errors.New("PostgreSQL takes no connections"), cmd.Process.Kill())
}

// Stop stops the server, even if clients are connected.
func (s *Server) Stop() error { return s.signal(syscall.SIGINT) }

// Kill ends the server and all of its processes without warning.
func (s *Server) Kill() error { return s.signal(syscall.SIGQUIT) }

func (s *Server) signal(how syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	if err := s.process.Process.Signal(how); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	pid := filepath.Join(s.data(), "postmaster.pid")
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err := syscall.Kill(s.process.Process.Pid, 0); errors.Is(err, syscall.ESRCH) {
			s.process = nil
			if err := os.Remove(pid); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		}
	}
	return errors.New("PostgreSQL does not end")
}

// Close stops the server and removes its folder.
func (s *Server) Close() error { return errors.Join(s.Kill(), os.RemoveAll(s.folder)) }
