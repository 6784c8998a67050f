//go:build linux || darwin

package embedded

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/pause"
)

// Engine is a running engine: a child process, and a goroutine that restarts it when it dies.
type Engine struct {
	cfg      Config
	log      *zap.Logger
	listener *net.TCPListener // kept open, so that the port stays reserved while no child listens
	socket   *os.File         // the same socket, for the child
	blocking sync.Mutex       // held while the socket may be blocking, and while a connection is accepted here, which would then never return
	orders   orders
	dsn      string

	version  atomic.Value // of the library, a string
	pid      atomic.Int64
	reads    atomic.Bool // the last read of a table was answered
	restarts atomic.Uint64
	cancel   context.CancelFunc
	done     chan struct{}
	killed   error // why the last child had to be killed; valid once done is closed
}

// Start starts the engine and waits until it is ready. The context only limits the start; the engine runs
// until Close.
//
// While the child is down, a new connection to the DSN waits for half a second and is then closed, so that
// clients get an error quickly instead of a timeout.
func Start(ctx context.Context, cfg Config, log *zap.Logger) (*Engine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("listening for the embedded engine: %w", err)
	}
	socket, err := listener.File()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listening for the embedded engine: %w", err), listener.Close())
	}
	e := &Engine{
		cfg:      cfg,
		log:      log,
		listener: listener,
		socket:   socket,
		orders: orders{
			User: "analytics", Password: rand.Text(), MaxMemory: cfg.MaxMemory, MaxQueries: cfg.MaxQueries, Processors: runtime.GOMAXPROCS(0),
			StuckTimeout: cfg.StuckTimeout, StopTimeout: cfg.StopTimeout,
		},
		done: make(chan struct{}),
	}
	dsn := url.URL{
		Scheme: "http",
		User:   url.UserPassword(e.orders.User, e.orders.Password),
		Host:   listener.Addr().String(),
		Path:   "/" + Database,
	}
	e.dsn = dsn.String()

	first, err := e.spawn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the embedded engine: %w", err), e.closeSocket())
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e.cancel = cancel
	go e.supervise(run, first)
	if runtime.GOOS == "linux" && !MaySetPriorities() {
		log.Info("the embedded engine may not set thread priorities, so long queries slow down others more than necessary; " +
			"grant the capability CAP_SYS_NICE (systemd: AmbientCapabilities)")
	}
	log.Info("the embedded engine is running", zap.Int("pid", e.PID()), zap.String("data_dir", cfg.DataDir))
	return e, nil
}

// complete fills in the defaults.
func (cfg *Config) complete() error {
	if cfg.DataDir == "" {
		return errors.New("the embedded engine needs a data folder")
	}
	dir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return fmt.Errorf("finding the engine's data folder: %w", err)
	}
	cfg.DataDir = dir
	if cfg.Library, _, err = FindLibrary(cfg.Library); err != nil {
		return err
	}
	if len(cfg.Command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding the embedded engine's program: %w", err)
		}
		cfg.Command = []string{self, Subcommand}
	}
	if cfg.MaxQueries <= 0 {
		cfg.MaxQueries = DefaultMaxQueries()
	}
	if cfg.StartTimeout == 0 {
		cfg.StartTimeout = time.Minute
	}
	if cfg.WatchInterval == 0 {
		cfg.WatchInterval = 5 * time.Second
	}
	if cfg.StuckTimeout == 0 {
		cfg.StuckTimeout = 2 * time.Minute
	}
	if cfg.StopTimeout == 0 {
		cfg.StopTimeout = 10 * time.Second
	}
	return nil
}

// DSN returns the DSN for clickhouse-go. It does not change when the child is restarted.
func (e *Engine) DSN() string { return e.dsn }

// Version returns the library's version of ClickHouse, such as 26.7.3.1.
func (e *Engine) Version() string {
	version, _ := e.version.Load().(string)
	return version
}

// PID returns the process id of the child, or 0 if there is none.
func (e *Engine) PID() int { return int(e.pid.Load()) }

// Close stops the child. Running queries get Config.StopTimeout to finish or be canceled; after that the child is
// killed and Close returns an error.
func (e *Engine) Close() error {
	e.cancel()
	<-e.done
	return errors.Join(e.killed, e.closeSocket())
}

func (e *Engine) closeSocket() error {
	return errors.Join(ignoreClosed(e.listener.Close()), e.socket.Close())
}

// supervise keeps a child running until the context is done.
func (e *Engine) supervise(ctx context.Context, c *child) {
	defer close(e.done)
	failures := 0
	for {
		started := time.Now()
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			e.watch(ctx, c)
		}()
		select {
		case <-ctx.Done():
			<-watched
			e.killed = c.stop(e.cfg.StopTimeout)
			e.pid.Store(0)
			return
		case <-c.exited:
		}
		<-watched
		e.pid.Store(0)
		e.restarts.Add(1)
		e.log.Error("the embedded engine died; restarting it",
			zap.Error(c.err), zap.Duration("uptime", time.Since(started)), zap.Strings("last_lines", c.tail.lines(60)))
		if time.Since(started) > steady {
			failures = 0
		}
		if c, failures = e.restart(ctx, failures); c == nil {
			return
		}
		e.log.Info("the embedded engine is running again", zap.Int("pid", e.PID()))
	}
}

// steady is how long a child has to run for the count of failures to start again.
const steady = time.Minute

// patience is how long a new connection waits for a child before connections are refused.
const patience = 500 * time.Millisecond

