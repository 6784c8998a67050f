package clickhouse

import (
	"context"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// DropVersion deletes one version of the computed members of a cohort, and reports whether it had any. Queries that began before may still read them.
func (c *Client) DropVersion(ctx context.Context, project, cohort int64, version uint64) (some bool, err error) {
	return c.dropMembers(ctx, project, "cohort_id = {cohort:Int64} AND version = {version:UInt64}", cohort, version)
}

// DropOtherVersions deletes all versions of the computed members of a cohort but one, and reports whether there were others.
func (c *Client) DropOtherVersions(ctx context.Context, project, cohort int64, version uint64) (some bool, err error) {
	return c.dropMembers(ctx, project, "cohort_id = {cohort:Int64} AND version != {version:UInt64}", cohort, version)
}

// dropMembers deletes the members that meet a condition. If some is false, no deletion was sent. Asking first costs less than a deletion that finds
// nothing, which looks at every part of the table.
func (c *Client) dropMembers(ctx context.Context, project int64, condition string, cohort int64, version uint64) (some bool, err error) {
	params := []Param{number("cohort", cohort), versionNumber("version", version)}
	q := Query{SQL: "SELECT 1 FROM " + physical.ComputedMembers + " WHERE " + condition + " LIMIT 1", Project: project, Params: params}
	err = c.Collect(ctx, q, func([]Cell) error {
		some = true
		return nil
	})
	if err != nil || !some {
		return false, err
	}
	return true, c.Delete(ctx, Deletion{Table: physical.ComputedMembers, Project: project, Where: condition, Params: params})
}

// CompareVersions returns how many members a version of a cohort has, and whether another version has the same ones.
func (c *Client) CompareVersions(ctx context.Context, project, cohort int64, version, other uint64) (count int64, same bool, err error) {
	q := Query{SQL: compareSQL, Project: project, inOrder: true, Params: []Param{
		number("cohort", cohort), versionNumber("version", version), versionNumber("other", other),
	}}
	different := int64(0)
	err = c.Collect(ctx, q, func(cells []Cell) error {
		if count, err = cells[0].Int(); err != nil {
			return err
		}
		different, err = cells[1].Int()
		return err
	})
	return count, different == 0, err
}

const compareSQL = "SELECT countIf(this > 0), countIf((this > 0) != (that > 0)) FROM (" +
	"SELECT sumIf(sign, version = {version:UInt64}) AS this, sumIf(sign, version = {other:UInt64}) AS that FROM " + physical.ComputedMembers +
	" WHERE cohort_id = {cohort:Int64} AND version IN ({version:UInt64}, {other:UInt64}) GROUP BY person_id)"

// LostMembers returns how many members of a version became other persons, or were deleted, after a time without the version reflecting that.
func (c *Client) LostMembers(ctx context.Context, project, cohort int64, version uint64, since time.Time) (count int64, err error) {
	q := Query{SQL: lostSQL, Project: project, Params: []Param{number("cohort", cohort), versionNumber("version", version), number("since", since.Unix())}}
	err = c.Collect(ctx, q, func(cells []Cell) error {
		count, err = cells[0].Int()
		return err
	})
	return count, err
}

const lostSQL = "SELECT count() FROM (SELECT id FROM person WHERE is_deleted = 1 AND _timestamp >= fromUnixTimestamp({since:Int64}) AND id IN (" +
	"SELECT person_id FROM " + physical.ComputedMembers + " WHERE cohort_id = {cohort:Int64} AND version = {version:UInt64} " +
	"GROUP BY person_id HAVING sum(sign) > 0) GROUP BY id)"

// StoredMembers says that there are rows of members of a cohort.
type StoredMembers struct {
	Project, Cohort int64
	Version         uint64 // of the computed members; 0 for people who were put into a static cohort
}

// StoredMembers lists the cohorts of all projects whose members are stored, with each version.
func (c *Client) StoredMembers(ctx context.Context) (all []StoredMembers, err error) {
	err = c.Collect(ctx, Query{SQL: storedSQL, system: true}, func(cells []Cell) error {
		var m StoredMembers
		if m.Project, err = cells[0].Int(); err != nil {
			return err
		}
		if m.Cohort, err = cells[1].Int(); err != nil {
			return err
		}
		m.Version, err = strconv.ParseUint(cells[2].Text(), 10, 64)
		all = append(all, m)
		return err
	})
	return all, err
}

const storedSQL = "SELECT toInt64(" + physical.Project + "), toInt64(cohort_id), toUInt64(version) FROM " + physical.ComputedMembers +
	" GROUP BY ALL UNION ALL SELECT DISTINCT toInt64(" + physical.Project + "), toInt64(cohort_id), toUInt64(0) FROM " + physical.StaticMembers

func number(name string, n int64) Param {
	return Param{Name: name, Type: "Int64", Value: strconv.FormatInt(n, 10)}
}

func versionNumber(name string, n uint64) Param {
	return Param{Name: name, Type: "UInt64", Value: strconv.FormatUint(n, 10)}
}
