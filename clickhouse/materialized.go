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

// MaterializedTable identifies the table that one fill of a materialized endpoint version creates.
type MaterializedTable struct {
	Project  int64
	Endpoint uuid.UUID
	Version  int
	Fill     int64
}

// materializedPrefix is the prefix of the names of all such tables.
const materializedPrefix = "endpoint_"

// Name returns the name of the table in ClickHouse.
func (t MaterializedTable) Name() string {
	return fmt.Sprintf("%s%d_%s_v%d_%d", materializedPrefix, t.Project, strings.ReplaceAll(t.Endpoint.String(), "-", ""), t.Version, t.Fill)
}

// parseMaterialized parses the name of such a table.
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

// Materialization is a SELECT for one project whose rows ClickHouse keeps in a table of their own. Like the others, that table has a column for the
// project, so that additional_table_filters applies to it: see [Query.Tables].
type Materialization struct {
	Query
	Table MaterializedTable
	Order []string // columns by which the rows are sorted; nil: by none
}

// MaxMaterializedRows is the maximum number of rows in the table of a materialized endpoint.
const MaxMaterializedRows = 10_000_000

// materializeSettings allow a table to have every column that a query can return.
var materializeSettings = []setting{
	{"allow_suspicious_low_cardinality_types", 1},
	{"allow_suspicious_variant_types", 1},
	{"allow_suspicious_types_in_order_by", 1},
}

// Materialize creates the table, which must not exist, and fills it. It returns the number of rows. The SELECT is fenced like one of [Client.Query],
// and has the limits of [Client.Fill]. After an error the table may exist, with any part of the rows. Errors are like those of [Client.Fill]; more
// rows than MaxMaterializedRows are TooLarge.
func (c *Client) Materialize(ctx context.Context, m Materialization) (rows int64, err error) {
	if m.Table.Project != m.Project {
		return 0, fmt.Errorf("BUG: a table of project %d for a query of project %d", m.Table.Project, m.Project)
	}
	known, err := c.knownSettings(ctx)
	if err != nil {
		return 0, err
	}
	if err := c.write(ctx, m.Query, MaxFillTime, m.statement(known), "materializing an endpoint", materializeSettings...); err != nil {
		return 0, err
	}
	rows, err = c.count(ctx, Query{SQL: "SELECT count() FROM " + identifier(m.Table.Name()), Project: m.Project, Tables: []string{m.Table.Name()}})
	if err == nil && rows > MaxMaterializedRows {
		err = &Error{Kind: TooLarge, Message: fmt.Sprintf("The table would have more than %d rows.", MaxMaterializedRows)}
	}
	return rows, err
}

// statement returns the whole statement. Whatever the query's text is, it is a subquery, so that each row gets the project. The rows are on the disk before the
// table is read, if the server knows the settings for that: a table that a power cut has emptied answers without an error.
func (m *Materialization) statement(known map[string]bool) string {
	settings := append([]string{"allow_nullable_key = 1"}, assignments(durable, known)...)
	order := make([]string, len(m.Order))
	for i, name := range m.Order {
		order[i] = identifier(name)
	}
	return "CREATE TABLE " + identifier(m.Table.Name()) + " ENGINE = MergeTree ORDER BY (" + strings.Join(order, ", ") + ") SETTINGS " +
		strings.Join(settings, ", ") + " AS\n" +
		"SELECT *, toInt64(" + strconv.FormatInt(m.Project, 10) + ") AS " + identifier(physical.Project) +
		" FROM (\n" + m.SQL + "\n) LIMIT " + strconv.Itoa(MaxMaterializedRows+1)
}

// MaterializedTables lists the tables of materialized endpoints of all projects, including those of others who use the database.
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

// DropMaterialized drops the table of a materialized endpoint, if it exists.
func (c *Client) DropMaterialized(ctx context.Context, t MaterializedTable) error {
	if err := c.define(ctx, "DROP TABLE IF EXISTS "+identifier(t.Name())+c.onCluster()); err != nil {
		return c.ownFailure(ctx, "dropping the table of a materialized endpoint", err)
	}
	return nil
}

// CanMaterialize returns the reason why tables for endpoints can't be created; empty if they can. It returns an error if ClickHouse can't be asked.
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
