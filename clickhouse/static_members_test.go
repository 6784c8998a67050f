package clickhouse_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// staticPeople imports ann and people with hostile names into a project, and returns the id of ann.
func staticPeople(t *testing.T, c *clickhouse.Client, of int64, own string) (ann string) {
	t.Helper()
	lines := fmt.Sprintf(`{"type":"person","distinct_ids":["ann",%[1]q],"properties":{"email":"ann@x.io","E-Mail":"ann@y.io"}}
{"type":"person","distinct_ids":["%[1]s-bob"],"properties":{"email":"%[1]s@x.io"}}
`, own)
	if _, err := ingest.New(c).Import(t.Context(), ingest.Options{Project: of, Now: now}, ingesttest.Lines(lines)); err != nil {
		t.Fatal(err)
	}
	found := ask(t, c, of, "SELECT argMax(person_id, version) FROM person_distinct_id2 WHERE distinct_id = 'ann'")
	if len(found) != 1 {
		t.Fatalf("ann is %v", found)
	}
	return strings.Trim(found[0], `["]`)
}

// TestStaticMembersFence uses names of people of another project, and SQL in place of names: only people of the cohort's project become members, and
// other projects' cohorts are unchanged.
func TestStaticMembersFence(t *testing.T) {
	c := client(t)
	mine, other := project(), project()
	annOfMine, annOfOther := staticPeople(t, c, mine, "mine"), staticPeople(t, c, other, "other")
	const cohort = 5
	if err := c.AddMembers(t.Context(), other, cohort, clickhouse.ByPersonID, []string{annOfOther}); err != nil {
		t.Fatal(err)
	}
	members := func(p int64) []string {
		return ask(t, c, p, "SELECT cohort_id, person_id FROM person_static_cohort ORDER BY ALL")
	}
	row := func(id string) string { return fmt.Sprintf("[%d, %q]", cohort, id) }
	for _, tt := range []struct {
		name  string
		by    clickhouse.Naming
		names []string
	}{
		{"ids of another project", clickhouse.ByPersonID, []string{annOfOther}},
		{"distinct ids of another project", clickhouse.ByDistinctID, []string{"other", "other-bob"}},
		{"emails of another project", clickhouse.ByProperty("email"), []string{"other@x.io"}},
		{"emails in another property", clickhouse.ByProperty("E-Mail"), []string{"ann@x.io"}},
		{"distinct ids that end the list", clickhouse.ByDistinctID, hostileNames(other)},
		{"emails that end the list", clickhouse.ByProperty("email"), hostileNames(other)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if n, err := c.CountPeople(t.Context(), mine, tt.by, tt.names); err != nil || n != 0 {
				t.Errorf("they name %d people, %v", n, err)
			}
			if err := c.AddMembers(t.Context(), mine, cohort, tt.by, tt.names); err != nil {
				t.Fatal(err, errors.Unwrap(err))
			}
			if got := members(mine); got != nil {
				t.Errorf("members %v", got)
			}
		})
	}
	t.Run("invalid ids", func(t *testing.T) {
		for _, name := range hostileNames(other) {
			if err := c.AddMembers(t.Context(), mine, cohort, clickhouse.ByPersonID, []string{name}); err == nil {
				t.Errorf("%q is taken for an id", name)
			}
		}
		if got := members(mine); got != nil {
			t.Errorf("members %v", got)
		}
	})
	t.Run("names that both projects have", func(t *testing.T) {
		for by, name := range map[clickhouse.Naming]string{clickhouse.ByDistinctID: "ann", clickhouse.ByProperty("email"): "ann@x.io", clickhouse.ByProperty("E-Mail"): "ann@y.io", clickhouse.ByPersonID: annOfMine} {
			if err := c.AddMembers(t.Context(), mine, cohort, by, []string{name}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{row(annOfMine)}, members(mine)); diff != "" {
				t.Errorf("members by %q (-want +got):\n%s", name, diff)
			}
		}
	})
	t.Run("removal", func(t *testing.T) {
		if found, err := c.RemoveMember(t.Context(), mine, cohort, uuid.MustParse(annOfOther)); err != nil || found {
			t.Errorf("a member of another project's cohort: %v, %v", found, err)
		}
		for _, want := range []bool{true, false} {
			if some, err := c.RemoveMembers(t.Context(), mine, cohort); err != nil || some != want {
				t.Fatalf("there were some: %t, %v", some, err)
			}
		}
		if got := members(mine); got != nil {
			t.Errorf("members that are left: %v", got)
		}
	})
	if diff := cmp.Diff([]string{row(annOfOther)}, members(other)); diff != "" {
		t.Errorf("members of another project's cohort (-want +got):\n%s", diff)
	}
}

