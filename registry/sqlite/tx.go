package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// tx is a registry.Tx.
type tx struct {
	sql     *sql.Tx
	changed map[int64]bool // numbers of projects
	wrote   bool           // something that Load does not give
}

var _ registry.Tx = (*tx)(nil)

// stamp counts the revision up, and marks the changed projects with it.
func (t *tx) stamp(ctx context.Context) (uint64, error) {
	var revision int64
	if err := t.sql.QueryRowContext(ctx, `UPDATE registry SET revision = revision + 1 RETURNING revision`).Scan(&revision); err != nil {
		return 0, fmt.Errorf("counting the revision up: %w", err)
	}
	for id := range t.changed {
		if _, err := t.sql.ExecContext(ctx, `UPDATE projects SET revision = ? WHERE id = ?`, revision, id); err != nil {
			return 0, fmt.Errorf("marking project %d as changed: %w", id, err)
		}
	}
	return unsigned(revision), nil
}

// exec runs a statement that changes something of a project. One that finds no row gives ErrNotFound.
func (t *tx) exec(ctx context.Context, project int64, doing, statement string, args ...any) error {
	result, err := t.sql.ExecContext(ctx, statement, args...)
	if err != nil {
		return told(err, doing)
	}
	rows, err := result.RowsAffected()
	switch {
	case err != nil:
		return told(err, doing)
	case rows == 0:
		return registry.ErrNotFound
	}
	t.changed[project] = true
	return nil
}

// execReturning runs a statement on one row that returns its project. It tells whether there was one.
func (t *tx) execReturning(ctx context.Context, doing, statement string, args ...any) (bool, error) {
	var project int64
	switch err := t.sql.QueryRowContext(ctx, statement, args...).Scan(&project); {
	case err == nil:
		t.changed[project] = true
		return true, nil
	case isNoRows(err):
		return false, nil
	default:
		return false, told(err, doing)
	}
}

// InsertProject adds a project.
func (t *tx) InsertProject(ctx context.Context, p registry.Project) (int64, error) {
	var id int64
	err := t.sql.QueryRowContext(ctx, `INSERT INTO projects (name, timezone, week_start, created_at, test_account_filters, path_cleaning_filters)
		VALUES (?, ?, ?, ?, ?, ?) RETURNING id`,
		p.Name, p.Timezone, p.WeekStart, toTime(p.CreatedAt), textOrNull(p.TestAccountFilters), textOrNull(p.PathCleaningFilters)).Scan(&id)
	if err != nil {
		return 0, told(err, "adding a project")
	}
	t.changed[id] = true
	return id, nil
}

// UpdateProject replaces all but the number and the time of a project.
func (t *tx) UpdateProject(ctx context.Context, p registry.Project) error {
	return t.exec(ctx, p.ID, "changing a project",
		`UPDATE projects SET name = ?, timezone = ?, week_start = ?, test_account_filters = ?, path_cleaning_filters = ? WHERE id = ?`,
		p.Name, p.Timezone, p.WeekStart, textOrNull(p.TestAccountFilters), textOrNull(p.PathCleaningFilters), p.ID)
}

// Project returns a project.
func (t *tx) Project(ctx context.Context, id int64) (registry.Project, error) {
	p, err := scanProject(t.sql.QueryRowContext(ctx, `SELECT `+projectColumns+` FROM projects WHERE id = ?`, id))
	return p, told(err, "reading a project")
}

// Key returns a key.
func (t *tx) Key(ctx context.Context, id string) (registry.Key, error) {
	k, err := scanKey(t.sql.QueryRowContext(ctx, `SELECT `+keyColumns+` FROM keys WHERE id = ?`, id))
	return k, told(err, "reading a key")
}

// CountKeys counts the keys of one kind that are not revoked.
func (t *tx) CountKeys(ctx context.Context, project int64, kind registry.KeyKind) (int, error) {
	var n int
	err := t.sql.QueryRowContext(ctx, `SELECT count(*) FROM keys WHERE project_id = ? AND kind = ? AND revoked_at IS NULL`, project, kind).Scan(&n)
	return n, told(err, "counting keys")
}

// NextUser returns the number of a new user. A purge remembers the greatest one, so that no number comes twice.
func (t *tx) NextUser(ctx context.Context) (int64, error) {
	var user int64
	err := t.sql.QueryRowContext(ctx, `SELECT max(users, coalesce((SELECT max(user_id) FROM keys), 0)) + 1 FROM registry`).Scan(&user)
	return user, told(err, "numbering a user")
}

