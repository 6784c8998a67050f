package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-analytics/caddy-analytics/module"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("analytics", parseHandler)
	// analytics passes on requests that it has no route for, so it comes before all directives that respond. Redirects, rewrites and authentication
	// come first.
	httpcaddyfile.RegisterDirectiveOrder("analytics", httpcaddyfile.Before, "invoke")
}

// parseHandler reads the site directive:
//
//	analytics [<matcher>] {
//		health
//		console
//	}
func parseHandler(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h.Next() // the directive's name
	if h.NextArg() {
		return nil, h.ArgErr()
	}
	handler := new(module.Handler)
	err := block(h.Dispenser, map[string]func() error{
		"health":  flag(h.Dispenser, &handler.Health),
		"console": flag(h.Dispenser, &handler.Console),
	})
	if err != nil {
		return nil, err
	}
	return handler, nil
}
