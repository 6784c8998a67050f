package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Part is a part of a table: rows that never change under its name.
type Part struct {
	Table string
	// Name is the name in system.parts. A part that replaces others has a new name.
	Name string
	// ID distinguishes the part from any other with the same name, such as one in a table that was dropped since.
	ID string
	// Mutation is the number of the last statement that rewrote its rows, or rewrote other parts of the partition before its rows were written; 0 for
	// none. Merges keep it.
	Mutation int64
	Rows     int64
}

// partsSQL also reads the path of a part, which distinguishes a table from an earlier one of the same name.
const partsSQL = "SELECT table, name, hex(cityHash64(path, modification_time, rows, bytes_on_disk, marks)), toInt64(rows) FROM system.parts " +
	"WHERE database = currentDatabase() AND active AND rows > 0 AND table IN {tables:Array(String)} ORDER BY table, name"

// probeTimeLimit is the time limit of a query about parts, in ClickHouse.
const probeTimeLimit = 10 * time.Second

// Parts lists the parts of tables on a host, of all projects.
func (c *Client) Parts(ctx context.Context, on Host, tables []string) (parts []Part, err error) {
	q := Query{SQL: partsSQL, system: true, on: on.of, longest: probeTimeLimit, Params: []Param{ArrayParam("tables", "String", tables)}}
	err = c.Collect(ctx, q, func(cells []Cell) error {
		p := Part{Table: cells[0].Text(), Name: cells[1].Text(), ID: cells[2].Text()}
		if p.Rows, err = cells[3].Int(); err != nil {
			return err
		}
		parts = append(parts, p)
		return nil
	})
	setMutations(parts)
	return parts, err
}

// marksSQL reads the last block of each partition, and the last statement that rewrote one. The data version of a part that none rewrote is its first
// block, which merges change, so it is left out.
const marksSQL = "SELECT p.table, toString(t.uuid), p.partition_id, toInt64(max(p.max_block_number)), " +
	"toInt64(maxIf(p.data_version, p.data_version != p.min_block_number)) FROM system.parts AS p INNER JOIN system.tables AS t ON t.database = p.database AND t.name = p.table " +
	"WHERE p.database = currentDatabase() AND p.active AND p.rows > 0 AND p.table IN {tables:Array(String)} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"

