package warehouse

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/internal/pause"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// DeletePeople is ingest.Ingester.Delete. It takes turns with other servers. Options.Enter waits for a place if one is needed. The caller must not hold
// a place.
func (w *Warehouse) DeletePeople(
	ctx context.Context, options ingest.Options, who ingest.Named, gone bool, found, hide func(context.Context, []ingest.Gone) error,
) error {
	options.Turn = w.turnOf(options.Project)
	return w.ingest.Delete(ctx, options, who, gone, found, hide)
}

// CanDelete reports why rows of the tables can't be deleted; empty if they can.
func (w *Warehouse) CanDelete(ctx context.Context) (reason string, err error) {
	return w.client.CanDelete(ctx)
}

// namesAtOnce is how many distinct ids one statement contains.
const namesAtOnce = 5000

// arrived is a condition on events: they arrived by a given time.
const arrived = " AND created_at <= {until:DateTime64(6, 'UTC')}"

func untilParam(until time.Time) clickhouse.Param {
	return clickhouse.Param{Name: "until", Type: "DateTime64(6, 'UTC')", Value: until.UTC().Format("2006-01-02 15:04:05.000000")}
}

// CountEvents returns how many events that arrived by a given time each distinct id has.
func (w *Warehouse) CountEvents(ctx context.Context, project int64, names []string, until time.Time) (map[string]int64, error) {
	counts := map[string]int64{}
	for names := range slices.Chunk(names, namesAtOnce) {
		err := w.client.Collect(ctx, clickhouse.Query{
			SQL:     "SELECT distinct_id, count() FROM " + physical.Events + " WHERE distinct_id IN {names:Array(String)}" + arrived + " GROUP BY distinct_id",
			Project: project, Params: []clickhouse.Param{clickhouse.ArrayParam("names", "String", names), untilParam(until)}, Unbounded: true,
		}, func(cells []clickhouse.Cell) error {
			n, err := cells[1].Int()
			counts[cells[0].Text()] = n
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// DeleteEvents hides the events of persons that arrived by a given time: those of their distinct ids, and those of distinct ids that used to be
// theirs and now belong to nobody.
func (w *Warehouse) DeleteEvents(ctx context.Context, project int64, persons, names []string, until time.Time) error {
	// A retry must give the same statements: see clickhouse.Client.Delete.
	persons, names = sorted(persons), sorted(names)
	for names := range slices.Chunk(names, namesAtOnce) {
		if err := w.delete(ctx, project, physical.Events, "distinct_id IN {names:Array(String)}"+arrived,
			clickhouse.ArrayParam("names", "String", names), untilParam(until)); err != nil {
			return err
		}
	}
	former, err := w.formerNames(ctx, project, persons)
	if err != nil {
		return err
	}
	for names := range slices.Chunk(sorted(former), namesAtOnce) {
		if err := w.delete(ctx, project, physical.Events, "distinct_id IN {names:Array(String)} AND person_id IN {persons:Array(UUID)}"+arrived,
			clickhouse.ArrayParam("names", "String", names), clickhouse.ArrayParam("persons", "UUID", persons), untilParam(until)); err != nil {
			return err
		}
	}
	return nil
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// formerNames returns the distinct ids of events that are recorded with one of the persons and that no other person has taken over.
func (w *Warehouse) formerNames(ctx context.Context, project int64, persons []string) (names []string, err error) {
	const sql = "SELECT DISTINCT distinct_id FROM " + physical.Events + " WHERE person_id IN {persons:Array(UUID)} AND distinct_id NOT IN (" +
		"SELECT distinct_id FROM person_distinct_id_overrides GROUP BY distinct_id " +
		"HAVING argMax(is_deleted, version) = 0 AND argMax(person_id, version) NOT IN {persons:Array(UUID)})"
	err = w.client.Collect(ctx, clickhouse.Query{
		SQL: sql, Project: project, Params: []clickhouse.Param{clickhouse.ArrayParam("persons", "UUID", persons)}, Unbounded: true,
	}, func(cells []clickhouse.Cell) error {
		names = append(names, cells[0].Text())
		return nil
	})
	return names, err
}

// FormerPersons returns the persons that one of the distinct ids has belonged to and that are deleted or became others, with what is earlier than the row
// that marks each as deleted. One that a distinct id did not make is found as long as ClickHouse has a row that maps the distinct id to it.
func (w *Warehouse) FormerPersons(ctx context.Context, project int64, names []string) (map[string]Earlier, error) {
	const sql = "SELECT id, max(version) FROM " + physical.Persons + " WHERE team_id = {project:Int64} AND id IN (" +
		"SELECT arrayJoin({made:Array(UUID)}) UNION ALL " +
		"SELECT person_id FROM person_distinct_id2 WHERE team_id = {project:Int64} AND distinct_id IN {names:Array(String)}" +
		") GROUP BY id HAVING argMax(is_deleted, version) = 1"
	former := map[string]Earlier{}
	for names := range slices.Chunk(sorted(names), namesAtOnce) {
		made := make([]string, len(names))
		for n, name := range names {
			made[n] = ingest.PersonUUID(project, name).String()
		}
		err := w.client.Collect(ctx, clickhouse.Query{SQL: sql, Project: project, Unbounded: true, Params: []clickhouse.Param{
			{Name: "project", Type: "Int64", Value: strconv.FormatInt(project, 10)},
			clickhouse.ArrayParam("made", "UUID", made), clickhouse.ArrayParam("names", "String", names),
		}}, func(cells []clickhouse.Cell) error {
			version, err := cells[1].Int()
			former[cells[0].Text()] = Earlier{Version: uint64(version)} //nolint:gosec // versions begin at 0
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return former, nil
}

// DeleteMembers removes persons from all cohorts, and returns the ids of the cohorts that they were in.
func (w *Warehouse) DeleteMembers(ctx context.Context, project int64, persons []string) (cohorts []int64, err error) {
	for persons := range slices.Chunk(sorted(persons), namesAtOnce) {
		of, err := w.deleteMembers(ctx, project, persons)
		if err != nil {
			return nil, err
		}
		cohorts = append(cohorts, of...)
	}
	slices.Sort(cohorts)
	return slices.Compact(cohorts), nil
}

func (w *Warehouse) deleteMembers(ctx context.Context, project int64, persons []string) (cohorts []int64, err error) {
	param := clickhouse.ArrayParam("persons", "UUID", persons)
	for _, table := range []string{physical.ComputedMembers, physical.StaticMembers} {
		before := len(cohorts)
		err := w.client.Collect(ctx, clickhouse.Query{
			SQL: "SELECT DISTINCT cohort_id FROM " + table + " WHERE person_id IN {persons:Array(UUID)}", Project: project, Params: []clickhouse.Param{param},
		}, func(cells []clickhouse.Cell) error {
			id, err := cells[0].Int()
			cohorts = append(cohorts, id)
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(cohorts) == before {
			continue
		}
		if err := w.delete(ctx, project, table, "person_id IN {persons:Array(UUID)}", param); err != nil {
			return nil, err
		}
	}
	return cohorts, nil
}

// Earlier says which rows of a person, or of a distinct id, to delete: those with a lower version that were written by a given time; zero for any time.
type Earlier struct {
	Version uint64
	Written time.Time
}

// DeletePersonRows hides earlier rows of persons, by their UUIDs, and of distinct ids.
func (w *Warehouse) DeletePersonRows(ctx context.Context, project int64, persons, names map[string]Earlier) error {
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(persons)), namesAtOnce) {
		err := w.delete(ctx, project, physical.Persons, "id IN {ids:Array(UUID)}"+isEarlier("toString(id)"),
			append(earlier(persons, ids), clickhouse.ArrayParam("ids", "UUID", ids))...)
		if err != nil {
			return err
		}
	}
	for texts := range slices.Chunk(slices.Sorted(maps.Keys(names)), namesAtOnce) {
		for _, table := range []string{"person_distinct_id2", physical.Overrides} {
			if err := w.delete(ctx, project, table, "distinct_id IN {keys:Array(String)}"+isEarlier("distinct_id"), earlier(names, texts)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// isEarlier is a condition on rows with a key, for the parameters that earlier returns.
func isEarlier(key string) string {
	return " AND version < transform(" + key + ", {keys:Array(String)}, {versions:Array(UInt64)}, toUInt64(0))" +
		" AND toUnixTimestamp(_timestamp) <= transform(" + key + ", {keys:Array(String)}, {written:Array(UInt32)}, toUInt32(0))"
}

func earlier(all map[string]Earlier, keys []string) []clickhouse.Param {
	versions, written := make([]string, len(keys)), make([]string, len(keys))
	for n, key := range keys {
		at := int64(math.MaxUint32)
		if !all[key].Written.IsZero() {
			at = all[key].Written.Unix()
		}
		versions[n], written[n] = strconv.FormatUint(all[key].Version, 10), strconv.FormatInt(at, 10)
	}
	return []clickhouse.Param{clickhouse.ArrayParam("keys", "String", keys), numbers("versions", "UInt64", versions), numbers("written", "UInt32", written)}
}

func numbers(name, typ string, list []string) clickhouse.Param {
	return clickhouse.Param{Name: name, Type: "Array(" + typ + ")", Value: "[" + strings.Join(list, ", ") + "]"}
}

func (w *Warehouse) delete(ctx context.Context, project int64, table, where string, params ...clickhouse.Param) error {
	return w.changing(project, table, mutation, func() error {
		return w.client.Delete(ctx, clickhouse.Deletion{Table: table, Project: project, Where: where, Params: params})
	})
}

// Erasable are the tables that hold data about people.
var Erasable = []string{
	physical.Events, physical.Persons, "person_distinct_id2", physical.Overrides, physical.ComputedMembers, physical.StaticMembers,
}

// erasurePollInterval is how often to check whether ClickHouse has removed the erased rows from the disk.
const erasurePollInterval = 2 * time.Second

// checksPerErasure is how many checks to make before a table is erased once more: ClickHouse forgets finished statements within a minute.
const checksPerErasure = 30

// EraseTables erases the deleted rows of tables, and waits until none of them is on the disk.
func (w *Warehouse) EraseTables(ctx context.Context, tables []string) error {
	return eraseTables(ctx, w.client, tables, erasurePollInterval)
}

// eraser is a clickhouse.Client.
type eraser interface {
	Erase(ctx context.Context, table string) (time.Time, error)
	Unerased(ctx context.Context, table string, before time.Time) (clickhouse.Remains, error)
}

func eraseTables(ctx context.Context, in eraser, tables []string, every time.Duration) error {
	began := map[string]time.Time{}
	for _, table := range tables {
		at, err := in.Erase(ctx, table)
		if err != nil {
			return err
		}
		began[table] = at
	}
	for _, table := range tables {
		if err := awaitErased(ctx, in, table, began[table], every); err != nil {
			return err
		}
	}
	return nil
}

// awaitErased waits until no rows of a table that were deleted before a time are on the disk. Rows deleted during the erasure, and the statements
// that deleted them, may stay until the table is erased once more.
func awaitErased(ctx context.Context, in eraser, table string, before time.Time, every time.Duration) error {
	for look := 1; ; look++ {
		left, err := in.Unerased(ctx, table, before)
		if err != nil || left.None() {
			return err
		}
		if look%checksPerErasure == 0 && (left.Masked > 0 || left.Statements > 0) {
			if _, err := in.Erase(ctx, table); err != nil {
				return err
			}
		}
		if err := pause.For(ctx, every); err != nil {
			return err
		}
	}
}

// EraseMaterialized drops a project's tables of materialized endpoints that were filled before a time, and waits until they are off the disk. It
// reports whether none is left.
func (w *Warehouse) EraseMaterialized(ctx context.Context, project int64, before time.Time) (none bool, err error) {
	return w.client.EraseMaterialized(ctx, project, before)
}
