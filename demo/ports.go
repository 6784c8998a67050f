package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// checkPorts returns an error if a port is in use, with a command that starts the demo on other ports.
func (s *settings) checkPorts() error {
	if s.port == s.admin {
		return fmt.Errorf("the site and the admin API cannot both use port %d", s.port)
	}
	var taken, instead []string
	for _, want := range []struct {
		port           int
		what, variable string
		address        string // as Caddy will listen
	}{
		{s.port, "the site", "PORT", ""},
		{s.admin, "Caddy's admin API", "ADMIN_PORT", "localhost"},
	} {
		if free(want.address, want.port) {
			continue
		}
		taken = append(taken, fmt.Sprintf("port %d, for %s, is in use by another program", want.port, want.what))
		instead = append(instead, fmt.Sprintf("%s=%d", want.variable, s.freePort(want.address, want.port)))
	}
	if len(taken) == 0 {
		return nil
	}
	return errors.New(strings.Join(taken, "; ") + ". Stop it, or choose another port:\n\n    make run " + strings.Join(instead, " ") + "\n")
}

// free reports whether a port is free to listen on.
func free(address string, port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// freePort returns a free port near one that is in use.
func (s *settings) freePort(address string, port int) int {
	for near := port + 1; near < port+100; near++ {
		if near != s.port && near != s.admin && free(address, near) {
			return near
		}
	}
	return port + 1 // may not be free
}
