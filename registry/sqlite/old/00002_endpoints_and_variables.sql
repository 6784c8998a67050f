CREATE TABLE endpoints (
    id                   TEXT    PRIMARY KEY,
    project_id           INTEGER NOT NULL REFERENCES projects (id),
    name                 TEXT    NOT NULL,
    active               INTEGER NOT NULL CHECK (active IN (0, 1)),
    derived_from_insight TEXT    NOT NULL,
    tags                 TEXT    NOT NULL CHECK (json_valid(tags)),
    current_version      INTEGER NOT NULL,
    created_at           INTEGER NOT NULL,
    updated_at           INTEGER NOT NULL,
    created_by           TEXT    NOT NULL,
    last_executed_at     INTEGER,
    deleted_at           INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX endpoints_name ON endpoints (project_id, name) WHERE deleted_at IS NULL;

CREATE TABLE endpoint_versions (
    id                TEXT    PRIMARY KEY,
    endpoint_id       TEXT    NOT NULL REFERENCES endpoints (id),
    number            INTEGER NOT NULL CHECK (number >= 1),
    query             TEXT    NOT NULL CHECK (json_valid(query)),
    description       TEXT    NOT NULL,
    freshness_seconds INTEGER NOT NULL,
    active            INTEGER NOT NULL CHECK (active IN (0, 1)),
    columns           TEXT    CHECK (columns IS NULL OR json_valid(columns)),
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL,
    created_by        TEXT    NOT NULL,
    last_executed_at  INTEGER,
    UNIQUE (endpoint_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE insight_variables (
    id            TEXT    PRIMARY KEY,
    project_id    INTEGER NOT NULL REFERENCES projects (id),
    name          TEXT    NOT NULL,
    code_name     TEXT    NOT NULL,
    type          TEXT    NOT NULL,
    default_value TEXT    NOT NULL CHECK (json_valid(default_value)),
    list          TEXT    CHECK (list IS NULL OR json_valid(list)),
    is_multi      INTEGER NOT NULL CHECK (is_multi IN (0, 1)),
    created_at    INTEGER NOT NULL,
    created_by    TEXT    NOT NULL,
    UNIQUE (project_id, code_name)
) STRICT, WITHOUT ROWID;
