package result

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// heldTable is a table whose rows the server supplies, for the caller's project only.
type heldTable struct {
	scope string // that a key needs besides that of the query route; empty for none
	rows  func(h *holder) [][]any
}

// heldTables are the held tables by their names in HogQL. The values of a row are in the order of the fields in schema.HeldTable.
var heldTables = map[string]heldTable{
	"query_log":                {"", (*holder).queryLog},
	"system.insights":          {"insight:read", (*holder).insights},
	"system.dashboards":        {"dashboard:read", (*holder).dashboards},
	"system.cohorts":           {"cohort:read", (*holder).cohorts},
	"system.alerts":            {"alert:read", (*holder).alerts},
	"system.insight_variables": {"insight_variable:read", (*holder).variables},
	"system.teams":             {"project:read", (*holder).project},
}

// holder supplies the rows of held tables to the query of a caller.
type holder struct {
	*api.Caller

	executor *execution.Executor
	tables   []string // that the query names, sorted
}

// heldBy returns what a query that uses held tables needs; nil for any other query.
func heldBy(e *execution.Executor, c *api.Caller, node query.Node) *execution.Held {
	tables := compiler.HeldTables(node)
	if len(tables) == 0 {
		return nil
	}
	caller := *c
	h := &holder{&caller, e, tables}
	// A result is valid for the current state of the project in the registry, and for keys with the same access to all held tables. The query log changes
	// from moment to moment.
	mark := []string{"held", strconv.FormatUint(c.Snapshot.Serial(c.Project.ID), 10)}
	if slices.Contains(tables, "query_log") {
		mark = append(mark, strconv.FormatInt(c.Start.UnixNano(), 10))
	}
	for _, name := range slices.Sorted(maps.Keys(heldTables)) {
		if !h.readable(name) {
			mark = append(mark, "without "+name)
		}
	}
	return &execution.Held{Tables: h.tables, Rows: h.of, Readable: h.readable, Mark: strings.Join(mark, " ")}
}

// DeniedTable returns why a caller may not read a held table; nil if it may.
func DeniedTable(c *api.Caller, table string) error { return (&holder{Caller: c}).denied(table) }

// readable reports whether the caller may read a table.
func (h *holder) readable(table string) bool { return h.denied(table) == nil }

// of returns the rows of a table that the query names. Nothing else that the query uses, such as an action, can read one: who may see the result would
// not be known.
func (h *holder) of(table string) ([][]any, error) {
	if !slices.Contains(h.tables, table) {
		return nil, fmt.Errorf("table `%s` can only be read by a query that names it", table)
	}
	if err := h.denied(table); err != nil {
		return nil, err
	}
	return heldTables[table].rows(h), nil
}

// MaySee reports whether a caller may see the result of a query, which another one may have sent: it may read all held tables of the query.
func MaySee(c *api.Caller, asked *execution.Query) bool {
	h := &holder{Caller: c}
	return asked.Held == nil || !slices.ContainsFunc(asked.Held.Tables, func(table string) bool {
		return !schema.IsInformation(table) && !h.readable(table)
	})
}

// denied returns why the caller may not read a table; nil if it may.
func (h *holder) denied(table string) error {
	t, ok := heldTables[table]
	switch {
	case !ok:
		return fmt.Errorf("table `%s` cannot be read", table)
	case t.scope != "" && !h.Key.Allows(t.scope):
		return fmt.Errorf("You don't have access to table `%s`. The key needs the scope '%s'.", table, t.scope) //nolint:staticcheck // a message of the API
	}
	return nil
}

func (h *holder) queryLog() [][]any { return h.executor.Runs.Queries.Rows(h.Project.ID, h.Start) }

func (h *holder) insights() [][]any {
	var rows [][]any
	for _, i := range h.Snapshot.AllInsights(h.Project.ID) {
		rows = append(rows, []any{
			i.ID, i.ShortID, h.Project.ID, i.Name, i.Description, document(i.Filters), document(i.Query), nil, flag(i.Deleted), flag(i.Saved),
			flag(i.Favorited), moment(i.CreatedAt), h.user(i.CreatedBy), moment(i.LastModifiedAt), h.user(i.LastModifiedBy), moment(i.UpdatedAt),
		})
	}
	return rows
}

func (h *holder) dashboards() [][]any {
	var rows [][]any
	for _, d := range h.Snapshot.AllDashboards(h.Project.ID) {
		rows = append(rows, []any{
			d.ID, h.Project.ID, d.Name, d.Description, moment(d.CreatedAt), h.user(d.CreatedBy), flag(d.Deleted), flag(d.Pinned),
			document(d.Filters), document(d.Variables),
		})
	}
	return rows
}

func (h *holder) cohorts() [][]any {
	var rows [][]any
	for _, c := range h.Snapshot.AllCohorts(h.Project.ID) {
		var version any // of the members; none before the first
		if c.Version > 0 {
			version = c.Version
		}
		rows = append(rows, []any{
			c.ID, h.Project.ID, c.Name, c.Description, flag(c.Deleted), document(c.Filters), document(c.Groups), document(c.Query),
			moment(c.CreatedAt), h.user(c.CreatedBy), moment(c.LastCalculation), version, c.Count, flag(c.Static),
		})
	}
	return rows
}

// alerts returns the alerts whose insight is not deleted. Nobody may read where they are sent.
func (h *holder) alerts() [][]any {
	var rows [][]any
	for _, a := range h.Snapshot.Alerts(h.Project.ID) {
		var weekend, quiet any
		if a.SkipWeekend != nil {
			weekend = flag(*a.SkipWeekend)
		}
		if shown := alerts.ShowQuietHours(a.QuietHours); shown != nil {
			quiet = encoded(shown)
		}
		rows = append(rows, []any{
			a.ID, h.Project.ID, a.Name, a.Insight, flag(a.Enabled), string(a.State), string(a.Interval), document(a.Condition), document(a.Config),
			moment(a.CreatedAt), moment(a.LastNotifiedAt), moment(a.LastCheckedAt), moment(a.NextCheckAt), moment(a.SnoozedUntil), weekend, quiet,
		})
	}
	return rows
}

func (h *holder) variables() [][]any {
	var rows [][]any
	for _, v := range h.Snapshot.Variables(h.Project.ID) {
		rows = append(rows, []any{
			v.ID, h.Project.ID, v.Name, string(v.Type), v.CodeName, encoded(v.Values), encoded(v.Default), moment(v.CreatedAt),
		})
	}
	return rows
}

func (h *holder) project() [][]any {
	p := h.Project
	return [][]any{{p.ID, p.ID, p.Name, p.Timezone, document(json.RawMessage(p.TestAccountFilters)), moment(p.CreatedAt), moment(p.LastChange())}}
}

// user returns the number of the user that a key stands for; nil if there is none.
func (h *holder) user(key string) any {
	if n := h.UserNumber(key); n != 0 {
		return n
	}
	return nil
}

// document returns a JSON document as text; nil if there is none. It does not copy it: many queries do not read it.
func document(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return []byte(raw)
}

func encoded(v any) any { return string(jsontext.Append(nil, v)) }

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339Nano)
}
