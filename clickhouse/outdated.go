package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Kept is the time from which on a project keeps its events.
type Kept struct {
	Project int64
	From    time.Time
}

// older returns the condition that events are older than their projects keep them. It consists only of numbers and our own names.
func older(kept []Kept) string {
	var b strings.Builder
	for n, k := range kept {
		if n > 0 {
			b.WriteString(" OR ")
		}
		fmt.Fprintf(&b, "(%s = %d AND %s)", physical.Project, k.Project, k.older())
	}
	return b.String()
}

func (k Kept) older() string {
	return "timestamp < fromUnixTimestamp64Micro(" + strconv.FormatInt(k.From.UnixMicro(), 10) + ")"
}

// Outdated counts the events of a project in a partition that are older than the project keeps them.
type Outdated struct {
	Project   int64
	Partition string // its id, as in system.parts
	Events    int64
}

// DropOutdated drops the parts of the events table in which all events are older than their projects keep them. It returns how many events it
// dropped, and how many such events other parts have left. Events written in the meantime are in parts of their own, and stay.
func (c *Client) DropOutdated(ctx context.Context, kept []Kept) (dropped int64, left []Outdated, err error) {
	if len(kept) == 0 {
		return 0, nil, nil
	}
	on := c.order(false)[0] // names of parts are valid on one host only
	rows, err := c.rowsOfParts(ctx, on, physical.Events)
	if err != nil {
		return 0, nil, err
	}
	found, err := c.outdatedByPart(ctx, on, kept)
	if err != nil {
		return 0, nil, err
	}
	places := map[Outdated]int{}
	for _, part := range slices.Sorted(maps.Keys(found)) {
		var old int64
		all := found[part]
		for _, o := range all {
			old += o.Events
		}
		if rows[part] == old {
			if err := c.dropPart(ctx, physical.Events, part); err != nil {
				return dropped, nil, err
			}
			dropped += old
			continue
		}
		for _, o := range all {
			key := Outdated{Project: o.Project, Partition: o.Partition}
			at, known := places[key]
			if !known {
				at = len(left)
				places[key], left = at, append(left, key)
			}
			left[at].Events += o.Events
		}
	}
	return dropped, left, nil
}

// rowsOfParts returns the number of rows of each part of a table, including hidden ones.
func (c *Client) rowsOfParts(ctx context.Context, on *host, table string) (map[string]int64, error) {
	rows := map[string]int64{}
	err := c.Collect(ctx, Query{
		SQL: "SELECT name, toInt64(rows) FROM system.parts " + ofTable + " AND active", system: true, Params: []Param{{Name: "table", Type: "String", Value: table}}, on: on,
	}, func(cells []Cell) error {
		n, err := cells[1].Int()
		rows[cells[0].Text()] = n
		return err
	})
	return rows, err
}

// outdatedByPart counts the events that are older than their projects keep them, by part.
func (c *Client) outdatedByPart(ctx context.Context, on *host, kept []Kept) (map[string][]Outdated, error) {
	projects := make([]int64, len(kept))
	for n, k := range kept {
		projects[n] = k.Project
	}
	found := map[string][]Outdated{}
	err := c.CollectOf(ctx, projects, Query{
		SQL: "SELECT _part, _partition_id, " + physical.Project + ", toInt64(count()) FROM events WHERE " + older(kept) + " GROUP BY 1, 2, 3 ORDER BY 1, 3", longest: MaxFillTime, on: on,
	}, func(cells []Cell) error {
		project, err := cells[2].Int()
		if err != nil {
			return err
		}
		events, err := cells[3].Int()
		part := cells[0].Text()
		found[part] = append(found[part], Outdated{project, cells[1].Text(), events})
		return err
	})
	return found, err
}

func (c *Client) dropPart(ctx context.Context, table, part string) error {
	return c.mutate(ctx, table, nil, "ALTER TABLE "+identifier(table)+" DROP PART "+literal(part), "dropping a part of the table "+table)
}

// DeleteOutdated hides the events of a project in a partition that are older than the project keeps them: see [Client.Delete].
func (c *Client) DeleteOutdated(ctx context.Context, k Kept, partition string) error {
	return c.Delete(ctx, Deletion{Table: physical.Events, Project: k.Project, Where: k.older(), Partition: partition})
}
