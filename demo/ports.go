package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// checkPorts reports the ports that another program has, with words that start the demo on others.
func (s *settings) checkPorts() error {
	if s.port == s.admin {
		return fmt.Errorf("the site and the admin API cannot both have the port %d", s.port)
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
		taken = append(taken, fmt.Sprintf("port %d, for %s, is taken by another program", want.port, want.what))
		instead = append(instead, fmt.Sprintf("%s=%d", want.variable, s.freePort(want.address, want.port)))
	}
	if len(taken) == 0 {
		return nil
	}
	return errors.New(strings.Join(taken, "; ") + ". Stop it, or choose another port:\n\n    make run " + strings.Join(instead, " ") + "\n")
}

// free reports whether nobody listens on a port.
func free(address string, port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// freePort finds a port near a taken one.
func (s *settings) freePort(address string, port int) int {
	for near := port + 1; near < port+100; near++ {
		if near != s.port && near != s.admin && free(address, near) {
			return near
		}
	}
	return port + 1 // the reader will have to look
}
