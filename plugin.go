// Package analytics is the import path of the plugin for custom builds of Caddy. It registers the app, the handler, the
// admin API, the commands and the Caddyfile options.
package analytics

import (
	_ "github.com/caddy-analytics/caddy-analytics/caddyfile"      // the Caddyfile options
	_ "github.com/caddy-analytics/caddy-analytics/module"         // the app, the handler and the admin API
	_ "github.com/caddy-analytics/caddy-analytics/module/command" // the commands
)
