// Command xcaddy-build is Caddy with the analytics module: `go build` of this package produces the server's binary.
//
// With the flag --with it builds a Caddy with more plugins instead:
//
//	go run ./cmd/xcaddy-build --with github.com/some/plugin@v1.2.3 --with github.com/my/plugin=../plugin --output bin/caddy
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard" // Caddy's standard modules

	_ "github.com/caddy-analytics/caddy-analytics" // the analytics plugin
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
