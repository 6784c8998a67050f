-- +goose Up

-- When a dashboard or a tile was deleted; NULL for one that is not. Those that are deleted already count from now on.
ALTER TABLE dashboards ADD COLUMN deleted_at INTEGER;
UPDATE dashboards SET deleted_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000000 WHERE deleted = 1;
ALTER TABLE dashboard_tiles ADD COLUMN deleted_at INTEGER;
UPDATE dashboard_tiles SET deleted_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000000 WHERE deleted = 1;

-- users is the greatest number of a user whose key was removed.
ALTER TABLE registry ADD COLUMN users INTEGER NOT NULL DEFAULT 0;

-- usage is how many records of each kind a project has, deleted ones too, and what their texts take. Triggers keep it, so that nothing
-- is counted when it is asked for.
CREATE TABLE usage (
    project_id INTEGER NOT NULL REFERENCES projects (id),
    kind       TEXT    NOT NULL,
    records    INTEGER NOT NULL DEFAULT 0,
    bytes      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (project_id, kind)
) STRICT, WITHOUT ROWID;

INSERT INTO usage (project_id, kind) SELECT p.id, k.column1 FROM projects p, (VALUES ('insight'), ('dashboard'), ('tile'), ('endpoint'), ('version'), ('variable'), ('key'), ('cohort'), ('property'), ('activity')) k;

-- +goose StatementBegin
CREATE TRIGGER usage_of_project AFTER INSERT ON projects BEGIN
    INSERT INTO usage (project_id, kind) SELECT NEW.id, k.column1 FROM (VALUES ('insight'), ('dashboard'), ('tile'), ('endpoint'), ('version'), ('variable'), ('key'), ('cohort'), ('property'), ('activity')) k;
END;
-- +goose StatementEnd

UPDATE usage SET records = s.n, bytes = s.size FROM (SELECT project_id AS project, count(*) AS n, sum(coalesce(octet_length(query), 0) + coalesce(octet_length(filters), 0) + coalesce(octet_length(name), 0) + coalesce(octet_length(derived_name), 0) + coalesce(octet_length(description), 0) + coalesce(octet_length(tags), 0)) AS size FROM insights GROUP BY project_id) s
WHERE usage.project_id = s.project AND kind = 'insight';
-- +goose StatementBegin
CREATE TRIGGER usage_insight_added AFTER INSERT ON insights BEGIN
    UPDATE usage SET records = records + 1, bytes = bytes + coalesce(octet_length(NEW.query), 0) + coalesce(octet_length(NEW.filters), 0) + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.derived_name), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.tags), 0)
    WHERE project_id = NEW.project_id AND kind = 'insight';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_insight_changed AFTER UPDATE OF query, filters, name, derived_name, description, tags ON insights BEGIN
    UPDATE usage SET bytes = bytes + coalesce(octet_length(NEW.query), 0) + coalesce(octet_length(NEW.filters), 0) + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.derived_name), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.tags), 0)
        - (coalesce(octet_length(OLD.query), 0) + coalesce(octet_length(OLD.filters), 0) + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.derived_name), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.tags), 0))
    WHERE project_id = NEW.project_id AND kind = 'insight';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_insight_removed AFTER DELETE ON insights BEGIN
    UPDATE usage SET records = records - 1, bytes = bytes - (coalesce(octet_length(OLD.query), 0) + coalesce(octet_length(OLD.filters), 0) + coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.derived_name), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.tags), 0))
    WHERE project_id = OLD.project_id AND kind = 'insight';
END;
-- +goose StatementEnd

UPDATE usage SET records = s.n, bytes = s.size FROM (SELECT project_id AS project, count(*) AS n, sum(coalesce(octet_length(name), 0) + coalesce(octet_length(description), 0) + coalesce(octet_length(filters), 0) + coalesce(octet_length(variables), 0) + coalesce(octet_length(breakdown_color), 0) + coalesce(octet_length(tags), 0)) AS size FROM dashboards GROUP BY project_id) s
WHERE usage.project_id = s.project AND kind = 'dashboard';
-- +goose StatementBegin
CREATE TRIGGER usage_dashboard_added AFTER INSERT ON dashboards BEGIN
    UPDATE usage SET records = records + 1, bytes = bytes + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.filters), 0) + coalesce(octet_length(NEW.variables), 0) + coalesce(octet_length(NEW.breakdown_color), 0) + coalesce(octet_length(NEW.tags), 0)
    WHERE project_id = NEW.project_id AND kind = 'dashboard';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_dashboard_changed AFTER UPDATE OF name, description, filters, variables, breakdown_color, tags ON dashboards BEGIN
    UPDATE usage SET bytes = bytes + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.filters), 0) + coalesce(octet_length(NEW.variables), 0) + coalesce(octet_length(NEW.breakdown_color), 0) + coalesce(octet_length(NEW.tags), 0)
        - (coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.filters), 0) + coalesce(octet_length(OLD.variables), 0) + coalesce(octet_length(OLD.breakdown_color), 0) + coalesce(octet_length(OLD.tags), 0))
    WHERE project_id = NEW.project_id AND kind = 'dashboard';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_dashboard_removed AFTER DELETE ON dashboards BEGIN
    UPDATE usage SET records = records - 1, bytes = bytes - (coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.filters), 0) + coalesce(octet_length(OLD.variables), 0) + coalesce(octet_length(OLD.breakdown_color), 0) + coalesce(octet_length(OLD.tags), 0))
    WHERE project_id = OLD.project_id AND kind = 'dashboard';
