// Package admin answers the operator's commands on Caddy's admin address: the routes below /analytics/. Commands know their bodies as the types of package
// adminapi. It is given what it works with, and knows neither the config nor how to open anything.
package admin

import (
	"context"
	"io"

	"github.com/caddy-analytics/caddy-analytics/ingest/delivery"
	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/module/api/capture"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/files"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/api/signin"
	"github.com/caddy-analytics/caddy-analytics/module/backups"
	"github.com/caddy-analytics/caddy-analytics/module/cohorts"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/imports"
	"github.com/caddy-analytics/caddy-analytics/module/upkeep"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Server handles the routes with what the running config has opened.
type Server struct {
	Registry *registry.Registry
	Shards   *warehouse.Shards
	// References knows what uses a cohort.
	References *references.Index
	// Files plans and applies endpoint files.
	Files *files.Files

	// What works in the background.
	Cohorts *cohorts.Calculator
	Alerts  *alerts.Checker
	Keeper  *upkeep.Keeper
	Deleter *deletions.Deleter
	Backups *backups.Backups

	// Import imports a command's file, and reports its progress. Its errors about the file are [imports.FileError].
	Import     func(ctx context.Context, request imports.Request, in io.Reader, progress func(line, events int)) (*adminapi.Import, error)
	ImportRuns *ImportRuns

	// What was captured.
	Captured *delivery.Logs
	Counters *capture.Counters

	// Codes are those that people sign in to the console with.
	Codes *signin.Codes
	// Console reports whether a site of the running config has the console, and returns its scheme and host; empty if the config does not give them.
	Console func() (site string, found bool, err error)
}
