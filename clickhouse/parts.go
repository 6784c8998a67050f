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
	// Name is that in system.parts. A part that takes the place of others has another one.
	Name string
	// ID tells the part apart from any other that had the name, such as that of a table that was dropped since.
	ID string
	// Mutation is the number of the last statement that rewrote its rows, or that rewrote parts beside it before they were written; 0 for none. A merge
	// leaves it as it is.
	Mutation int64
	Rows     int64
}

// partsSQL reads the path of a part too, which tells tables apart that have a name one after the other.
const partsSQL = "SELECT table, name, hex(cityHash64(path, modification_time, rows, bytes_on_disk, marks)), toInt64(rows) FROM system.parts " +
	"WHERE database = currentDatabase() AND active AND rows > 0 AND table IN {tables:Array(String)} ORDER BY table, name"

// probeTime is how long a question about parts may take, in ClickHouse.
const probeTime = 10 * time.Second

// Parts lists the parts that tables have on a host, whichever projects their rows are of.
func (c *Client) Parts(ctx context.Context, on Host, tables []string) (parts []Part, err error) {
	q := Query{SQL: partsSQL, system: true, on: on.of, longest: probeTime, Params: []Param{ArrayParam("tables", "String", tables)}}
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

// marksSQL reads the last block of each partition, and the last statement that rewrote some. Without one, the data version of a part is its first block, which
// merges change.
const marksSQL = "SELECT p.table, toString(t.uuid), p.partition_id, toInt64(max(p.max_block_number)), " +
	"toInt64(maxIf(p.data_version, p.data_version != p.min_block_number)) FROM system.parts AS p INNER JOIN system.tables AS t ON t.database = p.database AND t.name = p.table " +
	"WHERE p.database = currentDatabase() AND p.active AND p.rows > 0 AND p.table IN {tables:Array(String)} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"

// Marks returns a digest of how much was written to tables and changed in them. It is another one after each write, and the same after merges. It holds for
// tables of one server.
func (c *Client) Marks(ctx context.Context, tables []string) (string, error) {
	sum := sha256.New()
	q := Query{SQL: marksSQL, system: true, longest: probeTime, Params: []Param{ArrayParam("tables", "String", tables)}}
	err := c.Collect(ctx, q, func(cells []Cell) error {
		for _, cell := range cells {
			fmt.Fprintf(sum, "%q ", cell.Text())
		}
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

// setMutations gives parts their mutations. Statements and blocks of rows are numbered together, in each partition or table: a statement rewrites the
// rows of the blocks with lower numbers.
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

// parsePartName reads a name. The id of a partition has no underscore, except that of a part with changes of another.
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

// Probeable lists our tables on a host whose parts say what a query finds in them there, by name. The text of a table is another one when its columns, or
// their defaults, are others. None is listed unless the host is one server, which keeps the rows itself, and shows us its parts.
func (c *Client) Probeable(ctx context.Context, on Host) (map[string]string, error) {
	if on.of == nil {
		return nil, nil
	}
	engines, definitions := map[string]string{}, map[string]string{}
	err := c.Collect(ctx, Query{
		SQL: "SELECT name, engine, hex(cityHash64(toString(uuid), create_table_query)) FROM system.tables " +
			"WHERE database = currentDatabase() AND name IN (" + literals(physical.WithoutLogs()) + ")", system: true, on: on.of, longest: probeTime,
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

// replicas counts the replicas of our tables that are replicated; of none if we may not see them.
func (c *Client) replicas(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	err := c.Collect(ctx, Query{
		SQL: "SELECT table, toInt64(total_replicas) FROM system.replicas WHERE database = currentDatabase() AND table IN (" + literals(physical.WithoutLogs()) + ")", system: true, longest: probeTime,
	}, func(cells []Cell) (err error) {
		counts[cells[0].Text()], err = cells[1].Int()
		return err
	})
	return counts, unlessForbidden(err)
}

// inParts reports whether the rows of tables are in their parts on one server. If a table has several replicas and they are not named as hosts, another one
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

// Digest says which rows of a project a part has, of events those of one day.
type Digest struct {
	Part string
	Day  int64 // since 1970, UTC; 0 for tables without events
	Rows uint64
	Sum  uint64 // of hashes of the rows' keys and versions, so that the digests of two parts add up to that of one with the rows of both
}

// digested are the columns of tables that tell rows apart, of which those are read that a table has. They are narrow.
var digested = map[string][]string{
	physical.Events:          {"uuid", "_timestamp"},
	"person":                 {"id", "version", "is_deleted"},
	"person_distinct_id2":    {"distinct_id", "version", "is_deleted"},
	physical.Overrides:       {"distinct_id", "version", "is_deleted"},
	"groups":                 {"group_type_index", "group_key", "_timestamp"},
	physical.ComputedMembers: {"cohort_id", "person_id", "version", "sign"},
	physical.StaticMembers:   {"cohort_id", "person_id", "id"},
}

// Digests reads what parts of a table on a host have of a project. Columns are those that the table has. A part that is no more, and one that has no row of the
// project, has no digest.
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
			" WHERE _part IN {parts:Array(String)} GROUP BY _part_index, day", // numbers, which are grouped by faster than names
		Project: project, on: on.of, Params: []Param{ArrayParam("parts", "String", parts)}, longest: probeTime, Yields: yields,
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
