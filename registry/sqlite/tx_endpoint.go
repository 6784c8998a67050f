package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Endpoint returns an endpoint with its versions.
func (t *tx) Endpoint(ctx context.Context, project int64, name string) (registry.Endpoint, error) {
	e, err := scanEndpoint(t.sql.QueryRowContext(ctx,
		`SELECT `+endpointColumns+` FROM endpoints e WHERE e.project_id = ? AND e.name = ? AND e.deleted_at IS NULL`, project, name))
	if err != nil {
		return e, told(err, "reading an endpoint")
	}
	rows, err := t.sql.QueryContext(ctx, `SELECT `+versionColumns+` FROM endpoint_versions v WHERE v.endpoint_id = ? ORDER BY v.number`, e.ID)
	if err != nil {
		return e, told(err, "reading the versions of an endpoint")
	}
	defer func() { _ = rows.Close() }() // what went wrong is in rows.Err
	for rows.Next() {
		_, v, err := scanVersion(rows)
		if err != nil {
			return e, told(err, "reading a version of an endpoint")
		}
		e.Versions = append(e.Versions, v)
	}
	return e, told(rows.Err(), "reading the versions of an endpoint")
}

// InsertEndpoint adds an endpoint and its versions.
func (t *tx) InsertEndpoint(ctx context.Context, e registry.Endpoint) error {
	tags, err := toJSON(e.Tags)
	if err != nil {
		return err
	}
	err = t.exec(ctx, e.Project, "adding an endpoint",
		`INSERT INTO endpoints (id, project_id, name, active, derived_from_insight, tags, current_version, created_at, updated_at, created_by, last_executed_at,
			rate_limit)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.ID, e.Project, e.Name, e.Active, e.DerivedFromInsight, tags, e.CurrentVersion,
		toTime(e.CreatedAt), toTime(e.UpdatedAt), e.CreatedBy, toTime(e.LastExecutedAt), textOrNull(e.RateLimit.String()))
	if err != nil {
		return err
	}
	for _, v := range e.Versions {
		if err := t.InsertVersion(ctx, e.ID, v); err != nil {
			return err
		}
	}
	return nil
}

// UpdateEndpoint replaces what of an endpoint can change.
func (t *tx) UpdateEndpoint(ctx context.Context, e registry.Endpoint) error {
	tags, err := toJSON(e.Tags)
	if err != nil {
		return err
	}
	return t.exec(ctx, e.Project, "changing an endpoint",
		`UPDATE endpoints SET active = ?, tags = ?, current_version = ?, updated_at = ?, last_executed_at = ?, rate_limit = ?
		WHERE id = ? AND project_id = ? AND deleted_at IS NULL`,
		e.Active, tags, e.CurrentVersion, toTime(e.UpdatedAt), toTime(e.LastExecutedAt), textOrNull(e.RateLimit.String()), e.ID, e.Project)
}

// InsertVersion adds a version.
func (t *tx) InsertVersion(ctx context.Context, endpoint string, v registry.Version) error {
	columns, optional, err := versionJSON(v)
	if err != nil {
		return err
	}
	return t.markingEndpoint(ctx, endpoint, "adding a version of an endpoint",
		`INSERT INTO endpoint_versions (id, endpoint_id, number, query, description, freshness_seconds, active, columns, created_at, updated_at, created_by,
			last_executed_at, published_at, deprecated_at, sunset_at, optional_breakdowns)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		v.ID, endpoint, v.Number, string(v.Query), v.Description, v.FreshnessSeconds, v.Active, columns, toTime(v.CreatedAt), toTime(v.UpdatedAt),
		v.CreatedBy, toTime(v.LastExecutedAt), toTime(v.PublishedAt), toTime(v.DeprecatedAt), toTime(v.SunsetAt), optional)
}

// UpdateVersion replaces what of a version can change.
func (t *tx) UpdateVersion(ctx context.Context, endpoint string, v registry.Version) error {
	columns, optional, err := versionJSON(v)
	if err != nil {
		return err
	}
	return t.markingEndpoint(ctx, endpoint, "changing a version of an endpoint",
		`UPDATE endpoint_versions SET description = ?, freshness_seconds = ?, active = ?, columns = ?, updated_at = ?, last_executed_at = ?,
			published_at = ?, deprecated_at = ?, sunset_at = ?, optional_breakdowns = ?
		WHERE endpoint_id = ? AND number = ?`,
		v.Description, v.FreshnessSeconds, v.Active, columns, toTime(v.UpdatedAt), toTime(v.LastExecutedAt),
		toTime(v.PublishedAt), toTime(v.DeprecatedAt), toTime(v.SunsetAt), optional, endpoint, v.Number)
}

