// Package physical describes the tables in ClickHouse. What creates them and what the compiler takes them to be both come from here.
package physical

import (
	"slices"
	"strings"
	"time"
)

// The names of tables that other packages use.
const (
	Events = "events"
	// Persons holds the versions of people.
	Persons = "person"
	// Overrides says which distinct ids belong to other persons than their events were written with.
	Overrides = "person_distinct_id_overrides"
	// ComputedMembers holds the members of cohorts that PostHog computes.
	ComputedMembers = "cohortpeople"
	// StaticMembers holds the people that were put into cohorts by hand.
	StaticMembers = "person_static_cohort"
	// QueryLog holds the queries that ran on ClickHouse.
	QueryLog = "query_log"
	// RunLog holds the runs of endpoints, and how many there were.
	RunLog = "run_log"
)

// LogDays is for how many days rows of the logs are kept.
const LogDays = 30

// LogsFrom is the time of the earliest rows of the logs that are shown at a moment. ClickHouse removes older ones when it merges.
func LogsFrom(now time.Time) time.Time { return now.Add(-LogDays * 24 * time.Hour) }

// CreatedBefore is the time before which people are created who are there at a moment. A clock that is ahead hides nobody for a day.
func CreatedBefore(now time.Time) time.Time { return now.Add(24 * time.Hour) }

// WithoutLogs lists the tables that hold what projects have.
func WithoutLogs() []string { return slices.DeleteFunc(Names(), IsLog) }

// IsLog reports whether a table holds what was asked, and nothing of what a project has. It is no part of backups.
func IsLog(table string) bool { return table == QueryLog || table == RunLog }

// Project is the column that says to which project a row belongs. Every table has it.
const Project = "team_id"

// GroupTypes is how many group types a project can have.
const GroupTypes = 5

// Table is a table as it is created. All but the names of its columns may differ on a server where another product made it.
type Table struct {
	Name      string
	Engine    string
	Order     string // the expressions of ORDER BY
	Partition string // the expression of PARTITION BY; empty for none
	Sample    string // the expression of SAMPLE BY; empty for none
	TTL       string // the expression of TTL; empty for rows that stay
	Settings  string // that it keeps for ever, in addition to those that all tables have; empty for none
	Tuning    []Setting
	Columns   []Column
	Indexes   []string // data-skipping indexes, as CREATE TABLE has them
	Optional  bool     // queries that do not name it can do without it
}

// Setting is a setting that a table can get at any time. A server that does not know it does without.
type Setting struct {
	Name  string
	Value string // as SQL
}

// Column is a column of a table, as system.columns has it.
type Column struct {
	Table, Name string
	Type        string // as ClickHouse prints it: LowCardinality(String), DateTime64(6, 'UTC')
	Comment     string

	DefaultKind       string // DEFAULT, MATERIALIZED, ALIAS, or empty
	DefaultExpression string
}

// HasPaths reports whether a column of the table is of the JSON type.
func (t *Table) HasPaths() bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return strings.HasPrefix(c.Type, "JSON(") })
}

// Has reports whether there is a table of that name.
func Has(name string) bool { return slices.Contains(names, name) }

// Names lists the tables.
func Names() []string { return slices.Clone(names) }

var names = func() (list []string) {
	for i := range Tables {
		list = append(list, Tables[i].Name)
	}
	return list
}()

// Find returns the table of a name; nil for none.
func Find(name string) *Table {
	if i := slices.Index(names, name); i >= 0 {
		return &Tables[i]
	}
	return nil
}

// Columns lists the columns of all tables.
func Columns() []Column {
	var all []Column
	for i := range Tables {
		all = append(all, Tables[i].Columns...)
	}
	return all
}
