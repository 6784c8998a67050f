package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-analytics/caddy-analytics/module"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("analytics", parseHandler)
	httpcaddyfile.RegisterDirectiveOrder("analytics", httpcaddyfile.Before, "reverse_proxy")
}

// parseHandler reads the site directive, which has no options:
//
//	analytics [<matcher>]
func parseHandler(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h.Next() // the directive's name
	if h.NextArg() {
		return nil, h.ArgErr()
	}
	if h.NextBlock(0) {
		return nil, h.Errf("analytics takes no options here: they stand in the global block")
	}
	return new(module.Handler), nil
}
