package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Load returns the projects that changed after revision since.
func (s *Store) Load(ctx context.Context, since uint64) (_ *registry.Changes, err error) {
	sqlTx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one moment for all that follows
	if err != nil {
		return nil, fmt.Errorf("beginning to read: %w", err)
	}
	defer func() { _ = sqlTx.Rollback() }() // nothing was written
	var revision int64
	if err := sqlTx.QueryRowContext(ctx, `SELECT revision FROM registry`).Scan(&revision); err != nil {
		return nil, fmt.Errorf("reading the revision: %w", err)
	}
	l := loader{tx: sqlTx, since: since, index: make(map[int64]int), endpoints: make(map[string]place), boards: make(map[int64]place)}
	for _, step := range []func(context.Context) error{
		l.projects, l.keys, l.tokenSecrets, l.loadEndpoints, l.versions, l.variables, l.insights, l.dashboards, l.tiles,
		l.properties, l.groupTypes, l.cohorts,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return &registry.Changes{Revision: unsigned(revision), Projects: l.found}, nil
}

type loader struct {
	tx        *sql.Tx
	since     uint64
	found     []registry.ProjectRecord
	index     map[int64]int // number of a project → its place in found
	endpoints map[string]place
	boards    map[int64]place // number of a dashboard → its place
}

// place is where a record stands: the place of its project, and its own among the records of its kind.
type place struct{ project, at int }

// each calls row for the rows of a query that has since as its one argument.
func (l *loader) each(ctx context.Context, what, query string, row func(scanner) error) error {
	rows, err := l.tx.QueryContext(ctx, query, int64(l.since)) //nolint:gosec // a revision comes from an INTEGER column
	if err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	defer func() { _ = rows.Close() }() // what went wrong is in rows.Err
	for rows.Next() {
		if err := row(rows); err != nil {
			return fmt.Errorf("reading %s: %w", what, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	return nil
}

// ofChanged limits a query to the projects that changed.
const ofChanged = `project_id IN (SELECT id FROM projects WHERE revision > ?)`

func (l *loader) projects(ctx context.Context) error {
	return l.each(ctx, "projects", `SELECT `+projectColumns+` FROM projects WHERE revision > ? ORDER BY id`, func(row scanner) error {
		p, err := scanProject(row)
		l.index[p.ID] = len(l.found)
		l.found = append(l.found, registry.ProjectRecord{Project: p})
		return err
	})
}

func (l *loader) keys(ctx context.Context) error {
	return l.each(ctx, "keys", `SELECT `+keyColumns+` FROM keys WHERE `+ofChanged, func(row scanner) error {
		k, err := scanKey(row)
		if err != nil {
			return err
		}
		p := &l.found[l.index[k.Project]]
		p.Keys = append(p.Keys, k)
		return nil
	})
}

func (l *loader) tokenSecrets(ctx context.Context) error {
	return l.each(ctx, "secrets for tokens", `SELECT project_id, id, secret, created_at FROM token_secrets WHERE `+ofChanged+` ORDER BY `+newestFirst, func(row scanner) error {
		project, s, err := scanTokenSecret(row)
		if err != nil {
			return err
		}
		p := &l.found[l.index[project]]
		p.TokenSecrets = append(p.TokenSecrets, s)
		return nil
	})
}

// newestFirst is the order in which a project's secrets are put.
const newestFirst = `created_at DESC, id`

func scanTokenSecret(row scanner) (project int64, s registry.TokenSecret, err error) {
	var created sql.NullInt64
	var secret []byte
	err = row.Scan(&project, &s.ID, &secret, &created)
	copy(s.Secret[:], secret)
	s.CreatedAt = fromTime(created)
	return project, s, err
}

func (l *loader) loadEndpoints(ctx context.Context) error {
	return l.each(ctx, "endpoints", `SELECT `+endpointColumns+` FROM endpoints e WHERE e.deleted_at IS NULL AND e.`+ofChanged, func(row scanner) error {
		e, err := scanEndpoint(row)
		if err != nil {
			return err
		}
		p := &l.found[l.index[e.Project]]
		l.endpoints[e.ID] = place{l.index[e.Project], len(p.Endpoints)}
		p.Endpoints = append(p.Endpoints, e)
		return nil
	})
}

func (l *loader) versions(ctx context.Context) error {
	return l.each(ctx, "versions of endpoints", `SELECT `+versionColumns+` FROM endpoint_versions v JOIN endpoints e ON e.id = v.endpoint_id
		WHERE e.deleted_at IS NULL AND e.`+ofChanged+` ORDER BY v.endpoint_id, v.number`, func(row scanner) error {
		endpoint, v, err := scanVersion(row)
		if err != nil {
			return err
		}
		at := l.endpoints[endpoint]
		e := &l.found[at.project].Endpoints[at.at]
		e.Versions = append(e.Versions, v)
		return nil
	})
}

func (l *loader) variables(ctx context.Context) error {
	return l.each(ctx, "insight variables", `SELECT `+variableColumns+` FROM insight_variables WHERE `+ofChanged, func(row scanner) error {
		v, err := scanVariable(row)
		if err != nil {
			return err
		}
		p := &l.found[l.index[v.Project]]
		p.Variables = append(p.Variables, v)
		return nil
	})
}

func (l *loader) insights(ctx context.Context) error {
	return l.each(ctx, "insights", `SELECT `+insightColumns+` FROM insights WHERE `+ofChanged, func(row scanner) error {
		i, err := scanInsight(row)
		if err != nil {
			return err
		}
		p := &l.found[l.index[i.Project]]
		p.Insights = append(p.Insights, i)
		return nil
	})
}

func (l *loader) dashboards(ctx context.Context) error {
	return l.each(ctx, "dashboards", `SELECT `+dashboardColumns+` FROM dashboards WHERE `+ofChanged, func(row scanner) error {
		d, err := scanDashboard(row)
		if err != nil {
			return err
		}
		p := &l.found[l.index[d.Project]]
		l.boards[d.ID] = place{l.index[d.Project], len(p.Dashboards)}
		p.Dashboards = append(p.Dashboards, d)
		return nil
	})
}

func (l *loader) tiles(ctx context.Context) error {
	return l.each(ctx, "tiles of dashboards", `SELECT `+tileColumns+` FROM dashboard_tiles WHERE `+ofChanged+` ORDER BY id`, func(row scanner) error {
		t, err := scanTile(row)
		if err != nil {
			return err
		}
		at := l.boards[t.Dashboard]
		d := &l.found[at.project].Dashboards[at.at]
		d.Tiles = append(d.Tiles, t)
		return nil
	})
}

func (l *loader) properties(ctx context.Context) error {
	return l.each(ctx, "property definitions", `SELECT project_id, scope, group_type_index, name, type FROM property_definitions WHERE `+ofChanged, func(row scanner) error {
		var project int64
		var d registry.PropertyDefinition
		if err := row.Scan(&project, &d.Scope, &d.GroupTypeIndex, &d.Name, &d.Type); err != nil {
			return err
		}
		p := &l.found[l.index[project]]
		p.Properties = append(p.Properties, d)
		return nil
	})
}

func (l *loader) groupTypes(ctx context.Context) error {
	return l.each(ctx, "group types", `SELECT project_id, group_type_index, name FROM group_types WHERE `+ofChanged, func(row scanner) error {
		var project int64
		var g registry.GroupType
		if err := row.Scan(&project, &g.Index, &g.Name); err != nil {
			return err
		}
		p := &l.found[l.index[project]]
		p.GroupTypes = append(p.GroupTypes, g)
		return nil
	})
}

func (l *loader) cohorts(ctx context.Context) error {
	return l.each(ctx, "cohorts", `SELECT `+cohortColumns+` FROM cohorts WHERE deleted_at IS NULL AND `+ofChanged, func(row scanner) error {
		c, err := scanCohort(row)
		if err != nil {
			return err
		}
		p := &l.found[l.index[c.Project]]
		p.Cohorts = append(p.Cohorts, c)
		return nil
	})
}

// scanner is a row to read from.
type scanner interface{ Scan(into ...any) error }

func isNoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

const projectColumns = `id, name, timezone, week_start, created_at, test_account_filters, path_cleaning_filters`

func scanProject(row scanner) (p registry.Project, err error) {
	var created sql.NullInt64
	var tests, paths sql.NullString
	err = row.Scan(&p.ID, &p.Name, &p.Timezone, &p.WeekStart, &created, &tests, &paths)
	p.CreatedAt, p.TestAccountFilters, p.PathCleaningFilters = fromTime(created), tests.String, paths.String
	return p, err
}

const keyColumns = `id, user_id, project_id, kind, label, mask, hash, scopes, created_at, expires_at, last_used_at, last_rolled_at, revoked_at,
	fixed, endpoints, created_by`

func scanKey(row scanner) (k registry.Key, err error) {
	var hash []byte
	var scopes, fixed, endpoints, author sql.NullString
	var user, created, expires, used, rolled, revoked sql.NullInt64
	if err := row.Scan(&k.ID, &user, &k.Project, &k.Kind, &k.Label, &k.Mask, &hash, &scopes, &created, &expires, &used, &rolled, &revoked,
		&fixed, &endpoints, &author); err != nil {
		return k, err
	}
	copy(k.Hash[:], hash)
	k.User = user.Int64
	k.CreatedAt, k.ExpiresAt, k.LastUsedAt = fromTime(created), fromTime(expires), fromTime(used)
	k.LastRolledAt, k.RevokedAt = fromTime(rolled), fromTime(revoked)
	k.Fixed, k.CreatedBy = fixed.String, author.String
	if k.Endpoints, err = fromJSON[string](endpoints); err != nil {
		return k, err
	}
	k.Scopes, err = fromJSON[string](scopes)
	return k, err
}

const endpointColumns = `e.id, e.project_id, e.name, e.active, e.derived_from_insight, e.tags, e.current_version, e.created_at, e.updated_at,
	e.created_by, e.last_executed_at, e.rate_limit`

func scanEndpoint(row scanner) (e registry.Endpoint, err error) {
	var tags, rate sql.NullString
	var created, updated, executed sql.NullInt64
	if err := row.Scan(&e.ID, &e.Project, &e.Name, &e.Active, &e.DerivedFromInsight, &tags, &e.CurrentVersion, &created, &updated,
		&e.CreatedBy, &executed, &rate); err != nil {
		return e, err
	}
	if rate.Valid {
		if e.RateLimit, err = registry.ParseRate(rate.String); err != nil {
			return e, fmt.Errorf("reading the rate of endpoint %s: %w", e.ID, err)
		}
	}
	e.CreatedAt, e.UpdatedAt, e.LastExecutedAt = fromTime(created), fromTime(updated), fromTime(executed)
	e.Tags, err = fromJSON[string](tags)
	return e, err
}

const versionColumns = `v.endpoint_id, v.id, v.number, v.query, v.description, v.freshness_seconds, v.active, v.columns, v.created_at, v.updated_at,
	v.created_by, v.last_executed_at, v.published_at, v.deprecated_at, v.sunset_at, v.optional_breakdowns`

func scanVersion(row scanner) (endpoint string, v registry.Version, err error) {
	var query string
	var columns, optional sql.NullString
	var created, updated, executed, published, deprecated, sunset sql.NullInt64
	if err := row.Scan(&endpoint, &v.ID, &v.Number, &query, &v.Description, &v.FreshnessSeconds, &v.Active, &columns, &created, &updated,
		&v.CreatedBy, &executed, &published, &deprecated, &sunset, &optional); err != nil {
		return "", v, err
	}
	v.Query = json.RawMessage(query)
	v.CreatedAt, v.UpdatedAt, v.LastExecutedAt = fromTime(created), fromTime(updated), fromTime(executed)
	v.PublishedAt, v.DeprecatedAt, v.SunsetAt = fromTime(published), fromTime(deprecated), fromTime(sunset)
	if v.OptionalBreakdowns, err = fromJSON[string](optional); err != nil {
		return "", v, err
	}
	v.Columns, err = fromJSON[registry.Column](columns)
	return endpoint, v, err
}

const variableColumns = `id, project_id, name, code_name, type, default_value, list, is_multi, created_at, created_by`

func scanVariable(row scanner) (v registry.Variable, err error) {
	var def string
	var list sql.NullString
	var created sql.NullInt64
	if err := row.Scan(&v.ID, &v.Project, &v.Name, &v.CodeName, &v.Type, &def, &list, &v.IsMulti, &created, &v.CreatedBy); err != nil {
		return v, err
	}
	v.CreatedAt = fromTime(created)
	if v.Default, err = registry.DecodeJSON([]byte(def)); err != nil {
		return v, fmt.Errorf("a variable's default: %w", err)
	}
	if list.Valid {
		values, err := registry.DecodeJSON([]byte(list.String))
		if err != nil {
			return v, fmt.Errorf("a variable's values: %w", err)
		}
		v.Values, _ = values.([]any)
	}
	return v, nil
}
