package ingest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// cohortMember is a person of a cohort.
type cohortMember struct {
	cohort int64
	person uuid.UUID
}

// givenMember is a person that a record puts into a cohort.
type givenMember struct {
	line   int
	cohort int64
	id     *distinctID
}

// cohort applies a record that puts people into a cohort: all of them, or none.
func (s *session) cohort(r *record.Record) {
	if err := s.checkCohort(r); err != nil {
		s.bad(r.Line, err)
		return
	}
	s.report.Cohorts++
	for _, name := range r.DistinctIDs {
		s.members = append(s.members, givenMember{r.Line, r.Cohort, s.people.ids[name]})
	}
}

func (s *session) checkCohort(r *record.Record) error {
	if !slices.Contains(s.options.Cohorts, r.Cohort) {
		return fmt.Errorf("the project has no cohort %d", r.Cohort)
	}
	if s.store.layout[physical.StaticMembers] == nil {
		return fmt.Errorf("the ClickHouse database has no table %s", physical.StaticMembers)
	}
	var unknown []string
	for _, name := range r.DistinctIDs {
		if s.people.of(name) == nil {
			unknown = append(unknown, record.Quoted(name))
		}
	}
	const named = 5
	switch more := len(unknown) - named; {
	case more > 0:
		return fmt.Errorf("no person has the distinct ids %s and %d more", strings.Join(unknown[:named], ", "), more)
	case len(unknown) > 0:
		return fmt.Errorf("no person has the distinct id %s", strings.Join(unknown, ", "))
	}
	return nil
}

var memberColumns = []string{"id", "person_id", "cohort_id"}

// memberRows returns the rows of people that are new in cohorts, from the records and the merges of a batch. It is called after all records are applied: only
// then is it known which person has a distinct id.
func (s *session) memberRows(ctx context.Context) ([]row, error) {
	wanted := map[cohortMember]int{} // lines by member
	for _, g := range s.members {
		wanted[cohortMember{g.cohort, g.id.person.id}] = g.line
	}
	s.members = nil
	if err := s.store.mergedMembers(ctx, s.people.merged, wanted); err != nil {
		return nil, err
	}
	if err := s.store.withoutKnown(ctx, wanted); err != nil {
		return nil, err
	}
	s.report.Members += len(wanted)
	for m := range wanted {
		if s.report.Filled == nil {
			s.report.Filled = map[int64]bool{}
		}
		s.report.Filled[m.cohort] = true
	}
	var rows []row
	for m, line := range wanted {
		id := memberUUID(s.options.Project, m)
		// Whoever was taken out of the cohort since is put back by rows that ClickHouse does not take for those of an earlier batch.
		key := id.String() + " " + strconv.FormatInt(s.store.written.UnixNano(), 10)
		rows = append(rows, s.store.row(line, key, id, m.person, m.cohort))
	}
	return sorted(rows), nil
}

// mergedMembers adds the cohorts of merged persons to the persons that they became.
func (s *store) mergedMembers(ctx context.Context, merged map[uuid.UUID]*person, wanted map[cohortMember]int) error {
	if len(merged) == 0 || s.layout[physical.StaticMembers] == nil {
		return nil
	}
	return s.membersOf(ctx, "person_id IN {persons:Array(UUID)}", func(m cohortMember) {
		target := survivor(merged, m.person)
		m.person = target.id
		if _, given := wanted[m]; !given {
			wanted[m] = target.line
		}
	}, personsParam(maps.Keys(merged)))
}

// survivor returns the person that a merged person has become.
func survivor(merged map[uuid.UUID]*person, id uuid.UUID) *person {
	target := merged[id]
	for merged[target.id] != nil {
		target = merged[target.id]
	}
	return target
}

// computedColumns are all columns of the table of computed members, which lacks the columns that the other tables share.
var computedColumns = []string{physical.Project, "cohort_id", "version", "person_id", "sign"}

