-- There are no accounts: each personal key is a user of its own, and user_id its number.
ALTER TABLE keys ADD COLUMN user_id INTEGER;
UPDATE keys SET user_id = (
    SELECT count(*) FROM keys k WHERE k.kind = 'personal' AND (k.created_at, k.id) <= (keys.created_at, keys.id)
) WHERE kind = 'personal';
CREATE UNIQUE INDEX keys_user ON keys (user_id);

CREATE TABLE insights (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id       INTEGER NOT NULL REFERENCES projects (id),
    short_id         TEXT    NOT NULL,
    name             TEXT,
    derived_name     TEXT,
    description      TEXT,
    query            TEXT    CHECK (query IS NULL OR json_valid(query)),
    filters          TEXT    NOT NULL CHECK (json_valid(filters)),
    sort             INTEGER,
    deleted          INTEGER NOT NULL CHECK (deleted IN (0, 1)),
    favorited        INTEGER NOT NULL CHECK (favorited IN (0, 1)),
    saved            INTEGER NOT NULL CHECK (saved IN (0, 1)),
    tags             TEXT    NOT NULL CHECK (json_valid(tags)),
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    last_modified_at INTEGER NOT NULL,
    created_by       TEXT    NOT NULL,
    last_modified_by TEXT    NOT NULL,
    UNIQUE (project_id, short_id)
) STRICT;

CREATE TABLE dashboards (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id      INTEGER NOT NULL REFERENCES projects (id),
    name            TEXT,
    description     TEXT    NOT NULL,
    pinned          INTEGER NOT NULL CHECK (pinned IN (0, 1)),
    deleted         INTEGER NOT NULL CHECK (deleted IN (0, 1)),
    filters         TEXT    NOT NULL CHECK (json_valid(filters)),
    variables       TEXT    NOT NULL CHECK (json_valid(variables)),
    breakdown_color TEXT    NOT NULL CHECK (json_valid(breakdown_color)),
    color_theme     INTEGER,
    tags            TEXT    NOT NULL CHECK (json_valid(tags)),
    created_at      INTEGER NOT NULL,
    created_by      TEXT    NOT NULL
) STRICT;
CREATE INDEX dashboards_project ON dashboards (project_id);

CREATE TABLE dashboard_tiles (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id       INTEGER NOT NULL REFERENCES projects (id),
    dashboard_id     INTEGER NOT NULL REFERENCES dashboards (id),
    insight_id       INTEGER NOT NULL REFERENCES insights (id),
    layouts          TEXT    NOT NULL CHECK (json_valid(layouts)),
    color            TEXT,
    show_description INTEGER CHECK (show_description IN (0, 1)),
    filter_overrides TEXT    NOT NULL CHECK (json_valid(filter_overrides)),
    deleted          INTEGER NOT NULL CHECK (deleted IN (0, 1)),
    UNIQUE (dashboard_id, insight_id)
) STRICT;
CREATE INDEX dashboard_tiles_project ON dashboard_tiles (project_id);
CREATE INDEX dashboard_tiles_insight ON dashboard_tiles (insight_id);

CREATE TABLE activities (
    id         TEXT    PRIMARY KEY,
    project_id INTEGER NOT NULL REFERENCES projects (id),
    scope      TEXT    NOT NULL,
    item       TEXT    NOT NULL,
    activity   TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    short_id   TEXT    NOT NULL,
    changes    TEXT    CHECK (changes IS NULL OR json_valid(changes)),
    at         INTEGER NOT NULL,
    by         TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX activities_item ON activities (project_id, scope, item, id);
CREATE INDEX activities_scope ON activities (project_id, scope, id);

CREATE TABLE insight_views (
    project_id INTEGER NOT NULL REFERENCES projects (id),
    insight_id INTEGER NOT NULL REFERENCES insights (id),
    viewer     TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (project_id, insight_id, viewer)
) STRICT, WITHOUT ROWID;
CREATE INDEX insight_views_at ON insight_views (project_id, at);
