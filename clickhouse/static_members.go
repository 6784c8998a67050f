package clickhouse

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Naming says how the people to put into a cohort are identified.
type Naming struct {
	typ, sql string
	property string // empty for an id
}

// The ids that identify people. Persons that were deleted, or became others, are not found.
var (
	ByPersonID = Naming{typ: "UUID", sql: "SELECT id AS person_id FROM person WHERE team_id = {project:Int64} AND id IN {people:Array(UUID)} " +
		"GROUP BY id HAVING argMax(is_deleted, version) = 0"}
	ByDistinctID = Naming{typ: "String", sql: "SELECT DISTINCT argMax(person_id, version) AS person_id FROM person_distinct_id2 " +
		"WHERE team_id = {project:Int64} AND distinct_id IN {people:Array(String)} GROUP BY distinct_id HAVING argMax(is_deleted, version) = 0"}
)

// ByProperty identifies people by a text in a person property. Persons that were deleted are not found.
func ByProperty(name string) Naming {
	const sql = "SELECT id AS person_id FROM person WHERE team_id = {project:Int64} AND id IN (SELECT id FROM person " +
		"WHERE team_id = {project:Int64} AND JSONExtractString(properties, {property:String}) IN {people:Array(String)}) GROUP BY id " +
		"HAVING argMax(is_deleted, version) = 0 AND JSONExtractString(argMax(properties, version), {property:String}) IN {people:Array(String)}"
	return Naming{"String", sql, name}
}

// AddMembers adds people to a static cohort who are not in it yet. Names that match nobody are ignored.
func (c *Client) AddMembers(ctx context.Context, project, cohort int64, by Naming, people []string) error {
	const others = " WHERE person_id NOT IN (SELECT person_id FROM " + physical.StaticMembers + " WHERE team_id = {project:Int64} AND cohort_id = {cohort:Int64})"
	q := peopleQuery("SELECT person_id AS id, person_id FROM ("+by.sql+")"+others, project, by, people)
	q.Params = append(q.Params, Param{Name: "cohort", Type: "Int64", Value: strconv.FormatInt(cohort, 10)})
	return c.Fill(ctx, StaticFill(q, cohort))
}

// StaticFill returns the Fill that writes the rows of a query into a static cohort. The query's columns are the id of a row and the id of a person.
func StaticFill(q Query, cohort int64) Fill {
	return Fill{
		Query: q, Table: physical.StaticMembers, Columns: []string{"id", "person_id"},
		Fixed: []FixedColumn{{"cohort_id", uint64(cohort)}}, //nolint:gosec // it is positive
	}
}

// CountPeople returns how many people of a project match the names.
func (c *Client) CountPeople(ctx context.Context, project int64, by Naming, people []string) (int64, error) {
	return c.count(ctx, peopleQuery("SELECT uniqExact(person_id) FROM ("+by.sql+")", project, by, people))
}

func peopleQuery(sql string, project int64, by Naming, people []string) Query {
	q := Query{SQL: sql, Project: project, Params: []Param{
		{Name: "project", Type: "Int64", Value: strconv.FormatInt(project, 10)}, ArrayParam("people", by.typ, people),
	}}
	if by.property != "" {
		q.Params = append(q.Params, Param{Name: "property", Type: "String", Value: by.property})
	}
	return q
}

// CountMembers returns how many people are in a static cohort.
func (c *Client) CountMembers(ctx context.Context, project, cohort int64) (int64, error) {
	const sql = "SELECT count() FROM (SELECT id FROM person WHERE team_id = {project:Int64} AND id IN (SELECT person_id FROM " + physical.StaticMembers +
		" WHERE team_id = {project:Int64} AND cohort_id = {cohort:Int64}) GROUP BY id HAVING argMax(is_deleted, version) = 0)"
	return c.count(ctx, memberQuery(sql, project, cohort))
}

// RemoveMember removes a person from a static cohort, and reports whether it was in it. If not, no deletion was sent.
func (c *Client) RemoveMember(ctx context.Context, project, cohort int64, person uuid.UUID) (bool, error) {
	const sql = "SELECT count() FROM " + physical.StaticMembers +
		" WHERE team_id = {project:Int64} AND cohort_id = {cohort:Int64} AND person_id = {person:UUID}"
	q := memberQuery(sql, project, cohort)
	q.Params = append(q.Params, Param{Name: "person", Type: "UUID", Value: person.String()})
	found, err := c.count(ctx, q)
	if err != nil || found == 0 {
		return false, err
	}
	return true, c.Delete(ctx, Deletion{
		Table: physical.StaticMembers, Project: project, Where: "cohort_id = {cohort:Int64} AND person_id = {person:UUID}", Params: q.Params,
	})
}

// RemoveMembers removes all people from a static cohort, and reports whether there were any. If not, no deletion was sent.
func (c *Client) RemoveMembers(ctx context.Context, project, cohort int64) (some bool, err error) {
	q := memberQuery("SELECT count() FROM "+physical.StaticMembers+" WHERE team_id = {project:Int64} AND cohort_id = {cohort:Int64}", project, cohort)
	found, err := c.count(ctx, q)
	if err != nil || found == 0 {
		return false, err
	}
	return true, c.Delete(ctx, Deletion{Table: physical.StaticMembers, Project: project, Where: "cohort_id = {cohort:Int64}", Params: q.Params})
}

// DropLostMembers removes those from a static cohort who became other persons, or were deleted, after a time, and reports whether there were any. If not,
// no deletion was sent.
func (c *Client) DropLostMembers(ctx context.Context, project, cohort int64, since time.Time) (some bool, err error) {
	const sql = "SELECT id FROM person WHERE team_id = {project:Int64} AND id IN (" +
		"SELECT id FROM person WHERE team_id = {project:Int64} AND is_deleted = 1 AND _timestamp >= fromUnixTimestamp({since:Int64}) AND id IN (" +
		"SELECT person_id FROM " + physical.StaticMembers + " WHERE team_id = {project:Int64} AND cohort_id = {cohort:Int64})" +
		") GROUP BY id HAVING argMax(is_deleted, version) = 1"
	q := memberQuery(sql, project, cohort)
	q.Params, q.Unbounded = append(q.Params, number("since", since.Unix())), true
	var lost []string
	err = c.Collect(ctx, q, func(cells []Cell) error {
		lost = append(lost, cells[0].Text())
		return nil
	})
	if err != nil {
		return false, err
	}
	for people := range slices.Chunk(lost, lostAtOnce) {
		err := c.Delete(ctx, Deletion{
			Table: physical.StaticMembers, Project: project, Where: "cohort_id = {cohort:Int64} AND person_id IN {people:Array(UUID)}",
			Params: []Param{number("cohort", cohort), ArrayParam("people", "UUID", people)},
		})
		if err != nil {
			return true, err
		}
	}
	return len(lost) > 0, nil
}

// lostAtOnce is how many persons one statement removes from a cohort.
const lostAtOnce = 5000

func memberQuery(sql string, project, cohort int64) Query {
	return Query{SQL: sql, Project: project, Params: []Param{
		{Name: "project", Type: "Int64", Value: strconv.FormatInt(project, 10)}, {Name: "cohort", Type: "Int64", Value: strconv.FormatInt(cohort, 10)},
	}}
}

// count runs a query that returns one number.
func (c *Client) count(ctx context.Context, q Query) (n int64, err error) {
	err = c.Collect(ctx, q, func(cells []Cell) error {
		n, err = cells[0].Int()
		return err
	})
	return n, err
}