// computedRows returns the rows that replace merged persons by their survivors, in all versions of computed cohorts, including a version that is being written.
// A survivor that is already a member is not added again, because a single row could not take it out then.
func (s *session) computedRows(ctx context.Context) ([]row, error) {
	merged := s.people.merged
	table := s.store.layout[physical.ComputedMembers]
	if len(merged) == 0 || len(s.options.Computed) == 0 || table == nil {
		return nil, nil
	}
	known := map[computedMember]int64{}
	if err := s.store.computedSums(ctx, merged, s.options.Computed, known); err != nil {
		return nil, err
	}
	var rows []row
	add := func(line int, m computedMember, sign int8, n int64) {
		var number any = m.version
		if !strings.HasPrefix(table["version"], "U") { // a table of PostHog's
			number = int64(m.version) //nolint:gosec // versions are counted from 1
		}
		key := fmt.Sprint(m.cohort, m.version, m.person, sign, n)
		rows = append(rows, row{line, key, []any{s.options.Project, m.cohort, number, m.person, sign}})
	}
	for m, sum := range known {
		if merged[m.person] == nil {
			continue
		}
		target := survivor(merged, m.person)
		for n := range sum {
			add(target.line, m, -1, n)
		}
		m.person = target.id
		if known[m] == 0 {
			add(target.line, m, 1, 0)
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.key, b.key) })
	return slices.CompactFunc(rows, func(a, b row) bool { return a.key == b.key }), nil
}

// computedMember is a person in a version of the members of a cohort.
type computedMember struct {
	cohort  int64
	version uint64
	person  uuid.UUID
}

// computedSums finds the versions of cohorts in which merged persons or their survivors are members, with the sum of the signs of their rows. It is 1, or more
// for a person that became a member twice. The conditions name the columns of the primary key.
func (s *store) computedSums(ctx context.Context, merged map[uuid.UUID]*person, cohorts []int64, sums map[computedMember]int64) error {
	persons := make(map[uuid.UUID]bool, 2*len(merged))
	for id := range merged {
		persons[id], persons[survivor(merged, id).id] = true, true
	}
	return s.query(ctx, "SELECT cohort_id, version, person_id, sum(sign) AS n FROM "+physical.ComputedMembers+" WHERE team_id = {project:Int64} "+
		"AND cohort_id IN {cohorts:Array(Int64)} AND person_id IN {persons:Array(UUID)} GROUP BY cohort_id, version, person_id HAVING n > 0",
		func(cells []clickhouse.Cell) error {
			cohort, err := cells[0].Int()
			if err != nil {
				return err
			}
			version, err := cells[1].Int()
			if err != nil {
				return err
			}
			person, err := uuid.Parse(cells[2].Text())
			if err != nil {
				return err
			}
			sums[computedMember{cohort, uint64(version), person}], err = cells[3].Int() //nolint:gosec // versions are counted from 1
			return err
		}, numbersParam("cohorts", cohorts), personsParam(maps.Keys(persons)))
}

// numbersParam is a parameter with a list of numbers.
func numbersParam(name string, numbers []int64) clickhouse.Param {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return clickhouse.Param{Name: name, Type: "Array(Int64)", Value: "[" + strings.Join(texts, ",") + "]"}
}

// withoutKnown removes those from wanted that are members already.
func (s *store) withoutKnown(ctx context.Context, wanted map[cohortMember]int) error {
	if len(wanted) == 0 {
		return nil
	}
	persons, cohorts := map[uuid.UUID]bool{}, map[int64]bool{}
	for m := range wanted {
		persons[m.person], cohorts[m.cohort] = true, true
	}
	return s.membersOf(ctx, "cohort_id IN {cohorts:Array(Int64)} AND person_id IN {persons:Array(UUID)}",
		func(m cohortMember) { delete(wanted, m) }, numbersParam("cohorts", slices.Sorted(maps.Keys(cohorts))), personsParam(maps.Keys(persons)))
}

// membersOf calls found for each member that meets a condition.
func (s *store) membersOf(ctx context.Context, condition string, found func(cohortMember), params ...clickhouse.Param) error {
	return s.query(ctx, "SELECT DISTINCT cohort_id, person_id FROM "+physical.StaticMembers+" WHERE team_id = {project:Int64} AND "+condition,
		func(cells []clickhouse.Cell) error {
			cohort, err := cells[0].Int()
			if err != nil {
				return err
			}
			person, err := uuid.Parse(cells[1].Text())
			if err != nil {
				return err
			}
			found(cohortMember{cohort, person})
			return nil
		}, params...)
}

// personsParam is the parameter persons with a list of ids.
func personsParam(ids iter.Seq[uuid.UUID]) clickhouse.Param {
	var list []string
	for id := range ids {
		list = append(list, id.String())
	}
	slices.Sort(list)
	return clickhouse.ArrayParam("persons", "UUID", list)
}
