package clickhouse

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// sharedPaths says how to store the paths of a JSON column that have no column of their own. By default, ClickHouse writes several streams for each
// such path into merged parts. For 600 events with 2,000 names each, none twice, a merge then took 89 s, 3.3 GB of memory and 68 MB on disk; with
// buckets, 3.3 s, 0.5 GB and 11 MB. A query of one such path reads its bucket, one of 32, instead of the path alone.
var sharedPaths = physical.Setting{Name: "object_shared_data_serialization_version", Value: "'map_with_buckets'"}

// deduplication marks the tables that we created: no other product sets this value.
const deduplication = "non_replicated_deduplication_window = 10000"

// lastStatement makes ClickHouse keep the text of the last statement that changed rows, but of no earlier one. The text has the values by which the
// rows were found, such as distinct ids; that of the last one is the text of [Client.Erase]. By default, ClickHouse keeps the last hundred, however
// old.
var lastStatement = physical.Setting{Name: "finished_mutations_to_keep", Value: "1"}

// durable makes ClickHouse write the rows of an insert to the disk before it answers. Otherwise the kernel does so within about half a minute, and a
// power cut loses rows that capture no longer has. Merged parts need no such setting: the parts they replace stay for eight minutes.
var durable = []physical.Setting{{Name: "fsync_after_insert", Value: "1"}, {Name: "fsync_part_directory", Value: "1"}}

// tuning returns the settings that a table gets on a server that knows them.
func tuning(t *physical.Table) []physical.Setting {
	all := append(slices.Clip(t.Tuning), lastStatement)
	if !physical.IsLog(t.Name) {
		all = append(all, durable...)
	}
	if t.HasPaths() {
		all = append(all, sharedPaths)
	}
	return all
}

// tableSettings returns the settings of a new table.
func tableSettings(t *physical.Table, known map[string]bool) string {
	all := []string{deduplication}
	if t.Settings != "" {
		all = append(all, t.Settings)
	}
	return strings.Join(append(all, assignments(tuning(t), known)...), ", ")
}

// assignments writes the settings that a server knows as parts of a statement.
func assignments(settings []physical.Setting, known map[string]bool) (all []string) {
	for _, s := range settings {
		if known[s.Name] {
			all = append(all, s.Name+" = "+s.Value)
		}
	}
	return all
}

// knownSettings returns which settings of tables the server knows; none if it does not let us see them.
func (c *Client) knownSettings(ctx context.Context) (map[string]bool, error) {
	var names []string
	for i := range physical.Tables {
		for _, s := range tuning(&physical.Tables[i]) {
			names = append(names, s.Name)
		}
	}
	known := map[string]bool{}
	err := c.Collect(ctx, Query{SQL: "SELECT name FROM system.merge_tree_settings WHERE name IN (" + literals(names) + ")", system: true}, func(cells []Cell) error {
		known[cells[0].Text()] = true
		return nil
	})
	return known, unlessForbidden(err)
}

// unlessForbidden returns err, or nil if the server refused something that our user may not do and that we can do without.
func unlessForbidden(err error) error {
	if e, ok := errors.AsType[*Error](err); ok && forbidden[e.Code] {
		return nil
	}
	return err
}
