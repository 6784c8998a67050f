// Package freeport finds ports for servers of tests.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The ports are below those that Linux and macOS use for outgoing connections and for listeners that ask for any port: one of these could be taken after it
// was found free and before the server listens on it, or while the server is restarted.
const first, last = 12_000, 32_000

// given holds the ports that Find has checked. The servers may not listen on them yet.
var given sync.Map

// Find returns free ports. It returns each port only once.
func Find(n int) ([]int, error) {
	var ports []int
	for range 1000 {
		port := first + rand.IntN(last-first) //nolint:gosec // it is no secret
		if _, known := given.LoadOrStore(port, true); known {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return nil, fmt.Errorf("closing a free port: %w", err)
		}
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("found only %d of %d free ports", len(ports), n)
}
