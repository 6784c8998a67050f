package engine_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// TestTablesAreAsDescribed compares the tables that Migrate made with package physical, and with what the compiler takes them to be.
func TestTablesAreAsDescribed(t *testing.T) {
	made, err := client.PhysicalColumns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byTable := func(a, b physical.Column) int { return cmp.Compare(a.Table, b.Table) }
	slices.SortStableFunc(made, byTable)
	described := physical.Columns()
	slices.SortStableFunc(described, byTable)
	if diff := gocmp.Diff(described, made); diff != "" {
		t.Errorf("columns (-described +made):\n%s", diff)
	}
	for _, c := range made {
		if got := schema.NativeLayout().ColumnType(c.Table, c.Name); got != c.Type {
			t.Errorf("the compiler takes %s.%s for %q, it is %q", c.Table, c.Name, got, c.Type)
		}
	}
	rows, err := embeddedtest.Connect(t, dsn).Query(t.Context(),
		"SELECT name, engine_full, sorting_key, partition_key, sampling_key FROM system.tables WHERE database = currentDatabase()")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }() // what went wrong is in Err
	var tables []physical.Table
	for rows.Next() {
		var found physical.Table
		if err := rows.Scan(&found.Name, &found.Engine, &found.Order, &found.Partition, &found.Sample); err != nil {
			t.Fatal(err)
		}
		if physical.HoldsEndpoint(found.Name) { // of other tests
			continue
		}
		want := slices.IndexFunc(physical.Tables, func(t physical.Table) bool { return t.Name == found.Name })
		if want >= 0 && !strings.Contains(found.Engine, physical.Tables[want].Settings) {
			t.Errorf("%s lacks %s: %s", found.Name, physical.Tables[want].Settings, found.Engine)
		}
		for _, s := range physical.Tables[max(want, 0)].Tuning {
			if want >= 0 && !strings.Contains(found.Engine, s.Name+" = "+s.Value) {
				t.Errorf("%s lacks %s = %s: %s", found.Name, s.Name, s.Value, found.Engine)
			}
		}
		_, found.TTL, _ = strings.Cut(found.Engine, " TTL ")
		found.TTL, _, _ = strings.Cut(found.TTL, " SETTINGS ")
		for _, clause := range []string{" PARTITION BY ", " ORDER BY "} {
			found.Engine, _, _ = strings.Cut(found.Engine, clause)
		}
		tables = append(tables, found)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	byName := cmpopts.SortSlices(func(a, b physical.Table) bool { return a.Name < b.Name })
	kept := cmpopts.IgnoreFields(physical.Table{}, "Columns", "Indexes", "Settings", "Tuning", "Optional")
	if diff := gocmp.Diff(physical.Tables, tables, byName, kept); diff != "" {
		t.Errorf("tables (-described +made):\n%s", diff)
	}
	var indexes uint64
	if err := embeddedtest.Connect(t, dsn).QueryRow(t.Context(),
		"SELECT count() FROM system.data_skipping_indices WHERE database = currentDatabase()").Scan(&indexes); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, table := range physical.Tables {
		count += len(table.Indexes)
	}
	if int(indexes) != count {
		t.Errorf("%d indexes, %d described", indexes, count)
	}
}
