package clickhouse_test

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// TestInParts: a table is not probed if its servers may have different rows.
func TestInParts(t *testing.T) {
	for _, tt := range []struct {
		engine   string
		replicas map[string]int64
		named    bool
		want     bool
	}{
		{"ReplacingMergeTree", nil, false, true},
		{"ReplacingMergeTree", nil, true, true},
		{"Distributed", nil, true, false},
		{"SharedMergeTree", nil, true, false},
		{"ReplicatedReplacingMergeTree", nil, true, true},
		{"SharedMergeTree", nil, false, false},
		{"Distributed", nil, false, false},
		{"View", nil, false, false},
		{"ReplicatedReplacingMergeTree", map[string]int64{"events": 1}, false, true},
		{"ReplicatedReplacingMergeTree", map[string]int64{"events": 2}, false, false},
		{"ReplicatedReplacingMergeTree", map[string]int64{"events": 0}, false, false},
		{"ReplicatedReplacingMergeTree", map[string]int64{"groups": 1}, false, false},
		{"ReplicatedReplacingMergeTree", nil, false, false},
	} {
		if got := clickhouse.InParts(map[string]string{"person": "MergeTree", "events": tt.engine}, tt.replicas, tt.named); got != tt.want {
			t.Errorf("%s with %v replicas, which are named: %t: %t", tt.engine, tt.replicas, tt.named, got)
		}
	}
	if replicas, err := client(t).Replicas(t.Context()); err != nil || len(replicas) > 0 {
		t.Errorf("tables without replicas: %v, %v", replicas, err)
	}
}

// TestMutationsOfParts: a part has the number of the last statement that rewrote its rows or came before them, and a merge keeps it.
func TestMutationsOfParts(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parts map[string]int64
	}{
		{"no statement", map[string]int64{"2024_1_1_0": 0, "2024_2_5_1": 0}},
		{"half done", map[string]int64{"2024_1_1_0_7": 7, "2024_2_5_1": 0, "2024_8_8_0": 7}},
		{"done", map[string]int64{"2024_1_1_0_7": 7, "2024_2_5_1_7": 7, "2024_8_8_0": 7}},
		{"merged", map[string]int64{"2024_1_8_2_7": 7}},
		{"another one, half done", map[string]int64{"2024_1_5_2_7": 7, "2024_8_8_0_9": 9, "2024_10_10_0": 9}},
		{"another partition", map[string]int64{"2024_1_1_0_7": 7, "2023_8_8_0": 0}},
		{"changes of another", map[string]int64{"patch-1_2_3_3_0_5": 5, "2_3_3_0": 0}},
		{"strange names", map[string]int64{"": 0, "_": 0, "a_b_c_d": 0, "a_b_c_d_e": 0}},
	} {
		var parts []clickhouse.Part
		for name := range tt.parts {
			parts = append(parts, clickhouse.Part{Table: "events", Name: name})
		}
		parts = append(parts, clickhouse.Part{Table: "groups", Name: "2024_9_9_0"})
		clickhouse.SetMutations(parts)
		for _, p := range parts {
			if want := tt.parts[p.Name]; p.Mutation != want {
				t.Errorf("%s: %s has %d, want %d", tt.name, p.Name, p.Mutation, want)
			}
		}
	}
}

// TestProbeable: a new column or default changes the digest of its table, and of no other.
func TestProbeable(t *testing.T) {
	c := client(t)
	tables := func() map[string]string {
		t.Helper()
		list, err := c.Probeable(t.Context(), c.Front())
		if err != nil || list["events"] == "" {
			t.Fatalf("%d tables: %v", len(list), err)
		}
		return list
	}
	before := tables()
	last := before
	for _, sql := range []string{"ADD COLUMN note String", "MODIFY COLUMN note String DEFAULT 'a'", "DROP COLUMN note"} {
		statement(t, c, "ALTER TABLE groups "+sql)
		now := tables()
		if now["groups"] == last["groups"] || now["person"] != before["person"] {
			t.Errorf("%s: groups %s, then %s; person %s, then %s", sql, last["groups"], now["groups"], before["person"], now["person"])
		}
		last = now
	}
	if last["groups"] != before["groups"] {
		t.Errorf("without the column: %s, at first %s", last["groups"], before["groups"])
	}
}

// TestMarks: each write changes the marks of a table; a merge does not.
func TestMarks(t *testing.T) {
	c := client(t)
	name := table(t, c, "n Int64")
	marks := func() string {
		t.Helper()
		m, err := c.Marks(t.Context(), []string{name})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	last, seen := marks(), map[string]string{}
	for _, tt := range []struct {
		sql   string
		moves bool
	}{
		{"INSERT INTO " + name + " (n) VALUES (1)", true},
		{"INSERT INTO " + name + " (n) VALUES (2), (3)", true},
		{"OPTIMIZE TABLE " + name + " FINAL", false},
		{"DELETE FROM " + name + " WHERE n = 1", true},
		{"OPTIMIZE TABLE " + name + " FINAL", false},
		{"INSERT INTO " + name + " (n) VALUES (2)", true},
		{"ALTER TABLE " + name + " DROP PARTITION tuple()", true},
		{"INSERT INTO " + name + " (n) VALUES (1)", true},
		{"DROP TABLE " + name + " SYNC", true},
		{"CREATE TABLE " + name + " (n Int64) ENGINE = MergeTree ORDER BY n", false},
		{"INSERT INTO " + name + " (n) VALUES (1)", true},
	} {
		statement(t, c, tt.sql)
		now := marks()
		if moved := now != last; moved != tt.moves {
			t.Errorf("%s: the marks move: %t, want %t", tt.sql, moved, tt.moves)
		}
		if before := seen[now]; before != "" && tt.moves && now != marksOfNothing(t, c) {
			t.Errorf("%s: the marks are those after %s", tt.sql, before)
		}
		last, seen[now] = now, tt.sql
	}
}

// marksOfNothing returns the marks of tables without rows.
func marksOfNothing(t *testing.T, c *clickhouse.Client) string {
	t.Helper()
	m, err := c.Marks(t.Context(), []string{"no table"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
