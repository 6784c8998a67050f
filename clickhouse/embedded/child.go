//go:build linux || darwin

package embedded

import (
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
	"strings"
	"syscall"
	"time"
)

// What the parent hands to the child, beside its command line.
const (
	fdControl = 3 // the parent's orders, then nothing until the parent ends
	fdStatus  = 4 // the child's answer: ready, or why not
	fdSocket  = 5 // the listening socket
)

// orders is what the parent tells the child over the control pipe, so that no secret is in an argument or
// in the environment.
type orders struct {
	User       string `json:"user"`
	Password   string `json:"password"`
	MaxMemory  int64  `json:"max_memory"`
	MaxQueries int    `json:"max_queries"`
	// As in [Config].
	StuckTimeout time.Duration `json:"stuck_timeout"`
}

// status is what the child tells the parent, once.
type status struct {
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"`
}

// ChildMain is the main function of the child process that [Start] runs. Its arguments are --data-dir and
// --library. It returns when the parent asks for it (SIGTERM) or is gone; the process must end then.
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
		_ = json.NewEncoder(report).Encode(s) // without a parent there is nobody to tell
		_ = report.Close()
	}
	if err := serveChild(control, *dataDir, *library, func() { tell(status{Ready: true}) }); err != nil {
		tell(status{Error: err.Error()})
		return err
	}
	return nil
}

func serveChild(control *os.File, dataDir, library string, ready func()) error {
	socket, err := inherited(fdSocket, "socket")
	if err != nil {
		return err
	}
	listener, err := net.FileListener(socket)
	if err != nil {
		return errors.Join(errByHand, err)
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
	// The parent alone decides: Ctrl-C in a terminal reaches it too.
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, control) // ends with the parent
		stop()
		time.AfterFunc(10*time.Second, func() { os.Exit(1) })
	}()
	return serve(ctx, serveConfig{
		DataDir:    dataDir,
		Library:    library,
		Listener:   listener,
		User:       o.User,
		Password:   o.Password,
		MaxMemory:  o.MaxMemory,
		MaxQueries: o.MaxQueries,
		Stuck:      o.StuckTimeout,
		GiveUp: func(reason string) {
			fmt.Fprintln(os.Stderr, reason) // the parent logs it
			os.Exit(stuckStatus)
		},
		Ready: ready,
	})
}

// stuckStatus is the exit status of a child whose queries do not end.
const stuckStatus = 3

var errByHand = errors.New("this command is run by the server itself, not by hand")

// inherited opens a descriptor that the parent left open, and keeps it from being handed on.
func inherited(fd int, name string) (*os.File, error) {
	syscall.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), name)
	if _, err := file.Stat(); err != nil {
		return nil, errByHand
	}
	return file, nil
}

// childEnv is the child's environment: what a process needs, and none of the parent's secrets.
func childEnv(extra []string) []string {
	// The zone of times that name none; and a crash in the log, not all threads of it.
	env := []string{"TZ=UTC", "GOTRACEBACK=single"}
	for _, name := range []string{"PATH", "TMPDIR", "LD_LIBRARY_PATH", "GODEBUG", "GOCOVERDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, extra...)
}

// tail keeps the end of what the child writes.
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

// lines gives the last lines, at most n.
func (t *tail) lines(n int) []string {
	text := strings.TrimSpace(string(t.text))
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(len(lines)-n, 0):]
}
