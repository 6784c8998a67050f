package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

const insightColumns = `id, project_id, short_id, name, derived_name, description, query, filters, sort, deleted, favorited, saved, tags,
	created_at, updated_at, last_modified_at, created_by, last_modified_by, needs_query_scope`

func scanInsight(row scanner) (i registry.Insight, err error) {
	var query sql.NullString
	var filters string
	var tags sql.NullString
	var created, updated, modified sql.NullInt64
	if err := row.Scan(&i.ID, &i.Project, &i.ShortID, &i.Name, &i.DerivedName, &i.Description, &query, &filters, &i.Order,
		&i.Deleted, &i.Favorited, &i.Saved, &tags, &created, &updated, &modified, &i.CreatedBy, &i.LastModifiedBy, &i.NeedsQueryScope); err != nil {
		return i, err
	}
	if query.Valid {
		i.Query = json.RawMessage(query.String)
	}
	i.Filters = json.RawMessage(filters)
	i.CreatedAt, i.UpdatedAt, i.LastModifiedAt = fromTime(created), fromTime(updated), fromTime(modified)
	i.Tags, err = fromJSON[string](tags)
	return i, err
}

// Insight returns an insight, deleted ones too.
func (t *tx) Insight(ctx context.Context, project, id int64) (registry.Insight, error) {
	i, err := scanInsight(t.sql.QueryRowContext(ctx, `SELECT `+insightColumns+` FROM insights WHERE project_id = ? AND id = ?`, project, id))
	return i, told(err, "reading an insight")
}