// InsertKey adds a key.
func (t *tx) InsertKey(ctx context.Context, k registry.Key) error {
	scopes, err := toJSON(k.Scopes)
	if err != nil {
		return err
	}
	endpoints, err := toJSON(k.Endpoints)
	if err != nil {
		return err
	}
	return t.exec(ctx, k.Project, "adding a key",
		`INSERT INTO keys (`+keyColumns+`) VALUES (?, nullif(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		k.ID, k.User, k.Project, k.Kind, k.Label, k.Mask, k.Hash[:], scopes,
		toTime(k.CreatedAt), toTime(k.ExpiresAt), toTime(k.LastUsedAt), toTime(k.LastRolledAt), toTime(k.RevokedAt),
		textOrNull(k.Fixed), endpoints, textOrNull(k.CreatedBy))
}

// UpdateKey replaces a key's label, hash, mask, scopes and times.
func (t *tx) UpdateKey(ctx context.Context, k registry.Key) error {
	scopes, err := toJSON(k.Scopes)
	if err != nil {
		return err
	}
	return t.exec(ctx, k.Project, "changing a key",
		`UPDATE keys SET label = ?, scopes = ?, hash = ?, mask = ?, expires_at = ?, last_used_at = ?, last_rolled_at = ?, revoked_at = ? WHERE id = ? AND project_id = ?`,
		k.Label, scopes, k.Hash[:], k.Mask, toTime(k.ExpiresAt), toTime(k.LastUsedAt), toTime(k.LastRolledAt), toTime(k.RevokedAt), k.ID, k.Project)
}

// KeyUsed moves a key's last use forward.
func (t *tx) KeyUsed(ctx context.Context, id string, at time.Time) (bool, error) {
	return t.execReturning(ctx, "recording the use of a key",
		`UPDATE keys SET last_used_at = ?1 WHERE id = ?2 AND coalesce(last_used_at < ?1, TRUE) RETURNING project_id`, toTime(at), id)
}

// TokenSecrets returns a project's secrets for tokens.
func (t *tx) TokenSecrets(ctx context.Context, project int64) (_ []registry.TokenSecret, err error) {
	rows, err := t.sql.QueryContext(ctx, `SELECT project_id, id, secret, created_at FROM token_secrets WHERE project_id = ? ORDER BY `+newestFirst, project)
	if err != nil {
		return nil, told(err, "reading secrets for tokens")
	}
	defer func() { _ = rows.Close() }() // what went wrong is in rows.Err
	var secrets []registry.TokenSecret
	for rows.Next() {
		_, s, err := scanTokenSecret(rows)
		if err != nil {
			return nil, told(err, "reading secrets for tokens")
		}
		secrets = append(secrets, s)
	}
	return secrets, told(rows.Err(), "reading secrets for tokens")
}

// PutTokenSecrets replaces a project's secrets for tokens.
func (t *tx) PutTokenSecrets(ctx context.Context, project int64, secrets []registry.TokenSecret) error {
	if _, err := t.sql.ExecContext(ctx, `DELETE FROM token_secrets WHERE project_id = ?`, project); err != nil {
		return told(err, "replacing secrets for tokens")
	}
	t.changed[project] = true
	for _, s := range secrets {
		if err := t.exec(ctx, project, "adding a secret for tokens",
			`INSERT INTO token_secrets (id, project_id, secret, created_at) VALUES (?, ?, ?, ?)`, s.ID, project, s.Secret[:], toTime(s.CreatedAt)); err != nil {
			return err
		}
	}
	return nil
}

// PutProperties sets or learns the types of properties.
func (t *tx) PutProperties(ctx context.Context, project int64, defs []registry.PropertyDefinition, learn bool) ([]registry.PropertyDefinition, error) {
	if len(defs) == 0 {
		return nil, nil
	}
	conflict := `DO UPDATE SET type = excluded.type WHERE type <> excluded.type`
	if learn {
		conflict = `DO NOTHING`
	}
	insert, err := t.sql.PrepareContext(ctx, `INSERT INTO property_definitions (project_id, scope, group_type_index, name, type) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (project_id, scope, group_type_index, name) `+conflict)
	if err != nil {
		return nil, told(err, "recording property definitions")
	}
	defer func() { _ = insert.Close() }() // the transaction's end closes it too
	var changed []registry.PropertyDefinition
	for _, d := range defs {
		result, err := insert.ExecContext(ctx, project, d.Scope, d.GroupTypeIndex, d.Name, d.Type)
		if err != nil {
			return nil, told(err, "recording a property definition")
		}
		rows, err := result.RowsAffected()
		if err != nil {
			return nil, told(err, "recording a property definition")
		}
		if rows > 0 {
			changed = append(changed, d)
			t.changed[project] = true
		}
	}
	return changed, nil
}

// PutGroupTypes adds group types.
func (t *tx) PutGroupTypes(ctx context.Context, project int64, types []registry.GroupType) ([]registry.GroupType, error) {
	var added []registry.GroupType
	for _, g := range types {
		result, err := t.sql.ExecContext(ctx, `INSERT INTO group_types (project_id, group_type_index, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
			project, g.Index, g.Name)
		if err != nil {
			return nil, told(err, "recording a group type")
		}
		rows, err := result.RowsAffected()
		if err != nil {
			return nil, told(err, "recording a group type")
		}
		if rows > 0 {
			added = append(added, g)
			t.changed[project] = true
			continue
		}
		var same bool
		if err := t.sql.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM group_types WHERE project_id = ? AND group_type_index = ? AND name = ?)`,
			project, g.Index, g.Name).Scan(&same); err != nil {
			return nil, told(err, "looking for a group type")
		}
		if !same {
			return nil, &registry.ConflictError{Field: registry.ConflictGroupType}
		}
	}
	return added, nil
}