// restart tries until a child is up. It returns nil if the context is done.
func (e *Engine) restart(ctx context.Context, failures int) (*child, int) {
	refusing, stop := context.WithCancel(ctx)
	refused := make(chan struct{})
	go func() {
		defer close(refused)
		e.refuse(refusing)
	}()
	defer func() {
		stop()
		<-refused
	}()
	for {
		if pause.For(ctx, backoff(failures)) != nil {
			return nil, failures
		}
		failures++
		c, err := e.spawn(ctx)
		if err == nil {
			return c, failures
		}
		if ctx.Err() == nil {
			e.log.Error("the embedded engine failed to start", zap.Error(err), zap.Duration("next_try", backoff(failures)))
		}
	}
}

// backoff returns the delay before the next start after a number of failures.
func backoff(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(100*time.Millisecond<<min(failures, 10), 10*time.Second)
}

// refuse closes new connections until the context is done, once patience has passed.
func (e *Engine) refuse(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(patience):
	}
	for ctx.Err() == nil {
		c, err := e.accept()
		switch {
		case err == nil:
			_ = c.Close() // accepted only to be closed
		case !errors.Is(err, os.ErrDeadlineExceeded):
			e.log.Error("refusing connections to the embedded engine", zap.Error(err))
			return
		}
	}
}

// accept accepts a connection. It returns soon, with os.ErrDeadlineExceeded if there is none.
func (e *Engine) accept() (net.Conn, error) {
	e.blocking.Lock()
	defer e.blocking.Unlock()
	// If SetDeadline fails, so does Accept.
	_ = e.listener.SetDeadline(time.Now().Add(20 * time.Millisecond))
	return e.listener.Accept()
}

// child is one run of the child process.
type child struct {
	cmd     *exec.Cmd
	tail    tail
	control *os.File
	exited  chan struct{}
	err     error // how it ended; err and tail are valid once exited is closed
}

// spawn starts a child and waits until it is ready.
func (e *Engine) spawn(ctx context.Context) (*child, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, e.cfg.StartTimeout, fmt.Errorf("no answer within %s", e.cfg.StartTimeout))
	defer cancel()
	controlR, controlW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	statusR, statusW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, controlR.Close(), controlW.Close())
	}
	defer func() { _ = statusR.Close() }()
	args := append([]string{}, e.cfg.Command[1:]...)
	args = append(args, "--data-dir", e.cfg.DataDir, "--library", e.cfg.Library)
	c := &child{control: controlW, exited: make(chan struct{})}
	c.cmd = exec.Command(e.cfg.Command[0], args...) //nolint:gosec // the operator's command; it outlives ctx
	c.cmd.Env = childEnv(e.cfg.Env)
	c.cmd.Stdout, c.cmd.Stderr = &c.tail, &c.tail
	c.cmd.WaitDelay = time.Second
	c.cmd.SysProcAttr = childAttr()
	c.cmd.ExtraFiles = []*os.File{controlR, statusW, e.socket}
	e.blocking.Lock()
	err = c.start()
	err = errors.Join(err, controlR.Close(), statusW.Close(), e.keepNonblocking())
	e.blocking.Unlock()
	if err != nil {
		_ = controlW.Close()
		return nil, err
	}
	if err := json.NewEncoder(controlW).Encode(e.orders); err != nil { //nolint:gosec // a pipe that only the child reads
		return nil, errors.Join(err, c.stop(0))
	}
	answer := make(chan status, 1)
	go func() {
		var s status
		if err := json.NewDecoder(statusR).Decode(&s); err != nil {
			s.Error = "it exited without an error message"
		}
		answer <- s
	}()
	select {
	case s := <-answer:
		if s.Ready {
			e.reads.Store(true) // it has created its tables
			e.version.Store(s.Version)
			e.pid.Store(int64(c.cmd.Process.Pid))
			return c, nil
		}
		_ = c.stop(e.cfg.StopTimeout) // the child's own error is more useful
		return nil, c.failure(s.Error)
	case <-ctx.Done():
		_ = c.stop(0) // killed on purpose
		return nil, c.failure(context.Cause(ctx).Error())
	}
}

// failure returns the error for a child that exited before it was ready.
func (c *child) failure(reason string) error {
	if lines := c.tail.lines(5); len(lines) > 0 && reason != "" && lines[len(lines)-1] != reason {
		return fmt.Errorf("%s; its last lines were %q", reason, lines)
	}
	return errors.New(reason)
}

// start starts the process and waits for it in a goroutine that is locked to its thread, because on Linux the child
// dies with the thread that started it.
func (c *child) start() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := c.cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		c.err = c.cmd.Wait()
		if c.err == nil {
			c.err = errors.New("exit status 0")
		}
		_ = c.control.Close() // the reader is gone
		close(c.exited)
	}()
	return <-started
}

// stop asks the process to exit, and kills it after the timeout. It returns when the process has exited.
func (c *child) stop(timeout time.Duration) error {
	if timeout > 0 {
		_ = c.control.Close() // it may be closed
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		select {
		case <-c.exited:
			return nil
		case <-timer.C:
		}
	}
	_ = c.cmd.Process.Kill() // it may have exited
	<-c.exited
	if timeout > 0 {
		return fmt.Errorf("the embedded engine did not stop within %s and was killed", timeout)
	}
	return nil
}

// keepNonblocking sets the socket to nonblocking again. Passing the file to a child makes it blocking, and both share the
// mode.
func (e *Engine) keepNonblocking() error {
	raw, err := e.listener.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	if err := raw.Control(func(fd uintptr) { set = syscall.SetNonblock(int(fd), true) }); err != nil {
		return err
	}
	return set
}