// InsertInsight adds an insight.
func (t *tx) InsertInsight(ctx context.Context, i registry.Insight) (int64, error) {
	tags, err := toJSON(i.Tags)
	if err != nil {
		return 0, err
	}
	return t.insert(ctx, i.Project, "adding an insight",
		`INSERT INTO insights (project_id, short_id, name, derived_name, description, query, filters, sort, deleted, favorited, saved, tags,
			created_at, updated_at, last_modified_at, created_by, last_modified_by, needs_query_scope)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
		i.Project, i.ShortID, i.Name, i.DerivedName, i.Description, orNull(i.Query), string(i.Filters), i.Order, i.Deleted, i.Favorited,
		i.Saved, tags, toTime(i.CreatedAt), toTime(i.UpdatedAt), toTime(i.LastModifiedAt), i.CreatedBy, i.LastModifiedBy, i.NeedsQueryScope)
}

// UpdateInsight replaces what of an insight can change.
func (t *tx) UpdateInsight(ctx context.Context, i registry.Insight) error {
	tags, err := toJSON(i.Tags)
	if err != nil {
		return err
	}
	return t.exec(ctx, i.Project, "changing an insight",
		`UPDATE insights SET name = ?, derived_name = ?, description = ?, query = ?, filters = ?, sort = ?, deleted = ?, favorited = ?, saved = ?,
			tags = ?, updated_at = ?, last_modified_at = ?, last_modified_by = ?, needs_query_scope = ? WHERE id = ? AND project_id = ?`,
		i.Name, i.DerivedName, i.Description, orNull(i.Query), string(i.Filters), i.Order, i.Deleted, i.Favorited, i.Saved,
		tags, toTime(i.UpdatedAt), toTime(i.LastModifiedAt), i.LastModifiedBy, i.NeedsQueryScope, i.ID, i.Project)
}

// insert runs an INSERT that returns the new row's number.
func (t *tx) insert(ctx context.Context, project int64, doing, statement string, args ...any) (id int64, err error) {
	if err := t.sql.QueryRowContext(ctx, statement, args...).Scan(&id); err != nil {
		return 0, told(err, doing)
	}
	t.changed[project] = true
	return id, nil
}

// InsertActivity adds an entry to the activity log.
func (t *tx) InsertActivity(ctx context.Context, a registry.Activity) error {
	changes, err := toJSON(a.Changes)
	if err != nil {
		return err
	}
	_, err = t.sql.ExecContext(ctx, `INSERT INTO activities (`+activityColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ID, a.Project, a.Scope, a.Item, a.Activity, a.Name, a.ShortID, changes, toTime(a.At), a.By)
	t.wrote = true
	return told(err, "adding to the activity log")
}

// RecordViews moves the last view of insights forward.
func (t *tx) RecordViews(ctx context.Context, project int64, viewer string, insights []int64, at time.Time) error {
	const doing = "recording views of insights"
	record, err := t.sql.PrepareContext(ctx, `INSERT INTO insight_views (project_id, insight_id, viewer, at) VALUES (?, ?, ?, ?)
		ON CONFLICT (project_id, insight_id, viewer) DO UPDATE SET at = excluded.at WHERE at < excluded.at`)
	if err != nil {
		return told(err, doing)
	}
	defer func() { _ = record.Close() }() // the transaction's end closes it too
	for _, id := range insights {
		if _, err := record.ExecContext(ctx, project, id, viewer, toTime(at)); err != nil {
			return told(err, doing)
		}
	}
	t.wrote = true
	return nil
}

const activityColumns = `id, project_id, scope, item, activity, name, short_id, changes, at, by`

// The activities of one thing, and those of all of its kind: each has an index of its own.
const (
	activitiesOfItem  = ` FROM activities WHERE project_id = ?1 AND scope = ?2 AND item = ?3`
	activitiesOfScope = ` FROM activities WHERE project_id = ?1 AND scope = ?2 AND ?3 = ''`
	activitiesPage    = ` ORDER BY id DESC LIMIT ?4 OFFSET ?5`
)

// Activities returns a part of a project's activity log, newest first.
func (s *Store) Activities(ctx context.Context, project int64, page registry.ActivityPage) ([]registry.Activity, int, error) {
	const doing = "reading the activity log"
	count, entriesOf := `SELECT count(*)`+activitiesOfItem, `SELECT `+activityColumns+activitiesOfItem+activitiesPage
	if page.Item == "" {
		count, entriesOf = `SELECT count(*)`+activitiesOfScope, `SELECT `+activityColumns+activitiesOfScope+activitiesPage
	}
	var total int
	if err := s.read.QueryRowContext(ctx, count, project, page.Scope, page.Item).Scan(&total); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", doing, err)
	}
	rows, err := s.read.QueryContext(ctx, entriesOf, project, page.Scope, page.Item, page.Limit, page.Offset)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", doing, err)
	}
	defer func() { _ = rows.Close() }() // what went wrong is in rows.Err
	var entries []registry.Activity
	for rows.Next() {
		var a registry.Activity
		var changes sql.NullString
		var at sql.NullInt64
		if err := rows.Scan(&a.ID, &a.Project, &a.Scope, &a.Item, &a.Activity, &a.Name, &a.ShortID, &changes, &at, &a.By); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", doing, err)
		}
		a.At = fromTime(at)
		if a.Changes, err = fromJSON[registry.FieldChange](changes); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", doing, err)
		}
		entries = append(entries, a)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", doing, err)
	}
	return entries, total, nil
}

// Views returns the views of a project's insights since a time, newest first.
func (s *Store) Views(ctx context.Context, project int64, since time.Time) ([]registry.View, error) {
	const doing = "reading the views of insights"
	rows, err := s.read.QueryContext(ctx, `SELECT insight_id, viewer, at FROM insight_views WHERE project_id = ? AND at >= ?
		ORDER BY at DESC, insight_id, viewer`, project, toTime(since).Int64)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	defer func() { _ = rows.Close() }() // what went wrong is in rows.Err
	var views []registry.View
	for rows.Next() {
		var v registry.View
		var at sql.NullInt64
		if err := rows.Scan(&v.Insight, &v.Viewer, &at); err != nil {
			return nil, fmt.Errorf("%s: %w", doing, err)
		}
		v.At = fromTime(at)
		views = append(views, v)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return views, nil
}
