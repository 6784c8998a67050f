package clickhouse

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// MaterializedTable names the table that one fill of a materialized version of an endpoint makes.
type MaterializedTable struct {
	Project  int64
	Endpoint uuid.UUID
	Version  int
	Fill     int64
}

// materializedPrefix is how the names of all such tables begin.
const materializedPrefix = "endpoint_"

// Name is the name of the table in ClickHouse.
func (t MaterializedTable) Name() string {
	return fmt.Sprintf("%s%d_%s_v%d_%d", materializedPrefix, t.Project, strings.ReplaceAll(t.Endpoint.String(), "-", ""), t.Version, t.Fill)
}

// parseMaterialized reads the name of such a table.
func parseMaterialized(name string) (t MaterializedTable, ok bool) {
	parts := strings.Split(strings.TrimPrefix(name, materializedPrefix), "_")
	if !strings.HasPrefix(name, materializedPrefix) || len(parts) != 4 {
		return t, false
	}
	var err error
	if t.Project, err = strconv.ParseInt(parts[0], 10, 64); err != nil {
		return t, false
	}
	if t.Endpoint, err = uuid.Parse(parts[1]); err != nil {
		return t, false
	}
	if t.Version, err = strconv.Atoi(strings.TrimPrefix(parts[2], "v")); err != nil {
		return t, false
	}
	if t.Fill, err = strconv.ParseInt(parts[3], 10, 64); err != nil {
		return t, false
	}
	return t, t.Name() == name
}

// Materialization is a SELECT for one project whose rows ClickHouse itself keeps in a table of their own. The table also has a column of
// the project, so that additional_table_filters holds for it as for all others: see [Query.Tables].
type Materialization struct {
	Query
	Table MaterializedTable
	Order []string // columns by which the rows are sorted; nil: by none
}

// MaxMaterializedRows is the most rows that the table of a materialized endpoint may have.
const MaxMaterializedRows = 10_000_000

// materializeSettings let a table have what a query can give.
var materializeSettings = []setting{
	{"allow_suspicious_low_cardinality_types", 1},
	{"allow_suspicious_variant_types", 1},
	{"allow_suspicious_types_in_order_by", 1},
}

// Materialize makes the table, which must not be there, and fills it. It returns how many rows it has. The SELECT has the same fences as
// one of [Client.Query], and the limits of [Client.Fill]. After an error the table may be there, with any part of the rows. Errors are
// like those of [Client.Fill]; more rows than MaxMaterializedRows are TooLarge.
func (c *Client) Materialize(ctx context.Context, m Materialization) (rows int64, err error) {
	if m.Table.Project != m.Project {
		return 0, fmt.Errorf("BUG: a table of project %d for a query of project %d", m.Table.Project, m.Project)
	}
	if err := c.write(ctx, m.Query, MaxFillTime, m.statement(), "materializing an endpoint", materializeSettings...); err != nil {
		return 0, err
	}
	rows, err = c.count(ctx, Query{SQL: "SELECT count() FROM " + identifier(m.Table.Name()), Project: m.Project, Tables: []string{m.Table.Name()}})
	if err == nil && rows > MaxMaterializedRows {
		err = &Error{Kind: TooLarge, Message: fmt.Sprintf("The table would have more than %d rows.", MaxMaterializedRows)}
	}
	return rows, err
}

// statement is the whole statement. Whatever the query's text is, it is a subquery, so that each row gets the project.
func (m *Materialization) statement() string {
	order := make([]string, len(m.Order))
	for i, name := range m.Order {
		order[i] = identifier(name)
	}
	return "CREATE TABLE " + identifier(m.Table.Name()) + " ENGINE = MergeTree ORDER BY (" + strings.Join(order, ", ") + ") SETTINGS allow_nullable_key = 1 AS\n" +
		"SELECT *, toInt64(" + strconv.FormatInt(m.Project, 10) + ") AS " + identifier(physical.Project) +
		" FROM (\n" + m.SQL + "\n) LIMIT " + strconv.Itoa(MaxMaterializedRows+1)
}

// MaterializedTables lists the tables of materialized endpoints, of all projects and of all who use the database.
func (c *Client) MaterializedTables(ctx context.Context) ([]MaterializedTable, error) {
	var all []MaterializedTable
	err := c.Collect(ctx, Query{
		SQL:    "SELECT name FROM system.tables WHERE database = currentDatabase() AND startsWith(name, " + literal(materializedPrefix) + ")",
		system: true,
	}, func(cells []Cell) error {
		if t, ok := parseMaterialized(cells[0].Text()); ok {
			all = append(all, t)
		}
		return nil
	})
	return all, err
}

// DropMaterialized drops the table of a materialized endpoint, if it is there.
func (c *Client) DropMaterialized(ctx context.Context, t MaterializedTable) error {
	if err := c.define(ctx, "DROP TABLE IF EXISTS "+identifier(t.Name())+c.onCluster()); err != nil {
		return c.ownFailure(ctx, "dropping the table of a materialized endpoint", err)
	}
	return nil
}

// CanMaterialize reports why tables for endpoints can't be made here; empty if they can. The error is that of an outage.
func (c *Client) CanMaterialize(ctx context.Context) (reason string, err error) {
	if len(c.hosts) > 1 || c.config.Cluster != "" {
		return "A table would be on only one of the ClickHouse servers that this server uses.", nil
	}
	trial := identifier("materialized_trial_" + strconv.FormatInt(time.Now().UnixNano(), 36))
	err = c.exec(ctx, "CREATE TABLE "+trial+" (a UInt8) ENGINE = MergeTree ORDER BY a")
	if err == nil {
		err = c.exec(ctx, "DROP TABLE "+trial)
	}
	if err == nil {
		return "", nil
	}
	if code, _ := exceptionOf(err); forbidden[code] {
		return "The ClickHouse user of this server may not make tables.", nil
	}
	return "", c.ownFailure(ctx, "trying whether tables can be made", err)
}
