-- This makes records of the tables up to version 14. rfc3339 and id_text are functions of the program.

INSERT INTO records SELECT id, 'project', '', old.revision, json_object('id', p.id, 'name', name, 'timezone', timezone, 'week_start', week_start,
        'created_at', rfc3339(created_at), 'test_account_filters', coalesce(test_account_filters, ''),
        'path_cleaning_filters', coalesce(path_cleaning_filters, ''))
    FROM projects p, (SELECT revision FROM old_registry) old;

INSERT INTO records SELECT project_id, 'key', k.id, old.revision, json_object('id', k.id, 'user', coalesce(user_id, 0), 'kind', kind, 'label', label,
        'mask', mask, 'hash', lower(hex(hash)), 'scopes', json(scopes), 'created_at', rfc3339(created_at), 'expires_at', rfc3339(expires_at),
        'last_used_at', rfc3339(last_used_at), 'last_rolled_at', rfc3339(last_rolled_at), 'revoked_at', rfc3339(revoked_at),
        'fixed', coalesce(fixed, ''), 'endpoints', json(endpoints), 'created_by', coalesce(created_by, ''))
    FROM keys k, (SELECT revision FROM old_registry) old;

INSERT INTO records SELECT project_id, 'token_secrets', '', old.revision, json_object('secrets',
        json_group_array(json_object('id', s.id, 'secret', lower(hex(secret)), 'created_at', rfc3339(created_at)) ORDER BY created_at DESC, s.id))
    FROM token_secrets s, (SELECT revision FROM old_registry) old GROUP BY project_id;

INSERT INTO records SELECT project_id, 'endpoint', e.id, old.revision, json_object('id', e.id, 'name', name, 'active', json(iif(active, 'true', 'false')),
        'derived_from_insight', derived_from_insight, 'tags', json(tags), 'current_version', current_version, 'created_at', rfc3339(created_at),
        'updated_at', rfc3339(updated_at), 'created_by', created_by, 'last_executed_at', rfc3339(last_executed_at), 'rate_limit', rate_limit,
        'deleted_at', rfc3339(deleted_at))
    FROM endpoints e, (SELECT revision FROM old_registry) old;

INSERT INTO records SELECT e.project_id, 'version', e.id || '/' || v.number, old.revision, json_object('id', v.id, 'number', number, 'query', json(query),
        'description', description, 'freshness_seconds', freshness_seconds, 'active', json(iif(v.active, 'true', 'false')), 'columns', json(columns),
        'created_at', rfc3339(v.created_at), 'updated_at', rfc3339(v.updated_at), 'created_by', v.created_by,
        'last_executed_at', rfc3339(v.last_executed_at), 'published_at', rfc3339(published_at), 'deprecated_at', rfc3339(deprecated_at),
        'sunset_at', rfc3339(sunset_at), 'optional_breakdowns', json(optional_breakdowns))
    FROM endpoint_versions v JOIN endpoints e ON e.id = v.endpoint_id, (SELECT revision FROM old_registry) old;

INSERT INTO records SELECT project_id, 'variable', v.id, old.revision, json_object('id', v.id, 'name', name, 'code_name', code_name, 'type', type,
        'default', json(default_value), 'values', json(coalesce(list, 'null')), 'is_multi', json(iif(is_multi, 'true', 'false')),
        'created_at', rfc3339(created_at), 'created_by', created_by)
    FROM insight_variables v, (SELECT revision FROM old_registry) old;

-- A query that is not there has no field.
INSERT INTO records SELECT project_id, 'insight', CAST(i.id AS TEXT), old.revision, iif(query IS NULL, json_remove(i.data, '$.query'), i.data)
    FROM (SELECT *, json_object('id', id, 'short_id', short_id, 'name', name, 'derived_name', derived_name, 'description', description,
        'query', json(query), 'needs_query_scope', json(iif(needs_query_scope, 'true', 'false')), 'filters', json(filters), 'order', sort,
        'deleted', json(iif(deleted, 'true', 'false')), 'favorited', json(iif(favorited, 'true', 'false')), 'saved', json(iif(saved, 'true', 'false')),
        'tags', json(tags), 'created_at', rfc3339(created_at), 'updated_at', rfc3339(updated_at), 'last_modified_at', rfc3339(last_modified_at),
        'created_by', created_by, 'last_modified_by', last_modified_by) AS data FROM insights) i, (SELECT revision FROM old_registry) old;