END;
-- +goose StatementEnd

UPDATE usage SET records = s.n, bytes = s.size FROM (SELECT project_id AS project, count(*) AS n, sum(coalesce(octet_length(text), 0) + coalesce(octet_length(layouts), 0) + coalesce(octet_length(color), 0) + coalesce(octet_length(filter_overrides), 0)) AS size FROM dashboard_tiles GROUP BY project_id) s
WHERE usage.project_id = s.project AND kind = 'tile';
-- +goose StatementBegin
CREATE TRIGGER usage_tile_added AFTER INSERT ON dashboard_tiles BEGIN
    UPDATE usage SET records = records + 1, bytes = bytes + coalesce(octet_length(NEW.text), 0) + coalesce(octet_length(NEW.layouts), 0) + coalesce(octet_length(NEW.color), 0) + coalesce(octet_length(NEW.filter_overrides), 0)
    WHERE project_id = NEW.project_id AND kind = 'tile';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_tile_changed AFTER UPDATE OF text, layouts, color, filter_overrides ON dashboard_tiles BEGIN
    UPDATE usage SET bytes = bytes + coalesce(octet_length(NEW.text), 0) + coalesce(octet_length(NEW.layouts), 0) + coalesce(octet_length(NEW.color), 0) + coalesce(octet_length(NEW.filter_overrides), 0)
        - (coalesce(octet_length(OLD.text), 0) + coalesce(octet_length(OLD.layouts), 0) + coalesce(octet_length(OLD.color), 0) + coalesce(octet_length(OLD.filter_overrides), 0))
    WHERE project_id = NEW.project_id AND kind = 'tile';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_tile_removed AFTER DELETE ON dashboard_tiles BEGIN
    UPDATE usage SET records = records - 1, bytes = bytes - (coalesce(octet_length(OLD.text), 0) + coalesce(octet_length(OLD.layouts), 0) + coalesce(octet_length(OLD.color), 0) + coalesce(octet_length(OLD.filter_overrides), 0))
    WHERE project_id = OLD.project_id AND kind = 'tile';
END;
-- +goose StatementEnd

UPDATE usage SET records = s.n, bytes = s.size FROM (SELECT project_id AS project, count(*) AS n, sum(coalesce(octet_length(name), 0) + coalesce(octet_length(tags), 0)) AS size FROM endpoints GROUP BY project_id) s
WHERE usage.project_id = s.project AND kind = 'endpoint';
-- +goose StatementBegin
CREATE TRIGGER usage_endpoint_added AFTER INSERT ON endpoints BEGIN
    UPDATE usage SET records = records + 1, bytes = bytes + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.tags), 0)
    WHERE project_id = NEW.project_id AND kind = 'endpoint';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_endpoint_changed AFTER UPDATE OF name, tags ON endpoints BEGIN
    UPDATE usage SET bytes = bytes + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.tags), 0)
        - (coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.tags), 0))
    WHERE project_id = NEW.project_id AND kind = 'endpoint';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_endpoint_removed AFTER DELETE ON endpoints BEGIN
    UPDATE usage SET records = records - 1, bytes = bytes - (coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.tags), 0))
    WHERE project_id = OLD.project_id AND kind = 'endpoint';
END;
-- +goose StatementEnd

