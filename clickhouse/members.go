package clickhouse

import (
	"context"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// DropVersion deletes one version of the computed members of a cohort. Queries that began before may still read them.
func (c *Client) DropVersion(ctx context.Context, project, cohort int64, version uint64) error {
	return c.dropMembers(ctx, project, fmt.Sprintf("cohort_id = %d AND version = %d", cohort, version))
}

// DropOtherVersions deletes all versions of the computed members of a cohort but one.
func (c *Client) DropOtherVersions(ctx context.Context, project, cohort int64, version uint64) error {
	return c.dropMembers(ctx, project, fmt.Sprintf("cohort_id = %d AND version != %d", cohort, version))
}

// dropMembers deletes what a condition holds for. To ask first costs less than a deletion of nothing, which looks at every part of the table.
func (c *Client) dropMembers(ctx context.Context, project int64, condition string) error {
	some := false
	err := c.Collect(ctx, Query{SQL: "SELECT 1 FROM " + physical.ComputedMembers + " WHERE " + condition + " LIMIT 1", Project: project}, func([]Cell) error {
		some = true
		return nil
	})
	if err != nil || !some {
		return err
	}
	sql := fmt.Sprintf("DELETE FROM %s WHERE %s = %d AND %s", identifier(physical.ComputedMembers), physical.Project, project, condition)
	if err := c.exec(ctx, sql); err != nil {
		return c.failure(ctx, "deleting members of a cohort", err)
	}
	return nil
}
