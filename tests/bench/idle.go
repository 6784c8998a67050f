package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// The most memory of an idle server and its engine, in bytes; how long after the start it is measured; and the longest warm start of the demo.
const (
	idleServer = 50_000_000
	idleEngine = 200_000_000
	idleAfter  = 60 * time.Second
	warmStart  = 1500 * time.Millisecond
)

// idle measures an idle server: its memory, and how long it takes to start with the data of an earlier run. It also measures a warm `make run`.
func idle(folder string) (goals []goal, err error) {
	client, err := open(folder, "idle")
	if err != nil {
		return nil, err
	}
	server := client.Server
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := server.Stop(); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := server.Run(); err != nil {
		return nil, err
	}
	started := time.Since(began)
	time.Sleep(idleAfter)
	memory, err := server.Rest()
	if err != nil {
		return nil, err
	}
	demo, err := warmDemo(folder)
	if err != nil {
		return nil, err
	}
	const mb = 1e6
	fmt.Printf("A server that nobody asks, %s after its start: server %.0f MB, engine %.0f MB of resident memory; start %.2f s; `make run` again %.2f s\n\n",
		idleAfter, float64(memory.Server)/mb, float64(memory.Engine)/mb, started.Seconds(), demo.Seconds())
	return []goal{
		{
			what: "memory of an idle server", against: "resident, server", goal: "<= 50 MB",
			measured: fmt.Sprintf("%.0f MB", float64(memory.Server)/mb), missed: memory.Server > idleServer,
		},
		{
			what: "memory of an idle engine", against: "resident, engine", goal: "<= 200 MB",
			measured: fmt.Sprintf("%.0f MB", float64(memory.Engine)/mb), missed: memory.Engine > idleEngine,
		},
		{what: "`make run` again, until it serves", against: "-", goal: "<= 1.5 s", measured: fmt.Sprintf("%.2f s", demo.Seconds()), missed: demo > warmStart},
	}, nil
}

// warmDemo returns how long `make run` takes until the demo serves, if it ran before.
func warmDemo(folder string) (took time.Duration, err error) {
	home := filepath.Join(folder, "demo")
	if err := os.Mkdir(home, 0o700); err != nil {
		return 0, fmt.Errorf("creating a folder: %w", err)
	}
	for range 2 {
		began := time.Now()
		demo, err := harness.OpenDemo(home)
		if err != nil {
			return 0, err
		}
		took = time.Since(began)
		if err := demo.Stop(); err != nil {
			return 0, err
		}
	}
	return took, nil
}
