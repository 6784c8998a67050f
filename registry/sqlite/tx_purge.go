package sqlite

import (
	"context"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Usage returns what a project keeps. Triggers count it.
func (t *tx) Usage(ctx context.Context, project int64) (registry.Usage, error) {
	const doing = "reading what a project keeps"
	rows, err := t.sql.QueryContext(ctx, `SELECT kind, records, bytes FROM usage WHERE project_id = ?`, project)
	if err != nil {
		return nil, told(err, doing)
	}
	defer func() { _ = rows.Close() }() // what went wrong is in rows.Err
	usage := make(registry.Usage, len(registry.Kinds))
	for rows.Next() {
		var kind registry.Kind
		var stored registry.Stored
		if err := rows.Scan(&kind, &stored.Records, &stored.Bytes); err != nil {
			return nil, told(err, doing)
		}
		usage[kind] = stored
	}
	return usage, told(rows.Err(), doing)
}

// TrimActivities removes the oldest entries of the activity log.
func (t *tx) TrimActivities(ctx context.Context, project int64, entries int, bytes int64) error {
	_, err := t.sql.ExecContext(ctx, `DELETE FROM activities WHERE id IN (
		SELECT id FROM (
			SELECT id, row_number() OVER newest AS place, sum(octet_length(name) + coalesce(octet_length(changes), 0)) OVER newest AS taken
			FROM activities WHERE project_id = ?1 WINDOW newest AS (ORDER BY id DESC)
		) WHERE place > ?2 OR taken > ?3
	)`, project, entries, bytes)
	t.wrote = true
	return told(err, "cutting the activity log")
}

// The records that a purge removes, of the project ?1 before the time ?2.
const (
	purgedInsights   = `SELECT id FROM insights WHERE project_id = ?1 AND deleted = 1 AND updated_at <= ?2`
	purgedDashboards = `SELECT id FROM dashboards WHERE project_id = ?1 AND deleted = 1 AND deleted_at <= ?2`
	purgedEndpoints  = `SELECT id FROM endpoints WHERE project_id = ?1 AND deleted_at <= ?2`

	// The keys that something of the project names as its author.
	authors = `SELECT created_by FROM insights WHERE project_id = ?1 UNION SELECT last_modified_by FROM insights WHERE project_id = ?1
		UNION SELECT created_by FROM dashboards WHERE project_id = ?1
		UNION SELECT created_by FROM insight_variables WHERE project_id = ?1
		UNION SELECT created_by FROM endpoints WHERE project_id = ?1
		UNION SELECT v.created_by FROM endpoint_versions v JOIN endpoints e ON e.id = v.endpoint_id WHERE e.project_id = ?1
		UNION SELECT created_by FROM keys WHERE project_id = ?1 AND created_by IS NOT NULL AND revoked_at IS NULL
		UNION SELECT text ->> 'created_by' FROM dashboard_tiles WHERE project_id = ?1 AND text IS NOT NULL
		UNION SELECT text ->> 'last_modified_by' FROM dashboard_tiles WHERE project_id = ?1 AND text IS NOT NULL
		UNION SELECT by FROM activities WHERE project_id = ?1`
)

// Purge removes what was deleted, revoked or expired before a time.
func (t *tx) Purge(ctx context.Context, project int64, before time.Time) (registry.Purged, error) {
	p := purge{tx: t, ctx: ctx, args: []any{project, toTime(before)}}
	var out registry.Purged
	out.Tiles = removed[int64](&p, `DELETE FROM dashboard_tiles WHERE project_id = ?1 AND (deleted = 1 AND deleted_at <= ?2
		OR dashboard_id IN (`+purgedDashboards+`) OR insight_id IN (`+purgedInsights+`)) RETURNING id`)
	p.remove(`DELETE FROM insight_views WHERE project_id = ?1 AND insight_id IN (` + purgedInsights + `)`)
	out.Insights = removed[int64](&p, `DELETE FROM insights WHERE id IN (`+purgedInsights+`) RETURNING id`)
	out.Dashboards = removed[int64](&p, `DELETE FROM dashboards WHERE id IN (`+purgedDashboards+`) RETURNING id`)
	p.remove(`DELETE FROM endpoint_versions WHERE endpoint_id IN (` + purgedEndpoints + `)`)
	out.Endpoints = p.remove(`DELETE FROM endpoints WHERE id IN (` + purgedEndpoints + `)`)
	p.remove(`UPDATE registry SET users = max(users, coalesce((SELECT max(user_id) FROM keys), 0)) WHERE ?1 = ?1 AND ?2 = ?2`)
	out.Keys = removed[string](&p, `DELETE FROM keys WHERE project_id = ?1 AND (revoked_at <= ?2 OR expires_at <= ?2)
		AND (kind = 'secret' OR id NOT IN (`+authors+`)) RETURNING id`)
	p.remove(`DELETE FROM insight_views WHERE project_id = ?1 AND viewer NOT IN (SELECT id FROM keys WHERE project_id = ?1) AND ?2 = ?2`)
	out.Cohorts = p.remove(`DELETE FROM cohorts WHERE project_id = ?1 AND deleted_at <= ?2 AND id < (SELECT max(id) FROM cohorts WHERE project_id = ?1)`)
	if p.err != nil {
		return registry.Purged{}, p.err
	}
	if len(out.Tiles)+len(out.Insights)+len(out.Dashboards)+len(out.Keys) > 0 {
		t.changed[project] = true
	}
	t.wrote = true
	return out, nil
}

// purge runs statements until one fails.
type purge struct {
	*tx

	ctx  context.Context //nolint:containedctx // it lives as long as one call
	args []any
	err  error
}

const purging = "purging what was deleted"

// remove runs a statement, and returns how many rows it removed.
func (p *purge) remove(statement string) int {
	if p.err != nil {
		return 0
	}
	result, err := p.sql.ExecContext(p.ctx, statement, p.args...)
	if err != nil {
		p.err = told(err, purging)
		return 0
	}
	n, err := result.RowsAffected()
	p.err = told(err, purging)
	return int(n)
}

// removed runs a statement that returns the ids of what it removes.
func removed[T any](p *purge, statement string) (ids []T) {
	if p.err != nil {
		return nil
	}
	rows, err := p.sql.QueryContext(p.ctx, statement, p.args...)
	if err != nil {
		p.err = told(err, purging)
		return nil
	}
	defer func() { _ = rows.Close() }() // what went wrong is in rows.Err
	for rows.Next() {
		var id T
		if err := rows.Scan(&id); err != nil {
			p.err = told(err, purging)
			return nil
		}
		ids = append(ids, id)
	}
	p.err = told(rows.Err(), purging)
	return ids
}