INSERT INTO records SELECT project_id, 'dashboard', CAST(d.id AS TEXT), old.revision, json_object('id', d.id, 'name', name, 'description', description,
        'pinned', json(iif(pinned, 'true', 'false')), 'deleted', json(iif(deleted, 'true', 'false')), 'deleted_at', rfc3339(deleted_at),
        'filters', json(filters), 'variables', json(variables), 'breakdown_color', json(breakdown_color), 'color_theme', color_theme,
        'tags', json(tags), 'created_at', rfc3339(created_at), 'created_by', created_by)
    FROM dashboards d, (SELECT revision FROM old_registry) old;

INSERT INTO records SELECT project_id, 'tile', dashboard_id || '/' || t.id, old.revision, json_object('id', t.id, 'dashboard', dashboard_id,
        'insight', coalesce(insight_id, 0), 'text', json(text), 'layouts', json(layouts), 'color', color,
        'show_description', json(iif(show_description IS NULL, 'null', iif(show_description, 'true', 'false'))),
        'filter_overrides', json(filter_overrides), 'deleted', json(iif(deleted, 'true', 'false')), 'deleted_at', rfc3339(deleted_at))
    FROM dashboard_tiles t, (SELECT revision FROM old_registry) old;

INSERT INTO records SELECT project_id, 'property', scope || '/' || group_type_index || '/' || id_text(name), old.revision,
        json_object('scope', scope, 'group_type_index', group_type_index, 'name', name, 'type', type)
    FROM property_definitions, (SELECT revision FROM old_registry) old;

INSERT INTO records SELECT project_id, 'group_type', CAST(group_type_index AS TEXT), old.revision, json_object('index', group_type_index, 'name', name)
    FROM group_types, (SELECT revision FROM old_registry) old;

INSERT INTO records SELECT project_id, 'cohort', CAST(c.id AS TEXT), old.revision, json_object('id', c.id, 'name', name, 'created_at', rfc3339(created_at),
        'deleted_at', rfc3339(deleted_at))
    FROM cohorts c, (SELECT revision FROM old_registry) old;

-- The last number that was given of each kind.
INSERT INTO records SELECT 0, 'sequence', kind, old.revision, json_object('last', last) FROM (
        SELECT 'project' AS kind, coalesce(max(seq), 0) AS last FROM sqlite_sequence WHERE name = 'projects'
        UNION ALL SELECT 'insight', coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'insights'
        UNION ALL SELECT 'dashboard', coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'dashboards'
        UNION ALL SELECT 'tile', coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'dashboard_tiles'
        UNION ALL SELECT 'user', max((SELECT users FROM old_registry), (SELECT coalesce(max(user_id), 0) FROM keys))
    ), (SELECT revision FROM old_registry) old WHERE last > 0;

INSERT INTO entries SELECT project_id, 'activity/' || scope, id, item, by, at,
        json_object('activity', activity, 'name', name, 'short_id', short_id, 'changes', json(changes))
    FROM activities;
INSERT INTO entries SELECT project_id, 'view', insight_id || '/' || viewer, CAST(insight_id AS TEXT), viewer, at, NULL FROM insight_views;

UPDATE registry SET revision = (SELECT revision FROM old_registry);

DROP TABLE insight_views;
DROP TABLE activities;
DROP TABLE dashboard_tiles;
DROP TABLE dashboards;
DROP TABLE insights;
DROP TABLE endpoint_versions;
DROP TABLE endpoints;
DROP TABLE insight_variables;
DROP TABLE token_secrets;
DROP TABLE keys;
DROP TABLE property_definitions;
DROP TABLE group_types;
DROP TABLE cohorts;
DROP TABLE IF EXISTS usage;
DROP TABLE projects;
DROP TABLE old_registry;