// TestStaticMembersByHostileNames: a name is a value, whatever it looks like, and matches the person who has it.
func TestStaticMembersByHostileNames(t *testing.T) {
	c := client(t)
	mine := project()
	names := hostileNames(mine)
	var lines strings.Builder
	for _, name := range names {
		fmt.Fprintf(&lines, "{\"type\":\"person\",\"distinct_ids\":[%s],\"properties\":{\"email\":%[1]s}}\n", quoted(t, name))
	}
	if _, err := ingest.New(c).Import(t.Context(), ingest.Options{Project: mine, Now: now}, ingesttest.Lines(lines.String())); err != nil {
		t.Fatal(err)
	}
	for by, cohort := range map[clickhouse.Naming]int64{clickhouse.ByDistinctID: 1, clickhouse.ByProperty("email"): 2} {
		for i, name := range names {
			if n, err := c.CountPeople(t.Context(), mine, by, []string{name}); err != nil || n != 1 {
				t.Errorf("%q names %d people, %v", name, n, err)
			}
			if err := c.AddMembers(t.Context(), mine, cohort, by, []string{name}); err != nil {
				t.Fatal(err, errors.Unwrap(err))
			}
			if n, err := c.CountMembers(t.Context(), mine, cohort); err != nil || n != int64(i+1) {
				t.Errorf("after %q there are %d members, %v", name, n, err)
			}
		}
	}
}

// hostileNames are names that try to break out of their literal, and to match everybody in a project.
func hostileNames(of int64) []string {
	return []string{
		`'`, `\`, `\'`, `'] OR 1 = 1 --`, fmt.Sprintf(`x'] OR team_id = %d --`, of),
		`'])) UNION ALL SELECT id FROM person SETTINGS additional_table_filters = {} --`,
		`') ; DROP TABLE person_static_cohort ; --`, `{project:Int64}`, `{people:Array(String)}`, "a\x00b\n\t'", `%`, `NULL`, `\N`,
	}
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	raw, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestDropLostMembers: persons that were merged or deleted since a time are taken out of one cohort. Those that live, and those that were lost before, stay.
func TestDropLostMembers(t *testing.T) {
	c, since := client(t), time.Unix(1_700_000_000, 0)
	mine, other := project(), project()
	const (
		live   = "00000000-0000-4000-8000-000000000001"
		gone   = "00000000-0000-4000-8000-000000000002"
		back   = "00000000-0000-4000-8000-000000000003"
		before = "00000000-0000-4000-8000-000000000004"
	)
	for _, p := range []int64{mine, other} {
		for _, cohort := range []int64{5, 6} {
			fill := clickhouse.StaticFill(clickhouse.Query{
				SQL: fmt.Sprintf("SELECT generateUUIDv4(), toUUID(arrayJoin(['%s', '%s', '%s', '%s']))", live, gone, back, before), Project: p,
			}, cohort)
			if err := c.Fill(t.Context(), fill); err != nil {
				t.Fatal(err)
			}
		}
		for _, row := range []struct {
			id                      string
			deleted, version, after int
		}{{live, 0, 1, 0}, {gone, 0, 1, -100}, {gone, 1, 2, 0}, {back, 1, 1, 0}, {back, 0, 2, 1}, {before, 1, 1, -1}} {
			clickhousetest.Execute(t, engine, fmt.Sprintf("INSERT INTO person (id, team_id, is_deleted, version, _timestamp) SELECT '%s', %d, %d, %d, toDateTime(%d)",
				row.id, p, row.deleted, row.version, since.Unix()+int64(row.after)))
		}
	}
	for _, want := range []bool{true, false} {
		if some, err := c.DropLostMembers(t.Context(), mine, 5, since); err != nil || some != want {
			t.Fatalf("there were some: %t, %v", some, err)
		}
	}
	members := func(p int64) []string {
		return ask(t, c, p, "SELECT cohort_id, arraySort(groupArray(toUInt8(right(toString(person_id), 1)))) FROM person_static_cohort GROUP BY cohort_id ORDER BY cohort_id")
	}
	if diff := cmp.Diff([][]string{{"[5, [1,3,4]]", "[6, [1,2,3,4]]"}, {"[5, [1,2,3,4]]", "[6, [1,2,3,4]]"}}, [][]string{members(mine), members(other)}); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}
