package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

const cohortColumns = `id, project_id, name, created_at`

func scanCohort(row scanner) (c registry.Cohort, err error) {
	var created sql.NullInt64
	err = row.Scan(&c.ID, &c.Project, &c.Name, &created)
	c.CreatedAt = fromTime(created)
	return c, err
}

// Cohort returns a cohort.
func (t *tx) Cohort(ctx context.Context, project, id int64) (registry.Cohort, error) {
	c, err := scanCohort(t.sql.QueryRowContext(ctx,
		`SELECT `+cohortColumns+` FROM cohorts WHERE project_id = ? AND id = ? AND deleted_at IS NULL`, project, id))
	return c, told(err, "reading a cohort")
}

// InsertCohort adds a cohort. A deleted one of its number makes room.
func (t *tx) InsertCohort(ctx context.Context, c registry.Cohort) (int64, error) {
	if _, err := t.sql.ExecContext(ctx, `DELETE FROM cohorts WHERE project_id = ? AND id = ? AND deleted_at IS NOT NULL`, c.Project, c.ID); err != nil {
		return 0, told(err, "making room for a cohort")
	}
	return t.insert(ctx, c.Project, "adding a cohort",
		`INSERT INTO cohorts (project_id, id, name, created_at)
		VALUES (?1, coalesce(nullif(?2, 0), (SELECT coalesce(max(id), 0) + 1 FROM cohorts WHERE project_id = ?1)), ?3, ?4) RETURNING id`,
		c.Project, c.ID, c.Name, toTime(c.CreatedAt))
}

// UpdateCohort replaces the name of a cohort.
func (t *tx) UpdateCohort(ctx context.Context, c registry.Cohort) error {
	return t.exec(ctx, c.Project, "changing a cohort",
		`UPDATE cohorts SET name = ? WHERE project_id = ? AND id = ? AND deleted_at IS NULL`, c.Name, c.Project, c.ID)
}

// DeleteCohort hides a cohort and frees its name.
func (t *tx) DeleteCohort(ctx context.Context, project, id int64, at time.Time) error {
	return t.exec(ctx, project, "deleting a cohort",
		`UPDATE cohorts SET deleted_at = ? WHERE project_id = ? AND id = ? AND deleted_at IS NULL`, toTime(at), project, id)
}
