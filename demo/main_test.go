package main

import (
	"context"
	"errors"
	"net"
	"testing"
)

// TestWaitReady: something at the port of the server accepts connections and never answers; the wait still ends with its context.
func TestWaitReady(t *testing.T) {
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := listener.Accept(); err != nil {
				return
			}
			cancel()
		}
	}()
	address, _ := listener.Addr().(*net.TCPAddr)
	s := &settings{port: address.Port}
	if err := s.waitReady(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("waitReady() = %v, want %v", err, context.Canceled)
	}
}
