package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Migrate creates the physical tables that are missing (api.md, section 9.2), on all servers of the cluster if there is one. It leaves existing
// tables of other products, such as PostHog's own, as they are; those of our earlier versions get the columns, indexes and settings added since. It
// logs each change before making it. With several hosts or a cluster, it returns an error if they keep rows of their own.
func (c *Client) Migrate(ctx context.Context) error {
	if err := c.checkCluster(ctx); err != nil {
		return err
	}
	have := map[string][]string{} // columns by table
	columns, err := c.PhysicalColumns(ctx)
	if err != nil {
		return err
	}
	for _, column := range columns {
		have[column.Table] = append(have[column.Table], column.Name)
	}
	known, err := c.knownSettings(ctx)
	if err != nil {
		return err
	}
	var missing []*physical.Table
	for i := range physical.Tables {
		if t := &physical.Tables[i]; have[t.Name] == nil {
			missing = append(missing, t)
		}
	}
	if missing, err = c.withoutSingle(ctx, missing); err != nil {
		return err
	}
	names := make([]string, 0, len(missing))
	for _, t := range missing {
		names = append(names, t.Name)
	}
	if len(missing) > 0 {
		c.logger.Info("creating tables in ClickHouse", zap.String("database", c.database), zap.Strings("tables", names))
	}
	for _, t := range missing {
		if err := c.define(ctx, createTable(t, known, c.config.Cluster)); err != nil {
			code, _ := exceptionOf(err)
			if physical.IsLog(t.Name) && code != 0 { // a server that is too old has no such types
				c.logger.Warn("cannot create the table "+t.Name+" in ClickHouse; the log of queries and runs is in memory alone", Logged(classify(err)))
				continue
			}
			if t.Optional && forbidden[code] {
				continue
			}
			return c.ownFailure(ctx, "creating the table "+t.Name, err)
		}
	}
	if err := c.complete(ctx, have, known); err != nil {
		return err
	}
	return c.checkTables(ctx)
}

// withoutSingle removes optional tables and logs from missing if several hosts share tables that somebody else created for them. We would create each
// of these tables on one host only.
func (c *Client) withoutSingle(ctx context.Context, missing []*physical.Table) ([]*physical.Table, error) {
	if len(missing) == 0 || len(c.hosts) == 1 || c.config.Cluster != "" {
		return missing, nil
	}
	tables, err := c.tablesOf(ctx, c.order(false)[0])
	if err != nil {
		return missing, unlessForbidden(err)
	}
	for _, table := range tables {
		if table.own() {
			continue
		}
		return slices.DeleteFunc(missing, func(t *physical.Table) bool { return t.Optional || physical.IsLog(t.Name) }), nil
	}
	return missing, nil
}

// PhysicalColumns lists the columns of the existing physical tables, in their order.
func (c *Client) PhysicalColumns(ctx context.Context) ([]physical.Column, error) {
	var columns []physical.Column
	err := c.Collect(ctx, Query{
		SQL: "SELECT table, name, type, comment, default_kind, default_expression FROM system.columns " +
			"WHERE database = currentDatabase() AND table IN (" + literals(physical.Names()) + ") ORDER BY table, position",
		system: true,
	}, func(cells []Cell) error {
		columns = append(columns, physical.Column{
			Table: cells[0].Text(), Name: cells[1].Text(), Type: cells[2].Text(),
			Comment: cells[3].Text(), DefaultKind: cells[4].Text(), DefaultExpression: cells[5].Text(),
		})
		return nil
	})
	return columns, err
}

// forbidden has the codes of errors about things that our user may not do, such as creating tables.
var forbidden = map[int]bool{164: true, 497: true}

// createTable returns the statement that creates a table, with the settings that the server knows, on all servers of a cluster if there is one.
func createTable(t *physical.Table, known map[string]bool, cluster string) string {
	parts := make([]string, 0, len(t.Columns)+len(t.Indexes))
	for _, c := range t.Columns {
		parts = append(parts, columnDefinition(&c))
	}
	parts = append(parts, t.Indexes...)
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE IF NOT EXISTS %s%s (\n    %s\n) ENGINE = %s", identifier(t.Name), clusterClause(cluster), strings.Join(parts, ",\n    "), engineOn(cluster, t.Engine))
	if t.Partition != "" {
		b.WriteString(" PARTITION BY " + t.Partition)
	}
	b.WriteString(" ORDER BY (" + t.Order + ")")
	if t.Sample != "" {
		b.WriteString(" SAMPLE BY " + t.Sample)
	}
	if t.TTL != "" {
		b.WriteString(" TTL " + t.TTL)
	}
	b.WriteString(" SETTINGS " + tableSettings(t, known))
	if cluster != "" {
		b.WriteString(", " + clusterDeduplication)
	}
	return b.String()
}

func columnDefinition(c *physical.Column) string {
	return strings.TrimSpace(identifier(c.Name) + " " + c.Type + " " + c.DefaultKind + " " + c.DefaultExpression)
}
