package clickhouse

import (
	"context"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// complete adds to tables of earlier versions the columns, indexes and settings that came later. have lists the columns by table. Existing rows are
// not rewritten: a column that they lack is computed when it is read, and indexes and settings apply from the next merges on.
func (c *Client) complete(ctx context.Context, have map[string][]string, known map[string]bool) error {
	definitions := map[string]string{}
	err := c.Collect(ctx, Query{
		SQL: "SELECT name, create_table_query FROM system.tables WHERE database = currentDatabase() AND name IN (" + literals(physical.Names()) + ") " +
			"AND position(engine_full, " + literal(deduplication) + ") > 0",
		system: true,
	}, func(cells []Cell) error {
		definitions[cells[0].Text()] = cells[1].Text()
		return nil
	})
	if err != nil {
		return unlessForbidden(err)
	}
	for i := range physical.Tables {
		t := &physical.Tables[i]
		definition, ours := definitions[t.Name]
		if !ours || have[t.Name] == nil { // another server may have created it a moment ago
			continue
		}
		if err := c.completeTable(ctx, t, missingFrom(t, have[t.Name], definition, known)); err != nil {
			return err
		}
	}
	return nil
}

// missingFrom returns the changes that ALTER TABLE has to make to a table with the given columns and definition.
func missingFrom(t *physical.Table, columns []string, definition string, known map[string]bool) (changes []string) {
	for i := range t.Columns {
		if slices.Contains(columns, t.Columns[i].Name) {
			continue
		}
		change := "ADD COLUMN IF NOT EXISTS " + columnDefinition(&t.Columns[i])
		if i > 0 {
			change += " AFTER " + identifier(t.Columns[i-1].Name)
		}
		changes = append(changes, change)
	}
	for _, index := range t.Indexes {
		if name, rest, _ := strings.Cut(strings.TrimPrefix(index, "INDEX "), " "); !strings.Contains(definition, "INDEX "+name+" ") {
			changes = append(changes, "ADD INDEX IF NOT EXISTS "+name+" "+rest)
		}
	}
	for _, s := range tuning(t) {
		if known[s.Name] && !strings.Contains(definition, s.Name+" = ") {
			changes = append(changes, "MODIFY SETTING "+s.Name+" = "+s.Value)
		}
	}
	return changes
}

// completeTable changes a table that an earlier version created, and logs the changes first.
func (c *Client) completeTable(ctx context.Context, t *physical.Table, changes []string) error {
	if len(changes) == 0 {
		return nil
	}
	c.logger.Info("changing a table that an older version of this program made; its rows stay", zap.String("database", c.database),
		zap.String("table", t.Name), zap.Strings("changes", changes))
	for _, change := range changes {
		if err := c.define(ctx, "ALTER TABLE "+identifier(t.Name)+c.onCluster()+" "+change); err != nil {
			if err := unlessForbidden(c.failure(ctx, "changing the table "+t.Name, err)); err != nil {
				return err
			}
		}
	}
	return nil
}