UPDATE usage SET records = s.n, bytes = s.size FROM (SELECT e.project_id AS project, count(*) AS n, sum(coalesce(octet_length(v.query), 0) + coalesce(octet_length(v.description), 0) + coalesce(octet_length(v.columns), 0) + coalesce(octet_length(v.optional_breakdowns), 0)) AS size FROM endpoint_versions v JOIN endpoints e ON e.id = v.endpoint_id GROUP BY e.project_id) s
WHERE usage.project_id = s.project AND kind = 'version';
-- +goose StatementBegin
CREATE TRIGGER usage_version_added AFTER INSERT ON endpoint_versions BEGIN
    UPDATE usage SET records = records + 1, bytes = bytes + coalesce(octet_length(NEW.query), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.columns), 0) + coalesce(octet_length(NEW.optional_breakdowns), 0)
    WHERE project_id = (SELECT project_id FROM endpoints WHERE id = NEW.endpoint_id) AND kind = 'version';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_version_changed AFTER UPDATE OF query, description, columns, optional_breakdowns ON endpoint_versions BEGIN
    UPDATE usage SET bytes = bytes + coalesce(octet_length(NEW.query), 0) + coalesce(octet_length(NEW.description), 0) + coalesce(octet_length(NEW.columns), 0) + coalesce(octet_length(NEW.optional_breakdowns), 0)
        - (coalesce(octet_length(OLD.query), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.columns), 0) + coalesce(octet_length(OLD.optional_breakdowns), 0))
    WHERE project_id = (SELECT project_id FROM endpoints WHERE id = NEW.endpoint_id) AND kind = 'version';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_version_removed AFTER DELETE ON endpoint_versions BEGIN
    UPDATE usage SET records = records - 1, bytes = bytes - (coalesce(octet_length(OLD.query), 0) + coalesce(octet_length(OLD.description), 0) + coalesce(octet_length(OLD.columns), 0) + coalesce(octet_length(OLD.optional_breakdowns), 0))
    WHERE project_id = (SELECT project_id FROM endpoints WHERE id = OLD.endpoint_id) AND kind = 'version';
END;
-- +goose StatementEnd

UPDATE usage SET records = s.n, bytes = s.size FROM (SELECT project_id AS project, count(*) AS n, sum(coalesce(octet_length(name), 0) + coalesce(octet_length(code_name), 0) + coalesce(octet_length(default_value), 0) + coalesce(octet_length(list), 0)) AS size FROM insight_variables GROUP BY project_id) s
WHERE usage.project_id = s.project AND kind = 'variable';
-- +goose StatementBegin
CREATE TRIGGER usage_variable_added AFTER INSERT ON insight_variables BEGIN
    UPDATE usage SET records = records + 1, bytes = bytes + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.code_name), 0) + coalesce(octet_length(NEW.default_value), 0) + coalesce(octet_length(NEW.list), 0)
    WHERE project_id = NEW.project_id AND kind = 'variable';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_variable_changed AFTER UPDATE OF name, code_name, default_value, list ON insight_variables BEGIN
    UPDATE usage SET bytes = bytes + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.code_name), 0) + coalesce(octet_length(NEW.default_value), 0) + coalesce(octet_length(NEW.list), 0)
        - (coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.code_name), 0) + coalesce(octet_length(OLD.default_value), 0) + coalesce(octet_length(OLD.list), 0))
    WHERE project_id = NEW.project_id AND kind = 'variable';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_variable_removed AFTER DELETE ON insight_variables BEGIN
    UPDATE usage SET records = records - 1, bytes = bytes - (coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.code_name), 0) + coalesce(octet_length(OLD.default_value), 0) + coalesce(octet_length(OLD.list), 0))
    WHERE project_id = OLD.project_id AND kind = 'variable';
END;
-- +goose StatementEnd

UPDATE usage SET records = s.n, bytes = s.size FROM (SELECT project_id AS project, count(*) AS n, sum(coalesce(octet_length(label), 0) + coalesce(octet_length(scopes), 0) + coalesce(octet_length(fixed), 0) + coalesce(octet_length(endpoints), 0)) AS size FROM keys GROUP BY project_id) s
WHERE usage.project_id = s.project AND kind = 'key';
-- +goose StatementBegin
CREATE TRIGGER usage_key_added AFTER INSERT ON keys BEGIN
    UPDATE usage SET records = records + 1, bytes = bytes + coalesce(octet_length(NEW.label), 0) + coalesce(octet_length(NEW.scopes), 0) + coalesce(octet_length(NEW.fixed), 0) + coalesce(octet_length(NEW.endpoints), 0)
    WHERE project_id = NEW.project_id AND kind = 'key';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_key_changed AFTER UPDATE OF label, scopes, fixed, endpoints ON keys BEGIN
    UPDATE usage SET bytes = bytes + coalesce(octet_length(NEW.label), 0) + coalesce(octet_length(NEW.scopes), 0) + coalesce(octet_length(NEW.fixed), 0) + coalesce(octet_length(NEW.endpoints), 0)
        - (coalesce(octet_length(OLD.label), 0) + coalesce(octet_length(OLD.scopes), 0) + coalesce(octet_length(OLD.fixed), 0) + coalesce(octet_length(OLD.endpoints), 0))
    WHERE project_id = NEW.project_id AND kind = 'key';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_key_removed AFTER DELETE ON keys BEGIN
    UPDATE usage SET records = records - 1, bytes = bytes - (coalesce(octet_length(OLD.label), 0) + coalesce(octet_length(OLD.scopes), 0) + coalesce(octet_length(OLD.fixed), 0) + coalesce(octet_length(OLD.endpoints), 0))
    WHERE project_id = OLD.project_id AND kind = 'key';
