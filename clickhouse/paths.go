package clickhouse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Day is a day on which a project has events.
type Day struct {
	Date   string // as ClickHouse prints it: 2024-01-31
	Events int64
}

// EventDays lists the days on which a project has events, in order. It reads little more of the table than the column of times.
func (c *Client) EventDays(ctx context.Context, project int64, yields bool) (days []Day, err error) {
	q := Query{
		SQL:     "SELECT toString(toDate(timestamp) AS day), toInt64(count()) FROM events WHERE team_id = {project:Int64} GROUP BY day ORDER BY day",
		Project: project, Params: []Param{projectParam(project)}, longest: pathsTimeLimit, Yields: yields,
	}
	err = c.Collect(ctx, q, func(cells []Cell) error {
		d := Day{Date: cells[0].Text()}
		if d.Events, err = cells[1].Int(); err != nil {
			return err
		}
		days = append(days, d)
		return nil
	})
	return days, err
}

// JSONColumn selects the values to look at: those of a column of ClickHouse's JSON type in the rows of a project.
type JSONColumn struct {
	Table, Name string
	From, To    string // the first and the last day, for events; empty for other tables
	Group       int    // the group type, for the table groups; else 0
}

// Path is a key of the objects in a column.
type Path struct {
	Key   string // as ClickHouse stores it: a dot is %2E
	Kinds physical.Kinds
}

const (
	// pathsTimeLimit is the time limit of a query about the values of a column, in ClickHouse.
	pathsTimeLimit = time.Minute
	// maxPaths is how many keys a column may have.
	maxPaths = 50_000
)

// errManyPaths is returned for a column with too many keys.
var errManyPaths = fmt.Errorf("a column of JSON has more than %d keys", maxPaths)

// Paths returns the keys of the objects in a column, and the kinds of their values. ClickHouse stores the types of each path's values in each block
// of rows, so it reads the column, but looks at single values of rare paths only.
func (c *Client) Paths(ctx context.Context, project int64, in JSONColumn, yields bool) ([]Path, error) {
	where, params := "team_id = {project:Int64}", []Param{projectParam(project)}
	switch in.Table {
	case physical.Events:
		where += " AND toDate(timestamp) BETWEEN toDate({from:String}) AND toDate({to:String})"
		params = append(params, Param{"from", "String", in.From}, Param{"to", "String", in.To})
	case "groups":
		where += " AND group_type_index = {group:UInt8}"
		params = append(params, Param{"group", "UInt8", strconv.Itoa(in.Group)})
	}
	q := Query{
		SQL: "SELECT splitByChar('.', one.1)[1] AS key, max(position(one.1, '.') > 0), groupUniqArrayArray(if(position(one.1, '.') > 0, [], one.2)) FROM " +
			"(SELECT arrayJoin(CAST(distinctJSONPathsAndTypes(" + identifier(in.Name) + "), 'Array(Tuple(String, Array(String)))')) AS one FROM " +
			identifier(in.Table) + " WHERE " + where + ") GROUP BY key LIMIT " + strconv.Itoa(maxPaths+1),
		Project: project, Params: params, longest: pathsTimeLimit, Unbounded: true, Yields: yields,
	}
	var paths []Path
	err := c.Collect(ctx, q, func(cells []Cell) error {
		p, err := readPath(cells)
		if paths = append(paths, p); len(paths) > maxPaths {
			return errors.Join(err, errManyPaths)
		}
		return err
	})
	return paths, err
}

// readPath reads a key, whether there are paths below it, and the types of its values.
func readPath(cells []Cell) (Path, error) {
	p := Path{Key: cells[0].Text()}
	if below, err := cells[1].Int(); err != nil {
		return p, err
	} else if below != 0 {
		p.Kinds = physical.Objects
	}
	var types []string
	if err := json.Unmarshal(cells[2], &types); err != nil {
		return p, fmt.Errorf("reading the types of a path: %w", err)
	}
	for _, typ := range types {
		p.Kinds |= physical.KindsOfType(typ)
	}
	return p, nil
}

func projectParam(project int64) Param {
	return Param{"project", "Int64", strconv.FormatInt(project, 10)}
}
