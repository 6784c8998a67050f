package clickhouse

import (
	"context"
	"fmt"
	"strings"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// StoredTable describes one of our tables as ClickHouse stores it.
type StoredTable struct {
	Name    string
	Create  string            // the statement that made it
	Folder  string            // of its parts on the server's machine, with a slash at the end; empty if unknown
	Columns []physical.Column // Name and Type only; none for the table of a materialized endpoint
}

// Materialized reports whether it is the table of a materialized endpoint.
func (t *StoredTable) Materialized() bool { return len(t.Columns) == 0 }

// StoredTables lists the physical tables that exist, without the logs, and the tables of materialized endpoints.
func (c *Client) StoredTables(ctx context.Context) ([]StoredTable, error) {
	columns, err := c.PhysicalColumns(ctx)
	if err != nil {
		return nil, err
	}
	byTable := map[string][]physical.Column{}
	for _, column := range columns {
		if !physical.IsLog(column.Table) {
			byTable[column.Table] = append(byTable[column.Table], physical.Column{Name: column.Name, Type: column.Type})
		}
	}
	var tables []StoredTable
	err = c.Collect(ctx, Query{
		SQL: "SELECT name, create_table_query, if(empty(data_paths), '', data_paths[1]) FROM system.tables " +
			"WHERE database = currentDatabase() AND endsWith(engine, 'MergeTree') ORDER BY name",
		system: true,
	}, func(cells []Cell) error {
		t := StoredTable{Name: cells[0].Text(), Create: cells[1].Text(), Folder: cells[2].Text()}
		t.Columns = byTable[t.Name]
		if _, ours := parseMaterialized(t.Name); ours || len(t.Columns) > 0 {
			tables = append(tables, t)
		}
		return nil
	})
	return tables, err
}

// CountByProject counts the stored rows of a table, including rows that a later version replaces, by project.
func (c *Client) CountByProject(ctx context.Context, table string) (map[int64]int64, error) {
	counts := map[int64]int64{}
	err := c.Collect(ctx, Query{
		SQL:    "SELECT toInt64(" + physical.Project + ") AS project, count() FROM " + identifier(table) + " GROUP BY project",
		system: true,
	}, func(cells []Cell) error {
		project, err := cells[0].Int()
		if err != nil {
			return err
		}
		counts[project], err = cells[1].Int()
		return err
	})
	return counts, err
}

// Freeze links the current parts of a table into the folder shadow/<name> of the embedded engine. Parts never change, so later writes do not affect
// them. The caller removes the folder.
func (c *Client) Freeze(ctx context.Context, table, name string) error {
	return c.run(ctx, "freezing the table "+table, "ALTER TABLE "+identifier(table)+" FREEZE WITH NAME "+literal(name))
}

// AttachPart adds a part in the table's folder detached to the table.
func (c *Client) AttachPart(ctx context.Context, table, part string) error {
	return c.run(ctx, "attaching the part "+part+" to the table "+table, "ALTER TABLE "+identifier(table)+" ATTACH PART "+literal(part))
}

// Truncate removes all rows of a table.
func (c *Client) Truncate(ctx context.Context, table string) error {
	return c.run(ctx, "emptying the table "+table, "TRUNCATE TABLE "+identifier(table))
}

// Recreate drops the table of a materialized endpoint and creates it again, empty, with the statement from StoredTables.
func (c *Client) Recreate(ctx context.Context, table, create string) error {
	if _, ours := parseMaterialized(table); !ours {
		return fmt.Errorf("%q is not the table of a materialized endpoint", table)
	}
	_, definition, ok := strings.Cut(create, "(")
	if !ok || !strings.HasPrefix(create, "CREATE TABLE ") {
		return fmt.Errorf("the statement of the table %s does not make a table", table)
	}
	if err := c.exec(ctx, "DROP TABLE IF EXISTS "+identifier(table)); err != nil {
		return c.ownFailure(ctx, "dropping the table "+table, err)
	}
	return c.run(ctx, "making the table "+table, "CREATE TABLE "+identifier(table)+" ("+definition)
}

// BackUp makes a ClickHouse server write all rows of tables to a destination of its own, such as Disk('backups', 'name'). That may take long.
func (c *Client) BackUp(ctx context.Context, tables []string, destination string) error {
	named := make([]string, len(tables))
	for i, table := range tables {
		named[i] = "TABLE " + identifier(table)
	}
	sql := "BACKUP " + strings.Join(named, ", ") + " TO " + destination
	err := c.send(ctx, false, func(ctx context.Context, h *host) error {
		return h.fills.with(ctx, func(ctx context.Context, conn driver.Conn) error {
			return conn.Exec(driver.Context(ctx, driver.WithSettings(driver.Settings{"max_execution_time": 0})), sql)
		})
	})
	if err != nil {
		return c.failure(ctx, "BACKUP to "+destination, err)
	}
	return nil
}

// run runs a statement for an operator, who sees ClickHouse's error message.
func (c *Client) run(ctx context.Context, doing, sql string) error {
	if err := c.exec(ctx, sql); err != nil {
		return c.failure(ctx, doing, err)
	}
	return nil
}
