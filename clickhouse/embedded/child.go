//go:build linux || darwin

package embedded

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/startpages"
)

// File descriptors that the child inherits.
const (
	fdControl = 3 // a pipe with the orders; stays open until the parent exits
	fdStatus  = 4 // a pipe for the child's status
	fdSocket  = 5 // the listening socket
)

// orders is what the parent sends to the child over the control pipe, so that the arguments and the environment
// contain no secrets.
type orders struct {
	User       string `json:"user"`
	Password   string `json:"password"`
	MaxMemory  int64  `json:"max_memory"`
	MaxQueries int    `json:"max_queries"`
	Processors int    `json:"processors"` // that the parent may use
	// As in [Config].
	StuckTimeout time.Duration `json:"stuck_timeout"`
	StopTimeout  time.Duration `json:"stop_timeout"`
}

// status is what the child sends to the parent, once.
type status struct {
	Ready   bool   `json:"ready"`
	Version string `json:"version,omitempty"` // of the engine that is ready
	Error   string `json:"error,omitempty"`
}

// ChildMain is the main function of the child process that [Start] runs. Its arguments are --data-dir and
// --library. It returns when the parent has stopped it or exited; the process must exit then.
func ChildMain(args []string) error {
	flags := flag.NewFlagSet(Subcommand, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error is returned
	dataDir := flags.String("data-dir", "", "the folder that holds the tables")
	library := flags.String("library", "", "the engine's shared library")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the engine's arguments: %w", err)
	}
	control, err := inherited(fdControl, "control")
	if err != nil {
		return err
	}
	report, err := inherited(fdStatus, "status")
	if err != nil {
		return err
	}
	tell := func(s status) {
		if s.Ready {
			startpages.TrimLater()
		}
		_ = json.NewEncoder(report).Encode(s) // the parent may have exited
		_ = report.Close()
	}
	if err := serveChild(control, *dataDir, *library, func(version string) { tell(status{Ready: true, Version: version}) }); err != nil {
		tell(status{Error: err.Error()})
		return err
	}
	return nil
}

func serveChild(control *os.File, dataDir, library string, ready func(version string)) error {
	socket, err := inherited(fdSocket, "socket")
	if err != nil {
		return err
	}
	listener, err := net.FileListener(socket)
	if err != nil {
		return errors.Join(errNotStartedByServer, err)
	}
	_ = socket.Close() // the listener has a copy
	decoder := json.NewDecoder(control)
	var o orders
	if err := decoder.Decode(&o); err != nil {
		return fmt.Errorf("reading the parent's orders: %w", err)
	}
	if dataDir, err = filepath.Abs(dataDir); err != nil {
		return fmt.Errorf("finding the engine's data folder: %w", err)
	}

	yieldToParent()
	// Only the parent stops the child, when it has ended its own work: a terminal sends Ctrl-C to both, and systemd SIGTERM.
	signal.Ignore(os.Interrupt, syscall.SIGHUP, syscall.SIGTERM)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, control) // returns when the parent closes it or exits
		stop()
		time.AfterFunc(o.StopTimeout+time.Second, func() { os.Exit(1) }) // the parent kills it before, unless it has exited
	}()
	return serve(ctx, serveConfig{
		DataDir:    dataDir,
		Library:    library,
		Listener:   listener,
		User:       o.User,
		Password:   o.Password,
		MaxMemory:  o.MaxMemory,
		MaxQueries: cmp.Or(o.MaxQueries, DefaultMaxQueries()), // a parent of an older version may send neither of these
		Processors: cmp.Or(o.Processors, runtime.GOMAXPROCS(0)),
		Stuck:      o.StuckTimeout,
		GiveUp: func(reason string) {
			fmt.Fprintln(os.Stderr, reason) // the parent logs it
			os.Exit(stuckStatus)
		},
		Ready: ready,
	})
}

// stuckStatus is the exit status of a child with queries that do not end.
const stuckStatus = 3

var errNotStartedByServer = errors.New("this command is for the server itself and cannot be run by hand")

// inherited opens a descriptor inherited from the parent, and closes it for child processes.
func inherited(fd int, name string) (*os.File, error) {
	syscall.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), name)
	if _, err := file.Stat(); err != nil {
		return nil, errNotStartedByServer
	}
	return file, nil
}

// childEnv returns the child's environment: what a process needs, without the parent's secrets.
func childEnv(extra []string) []string {
	// The default time zone; and a crash must not log all threads.
	env := []string{"TZ=UTC", "GOTRACEBACK=single"}
	for _, name := range []string{"PATH", "TMPDIR", "LD_LIBRARY_PATH", "GODEBUG", "GOCOVERDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, extra...)
}

// tail keeps the end of the child's output.
type tail struct{ text []byte }

const tailSize = 8 << 10

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// lines returns at most the last n lines.
func (t *tail) lines(n int) []string {
	text := strings.TrimSpace(string(t.text))
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(len(lines)-n, 0):]
}
