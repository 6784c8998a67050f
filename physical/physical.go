// Package physical describes the tables in ClickHouse, both for the statements that create them and for the compiler.
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
	// Overrides maps distinct ids to persons other than those that their events were written with.
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

// LogDays is how many days the rows of the logs are kept.
const LogDays = 30

// LogsFrom returns the time from which on rows of the logs are shown. ClickHouse removes older ones when it merges.
func LogsFrom(now time.Time) time.Time { return now.Add(-LogDays * 24 * time.Hour) }

// CreatedBefore returns an upper bound of the creation times of all people who exist now. It leaves a day for clocks that are ahead.
func CreatedBefore(now time.Time) time.Time { return now.Add(24 * time.Hour) }

// WithoutLogs lists the tables with the data of projects.
func WithoutLogs() []string { return slices.DeleteFunc(Names(), IsLog) }

// IsLog reports whether a table records queries and runs instead of a project's data. Backups leave it out.
func IsLog(table string) bool { return table == QueryLog || table == RunLog }

// Project is the column with the project that a row belongs to. Every table has it.
const Project = "team_id"

// GroupTypes is how many group types a project can have.
const GroupTypes = 5

// Table is a table as it is created. If another product created it on a server, only the names of the columns are certain.
type Table struct {
	Name      string
	Engine    string
	Order     string // the expressions of ORDER BY
	Partition string // the expression of PARTITION BY; empty for none
	Sample    string // the expression of SAMPLE BY; empty for none
	TTL       string // the expression of TTL; empty for rows that stay
	Settings  string // that never change, in addition to those of all tables; empty for none
	Tuning    []Setting
	Columns   []Column
	Indexes   []string // data-skipping indexes, as in CREATE TABLE
	Optional  bool     // queries that do not name it can do without it
}

// Setting is a setting that a table can get at any time. A server that does not know it works without it.
type Setting struct {
	Name  string
	Value string // as SQL
}

// Column is a column of a table, as in system.columns.
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

// Find returns the table with a name; nil if there is none.
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