// versionJSON returns the JSON texts of a version's lists.
func versionJSON(v registry.Version) (columns, optional sql.NullString, err error) {
	if columns, err = toJSON(v.Columns); err != nil {
		return columns, optional, err
	}
	optional, err = toJSON(v.OptionalBreakdowns)
	return columns, optional, err
}

// markingEndpoint is exec for a statement on a part of an endpoint.
func (t *tx) markingEndpoint(ctx context.Context, endpoint, doing, statement string, args ...any) error {
	var project int64
	err := t.sql.QueryRowContext(ctx, `SELECT project_id FROM endpoints WHERE id = ? AND deleted_at IS NULL`, endpoint).Scan(&project)
	if err != nil {
		return told(err, doing)
	}
	return t.exec(ctx, project, doing, statement, args...)
}

// DeleteEndpoint hides an endpoint.
func (t *tx) DeleteEndpoint(ctx context.Context, endpoint string, at time.Time) error {
	return t.markingEndpoint(ctx, endpoint, "deleting an endpoint", `UPDATE endpoints SET deleted_at = ? WHERE id = ?`, toTime(at), endpoint)
}

// EndpointExecuted moves the last execution of an endpoint and one of its versions forward.
func (t *tx) EndpointExecuted(ctx context.Context, endpoint string, version int, at time.Time) (bool, error) {
	const doing = "recording the execution of an endpoint"
	moved, err := t.execReturning(ctx, doing,
		`UPDATE endpoint_versions SET last_executed_at = ?1 WHERE endpoint_id = ?2 AND number = ?3 AND coalesce(last_executed_at < ?1, TRUE)
		RETURNING (SELECT project_id FROM endpoints WHERE id = ?2)`, toTime(at), endpoint, version)
	if err != nil || !moved {
		return false, err
	}
	_, err = t.execReturning(ctx, doing,
		`UPDATE endpoints SET last_executed_at = ?1 WHERE id = ?2 AND coalesce(last_executed_at < ?1, TRUE) RETURNING project_id`, toTime(at), endpoint)
	return true, err
}

// Variable returns an insight variable.
func (t *tx) Variable(ctx context.Context, project int64, id string) (registry.Variable, error) {
	v, err := scanVariable(t.sql.QueryRowContext(ctx, `SELECT `+variableColumns+` FROM insight_variables WHERE project_id = ? AND id = ?`, project, id))
	return v, told(err, "reading an insight variable")
}

// InsertVariable adds an insight variable.
func (t *tx) InsertVariable(ctx context.Context, v registry.Variable) error {
	def, list, err := variableJSON(v)
	if err != nil {
		return err
	}
	return t.exec(ctx, v.Project, "adding an insight variable",
		`INSERT INTO insight_variables (`+variableColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		v.ID, v.Project, v.Name, v.CodeName, v.Type, def, list, v.IsMulti, toTime(v.CreatedAt), v.CreatedBy)
}

// UpdateVariable replaces what of an insight variable can change.
func (t *tx) UpdateVariable(ctx context.Context, v registry.Variable) error {
	def, list, err := variableJSON(v)
	if err != nil {
		return err
	}
	return t.exec(ctx, v.Project, "changing an insight variable",
		`UPDATE insight_variables SET name = ?, type = ?, default_value = ?, list = ?, is_multi = ? WHERE project_id = ? AND id = ?`,
		v.Name, v.Type, def, list, v.IsMulti, v.Project, v.ID)
}

// DeleteVariable removes an insight variable.
func (t *tx) DeleteVariable(ctx context.Context, project int64, id string) error {
	return t.exec(ctx, project, "deleting an insight variable", `DELETE FROM insight_variables WHERE project_id = ? AND id = ?`, project, id)
}

// variableJSON returns the JSON texts of a variable's default and values.
func variableJSON(v registry.Variable) (def string, list any, err error) {
	text, err := json.Marshal(v.Default)
	if err != nil {
		return "", nil, fmt.Errorf("writing a variable's default: %w", err)
	}
	values, err := toJSON(v.Values)
	return string(text), values, err
}
