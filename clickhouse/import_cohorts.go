package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// membersTable holds the people that were put into cohorts by hand.
const membersTable = "person_static_cohort"

// cohortMember is a person of a cohort.
type cohortMember struct {
	cohort int64
	person uuid.UUID
}

// membership is what the lines of a batch say about cohorts.
type membership struct {
	given []givenMember
	// merged are the persons that became another one in this batch, which takes their place in cohorts.
	merged map[uuid.UUID]*person
}

// givenMember is a person that a line puts into a cohort.
type givenMember struct {
	line   int
	cohort int64
	id     *distinctID
}

// memberUUID is the id of a row of members: the same member has the same one.
func memberUUID(project int64, m cohortMember) uuid.UUID {
	return uuid.NewSHA1(namespace, fmt.Appendf(nil, "member %d %d %s", project, m.cohort, m.person))
}

func (l *importLine) parseCohort(o object) error {
	id := o.get("cohort_id")
	if id == nil || string(id) == "null" {
		return errors.New("it has no cohort_id")
	}
	var err error
	if l.cohort, err = strconv.ParseInt(string(id), 10, 64); err != nil || l.cohort < 1 {
		return fmt.Errorf("its cohort_id %s is no cohort's number", quotedTrim(string(id)))
	}
	ids := o.get("distinct_ids")
	if ids == nil {
		return errors.New("a cohort's line needs distinct_ids")
	}
	l.distinctIDs, err = distinctIDsOf(ids)
	return err
}

// cohort applies a line that puts people into a cohort: all of them, or none.
func (i *importer) cohort(line importLine) {
	if !slices.Contains(i.options.Cohorts, line.cohort) {
		i.bad(line.number, fmt.Errorf("the project has no cohort %d", line.cohort))
		return
	}
	if i.layout[membersTable] == nil {
		i.bad(line.number, fmt.Errorf("the ClickHouse database has no table %s", membersTable))
		return
	}
	var unknown []string
	for _, name := range line.distinctIDs {
		if entry := i.state.ids[name]; entry == nil || entry.person == nil {
			unknown = append(unknown, quotedTrim(name))
		}
	}
	const named = 5
	switch more := len(unknown) - named; {
	case more > 0:
		i.bad(line.number, fmt.Errorf("no person has the distinct ids %s and %d more", strings.Join(unknown[:named], ", "), more))
		return
	case len(unknown) > 0:
		i.bad(line.number, fmt.Errorf("no person has the distinct id %s", strings.Join(unknown, ", ")))
		return
	}
	i.report.Cohorts++
	for _, name := range line.distinctIDs {
		i.members.given = append(i.members.given, givenMember{line.number, line.cohort, i.state.ids[name]})
	}
}

// movesInto notes that a person became another one.
func (i *importer) movesInto(source, target *person) {
	if i.members.merged == nil {
		i.members.merged = map[uuid.UUID]*person{}
	}
	i.members.merged[source.id] = target
	delete(i.members.merged, target.id) // it is there again
}

// memberRows gives the rows of the people that are new in cohorts, by the lines and the merges of a batch. Who is a person is
// known only when all its lines are applied.
func (i *importer) memberRows(ctx context.Context) ([]importRow, error) {
	wanted := map[cohortMember]int{} // by member, the line
	for _, g := range i.members.given {
		wanted[cohortMember{g.cohort, g.id.person.id}] = g.line
	}
	if err := i.mergedMembers(ctx, wanted); err != nil {
		return nil, err
	}
	i.members = membership{}
	if err := i.withoutKnown(ctx, wanted); err != nil {
		return nil, err
	}
	i.report.Members += len(wanted)
	var rows []importRow
	for m, line := range wanted {
		id := memberUUID(i.options.Project, m)
		rows = append(rows, importRow{
			line: line, key: id.String(),
			values: map[string]any{
				"id": id, "person_id": m.person, "cohort_id": m.cohort, "team_id": i.options.Project, "_timestamp": i.options.Now, "_offset": uint64(0),
			},
		})
	}
	return sorted(rows), nil
}

// mergedMembers adds the cohorts of persons that became others.
func (i *importer) mergedMembers(ctx context.Context, wanted map[cohortMember]int) error {
	if len(i.members.merged) == 0 || i.layout[membersTable] == nil {
		return nil
	}
	return i.membersOf(ctx, "person_id IN {persons:Array(UUID)}", []Param{personsParam(maps.Keys(i.members.merged))}, func(m cohortMember) {
		target := i.members.merged[m.person]
		for i.members.merged[target.id] != nil {
			target = i.members.merged[target.id]
		}
		m.person = target.id
		if _, given := wanted[m]; !given {
			wanted[m] = target.line
		}
	})
}

// withoutKnown takes those out that are members already.
func (i *importer) withoutKnown(ctx context.Context, wanted map[cohortMember]int) error {
	if len(wanted) == 0 {
		return nil
	}
	persons, cohorts := map[uuid.UUID]bool{}, map[string]bool{}
	for m := range wanted {
		persons[m.person], cohorts[strconv.FormatInt(m.cohort, 10)] = true, true
	}
	numbers := Param{Name: "cohorts", Type: "Array(Int64)", Value: "[" + strings.Join(sortedKeys(cohorts), ",") + "]"}
	return i.membersOf(ctx, "cohort_id IN {cohorts:Array(Int64)} AND person_id IN {persons:Array(UUID)}",
		[]Param{numbers, personsParam(maps.Keys(persons))}, func(m cohortMember) { delete(wanted, m) })
}

// membersOf looks members up.
func (i *importer) membersOf(ctx context.Context, condition string, params []Param, found func(cohortMember)) error {
	return i.query(ctx, "SELECT DISTINCT cohort_id, person_id FROM "+membersTable+" WHERE team_id = {project:Int64} AND "+condition, params,
		func(cells []cell) error {
			cohort, err := cells[0].int()
			if err != nil {
				return err
			}
			person, err := uuid.Parse(cells[1].text())
			if err != nil {
				return err
			}
			found(cohortMember{cohort, person})
			return nil
		})
}
