// Command xcaddy-build is Caddy with the analytics module in it: what `go build` makes of it is the server's binary.
//
// Started with --with it builds another Caddy instead, with more plugins:
//
//	go run ./cmd/xcaddy-build --with github.com/some/plugin@v1.2.3 --with github.com/my/plugin=../plugin --output bin/caddy
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard" // the modules of a stock Caddy

	_ "github.com/caddy-analytics/caddy-analytics" // the analytics module with all that belongs to it
)

func main() {
	if !wantsBuild(os.Args[1:]) {
		caddycmd.Main()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := build(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "xcaddy-build:", err)
		os.Exit(1)
	}
}