END;
-- +goose StatementEnd

UPDATE usage SET records = s.n, bytes = s.size FROM (SELECT project_id AS project, count(*) AS n, sum(coalesce(octet_length(name), 0)) AS size FROM cohorts GROUP BY project_id) s
WHERE usage.project_id = s.project AND kind = 'cohort';
-- +goose StatementBegin
CREATE TRIGGER usage_cohort_added AFTER INSERT ON cohorts BEGIN
    UPDATE usage SET records = records + 1, bytes = bytes + coalesce(octet_length(NEW.name), 0)
    WHERE project_id = NEW.project_id AND kind = 'cohort';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_cohort_changed AFTER UPDATE OF name ON cohorts BEGIN
    UPDATE usage SET bytes = bytes + coalesce(octet_length(NEW.name), 0)
        - (coalesce(octet_length(OLD.name), 0))
    WHERE project_id = NEW.project_id AND kind = 'cohort';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_cohort_removed AFTER DELETE ON cohorts BEGIN
    UPDATE usage SET records = records - 1, bytes = bytes - (coalesce(octet_length(OLD.name), 0))
    WHERE project_id = OLD.project_id AND kind = 'cohort';
END;
-- +goose StatementEnd

UPDATE usage SET records = s.n, bytes = s.size FROM (SELECT project_id AS project, count(*) AS n, sum(coalesce(octet_length(name), 0)) AS size FROM property_definitions GROUP BY project_id) s
WHERE usage.project_id = s.project AND kind = 'property';
-- +goose StatementBegin
CREATE TRIGGER usage_property_added AFTER INSERT ON property_definitions BEGIN
    UPDATE usage SET records = records + 1, bytes = bytes + coalesce(octet_length(NEW.name), 0)
    WHERE project_id = NEW.project_id AND kind = 'property';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_property_changed AFTER UPDATE OF name ON property_definitions BEGIN
    UPDATE usage SET bytes = bytes + coalesce(octet_length(NEW.name), 0)
        - (coalesce(octet_length(OLD.name), 0))
    WHERE project_id = NEW.project_id AND kind = 'property';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_property_removed AFTER DELETE ON property_definitions BEGIN
    UPDATE usage SET records = records - 1, bytes = bytes - (coalesce(octet_length(OLD.name), 0))
    WHERE project_id = OLD.project_id AND kind = 'property';
END;
-- +goose StatementEnd

UPDATE usage SET records = s.n, bytes = s.size FROM (SELECT project_id AS project, count(*) AS n, sum(coalesce(octet_length(name), 0) + coalesce(octet_length(changes), 0)) AS size FROM activities GROUP BY project_id) s
WHERE usage.project_id = s.project AND kind = 'activity';
-- +goose StatementBegin
CREATE TRIGGER usage_activity_added AFTER INSERT ON activities BEGIN
    UPDATE usage SET records = records + 1, bytes = bytes + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.changes), 0)
    WHERE project_id = NEW.project_id AND kind = 'activity';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_activity_changed AFTER UPDATE OF name, changes ON activities BEGIN
    UPDATE usage SET bytes = bytes + coalesce(octet_length(NEW.name), 0) + coalesce(octet_length(NEW.changes), 0)
        - (coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.changes), 0))
    WHERE project_id = NEW.project_id AND kind = 'activity';
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER usage_activity_removed AFTER DELETE ON activities BEGIN
    UPDATE usage SET records = records - 1, bytes = bytes - (coalesce(octet_length(OLD.name), 0) + coalesce(octet_length(OLD.changes), 0))
    WHERE project_id = OLD.project_id AND kind = 'activity';
END;
-- +goose StatementEnd
