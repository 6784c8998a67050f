package clickhouse_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// TestDropVersions: members of other versions, cohorts and projects stay.
func TestDropVersions(t *testing.T) {
	c := client(t)
	mine, other := project(), project()
	for _, p := range []int64{mine, other} {
		for _, cohort := range []uint64{5, 6} {
			for version := range uint64(4) {
				fill := clickhouse.Fill{
					Query: clickhouse.Query{SQL: "SELECT generateUUIDv4()", Project: p}, Table: "cohortpeople", Columns: []string{"person_id"},
					Fixed: []clickhouse.FixedColumn{{Name: "cohort_id", Number: cohort}, {Name: "version", Number: version + 1}, {Name: "sign", Number: 1}},
				}
				if err := c.Fill(t.Context(), fill); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	kept := func(p int64) []string {
		return ask(t, c, p, "SELECT cohort_id, arraySort(groupArray(version)) FROM cohortpeople GROUP BY cohort_id ORDER BY cohort_id")
	}
	all := []string{"[5, [1,2,3,4]]", "[6, [1,2,3,4]]"}
	for _, step := range []struct {
		name string
		drop func() (bool, error)
		some bool
		want []string
	}{
		{"one", func() (bool, error) { return c.DropVersion(t.Context(), mine, 5, 4) }, true, []string{"[5, [1,2,3]]", "[6, [1,2,3,4]]"}},
		{"a missing one", func() (bool, error) { return c.DropVersion(t.Context(), mine, 5, 9) }, false, []string{"[5, [1,2,3]]", "[6, [1,2,3,4]]"}},
		{"the others", func() (bool, error) { return c.DropOtherVersions(t.Context(), mine, 5, 2) }, true, []string{"[5, [2]]", "[6, [1,2,3,4]]"}},
		{"all", func() (bool, error) { return c.DropOtherVersions(t.Context(), mine, 6, 0) }, true, []string{"[5, [2]]"}},
	} {
		t.Run(fmt.Sprint("dropping ", step.name), func(t *testing.T) {
			if some, err := step.drop(); err != nil || some != step.some {
				t.Fatal(some, err)
			}
			if diff := gocmp.Diff(step.want, kept(mine)); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
			if diff := gocmp.Diff(all, kept(other)); diff != "" {
				t.Errorf("versions of another project (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStoredMembers(t *testing.T) {
	c := client(t)
	mine, other := project(), project()
	fill := func(p int64, table string, columns []string, fixed ...clickhouse.FixedColumn) {
		t.Helper()
		sql := "SELECT generateUUIDv4()" + strings.Repeat(", generateUUIDv4()", len(columns)-1)
		q := clickhouse.Query{SQL: sql, Project: p}
		if err := c.Fill(t.Context(), clickhouse.Fill{Query: q, Table: table, Columns: columns, Fixed: fixed}); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []uint64{4, 5, 5} {
		fill(mine, "cohortpeople", []string{"person_id"},
			clickhouse.FixedColumn{Name: "cohort_id", Number: 5}, clickhouse.FixedColumn{Name: "version", Number: version}, clickhouse.FixedColumn{Name: "sign", Number: 1})
	}
	for _, p := range []int64{mine, mine, other} {
		fill(p, "person_static_cohort", []string{"id", "person_id"}, clickhouse.FixedColumn{Name: "cohort_id", Number: 6})
	}
	all, err := c.StoredMembers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(m clickhouse.StoredMembers) bool { return m.Project != mine && m.Project != other })
	slices.SortFunc(all, func(a, b clickhouse.StoredMembers) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.Cohort, b.Cohort), cmp.Compare(a.Version, b.Version))
	})
	want := []clickhouse.StoredMembers{{mine, 5, 4}, {mine, 5, 5}, {mine, 6, 0}, {other, 6, 0}}
	if diff := gocmp.Diff(want, all); diff != "" {
		t.Errorf("StoredMembers() (-want +got):\n%s", diff)
	}
}