// Marks returns a digest of all writes to tables and changes in them. Each write changes it; merges do not. It is only valid for tables of one
// server.
func (c *Client) Marks(ctx context.Context, tables []string) (string, error) {
	sum := sha256.New()
	q := Query{SQL: marksSQL, system: true, longest: probeTimeLimit, Params: []Param{ArrayParam("tables", "String", tables)}}
	err := c.Collect(ctx, q, func(cells []Cell) error {
		for _, cell := range cells {
			fmt.Fprintf(sum, "%q ", cell.Text())
		}
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// setMutations sets the Mutation of each part. Statements and blocks of rows share one sequence of numbers, in each partition or table: a statement
// rewrites the rows of the blocks with lower numbers.
func setMutations(parts []Part) {
	type partition struct{ table, id string }
	done := map[partition][]int64{}
	for n := range parts {
		if name := parsePartName(parts[n].Name); name.mutation > 0 {
			in := partition{parts[n].Table, name.partition}
			done[in] = append(done[in], name.mutation)
		}
	}
	for _, numbers := range done {
		slices.Sort(numbers)
	}
	for n := range parts {
		name := parsePartName(parts[n].Name)
		numbers := done[partition{parts[n].Table, name.partition}]
		if later, _ := slices.BinarySearch(numbers, max(name.block, name.mutation)+1); later > 0 {
			parts[n].Mutation = numbers[later-1]
		}
	}
}

// partName is the name of a part: partition, first and last block, level, and the number of its last mutation if there is one.
type partName struct {
	partition       string
	block, mutation int64
}

// parsePartName parses the name of a part. The id of a partition has no underscore, except for a part that holds changes to another.
func parsePartName(name string) (out partName) {
	const without, with = 4, 5
	fields := strings.Split(name, "_")
	first := len(fields) - with + 1
	switch {
	case len(fields) < without:
		return partName{partition: name}
	case len(fields) == without:
		first = 1
	default:
		out.mutation, _ = strconv.ParseInt(fields[len(fields)-1], 10, 64) // 0 if it is not a number
	}
	out.partition = strings.Join(fields[:first], "_")
	out.block, _ = strconv.ParseInt(fields[first], 10, 64)
	return out
}

// Probeable returns our tables on a host whose parts determine what a query there finds in them. For each name it has a digest of the table's
// definition, which changes with its columns and their defaults. It is empty unless the host is a single server that stores the rows itself and shows
// us its parts.
func (c *Client) Probeable(ctx context.Context, on Host) (map[string]string, error) {
	if on.of == nil {
		return nil, nil
	}
	engines, definitions := map[string]string{}, map[string]string{}
	err := c.Collect(ctx, Query{
		SQL: "SELECT name, engine, hex(cityHash64(toString(uuid), create_table_query)) FROM system.tables " +
			"WHERE database = currentDatabase() AND name IN (" + literals(physical.WithoutLogs()) + ")", system: true, on: on.of, longest: probeTimeLimit,
	}, func(cells []Cell) error {
		name := cells[0].Text()
		engines[name], definitions[name] = cells[1].Text(), cells[2].Text()
		return nil
	})
	if err = unlessForbidden(err); err != nil || len(engines) == 0 {
		return nil, err
	}
	var replicas map[string]int64
	if len(c.hosts) == 1 {
		replicas, err = c.replicas(ctx)
	}
	if err != nil || !inParts(engines, replicas, len(c.hosts) > 1) {
		return nil, err
	}
	if _, err = c.Parts(ctx, on, []string{physical.Events}); err != nil {
		return nil, unlessForbidden(err)
	}
	return definitions, nil
}

// replicas returns the number of replicas of each of our replicated tables; empty if we may not see them.
func (c *Client) replicas(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	err := c.Collect(ctx, Query{
		SQL:    "SELECT table, toInt64(total_replicas) FROM system.replicas WHERE database = currentDatabase() AND table IN (" + literals(physical.WithoutLogs()) + ")",
		system: true, longest: probeTimeLimit,
	}, func(cells []Cell) (err error) {
		counts[cells[0].Text()], err = cells[1].Int()
		return err
	})
	return counts, unlessForbidden(err)
}

// inParts reports whether one server has all rows of tables in its parts. If a table has several replicas that are not named as hosts, another one
// may answer other queries, as behind a load balancer.
func inParts(engines map[string]string, replicas map[string]int64, named bool) bool {
	for table, engine := range engines {
		switch {
		case !strings.HasSuffix(engine, "MergeTree"), strings.HasPrefix(engine, "Shared"),
			strings.HasPrefix(engine, "Replicated") && !named && replicas[table] != 1:
			return false
		}
	}
	return true
}

// Digest summarizes the rows of a project in a part; for events, those of one day.
type Digest struct {
	Part string
	Day  int64 // since 1970, UTC; 0 for tables without events
	Rows uint64
	Sum  uint64 // of hashes of the rows' keys and versions, so that the sums of two parts add up to the sum of a part with the rows of both
}

// digested lists the narrow columns of each table that distinguish its rows. Those that a table lacks are not read.
var digested = map[string][]string{
	physical.Events:          {"uuid", "_timestamp"},
	"person":                 {"id", "version", "is_deleted"},
	"person_distinct_id2":    {"distinct_id", "version", "is_deleted"},
	physical.Overrides:       {"distinct_id", "version", "is_deleted"},
	"groups":                 {"group_type_index", "group_key", "_timestamp"},
	physical.ComputedMembers: {"cohort_id", "person_id", "version", "sign"},
	physical.StaticMembers:   {"cohort_id", "person_id", "id"},
}

// Digests returns the digests of a project's rows in parts of a table on a host. columns are the columns that the table has. There is no digest for a
// part that no longer exists or has no row of the project.
func (c *Client) Digests(
	ctx context.Context, on Host, project int64, table string, columns, parts []string, yields bool,
) (found []Digest, err error) {
	var hashed []string
	for _, name := range digested[table] {
		if slices.Contains(columns, name) {
			hashed = append(hashed, identifier(name))
		}
	}
	day := "toInt64(0)"
	if table == physical.Events {
		day = "toInt64(toDate32(timestamp, 'UTC'))"
	}
	q := Query{
		SQL: "SELECT any(_part), " + day + " AS day, toString(count()), toString(sum(cityHash64(" + strings.Join(hashed, ", ") + "))) FROM " + identifier(table) +
			" WHERE _part IN {parts:Array(String)} GROUP BY _part_index, day", // grouping by a number is faster than by a name
		Project: project, on: on.of, Params: []Param{ArrayParam("parts", "String", parts)}, longest: probeTimeLimit, Yields: yields,
	}
	err = c.Collect(ctx, q, func(cells []Cell) error {
		d := Digest{Part: cells[0].Text()}
		if d.Day, err = cells[1].Int(); err != nil {
			return err
		}
		if d.Rows, err = strconv.ParseUint(cells[2].Text(), 10, 64); err != nil {
			return err
		}
		d.Sum, err = strconv.ParseUint(cells[3].Text(), 10, 64)
		found = append(found, d)
		return err
	})
	return found, err
}
