-- Times are microseconds since 1970 in UTC, NULL for never.

-- revision is the number of the last write that changed something.
CREATE TABLE registry (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO registry (id, revision) VALUES (1, 0);

-- revision is that of the last write that changed anything of the project.
CREATE TABLE projects (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL,
    timezone   TEXT    NOT NULL,
    week_start INTEGER NOT NULL CHECK (week_start IN (0, 1)),
    created_at INTEGER NOT NULL,
    revision   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX projects_revision ON projects (revision);

CREATE TABLE keys (
    id             TEXT    PRIMARY KEY,
    project_id     INTEGER NOT NULL REFERENCES projects (id),
    kind           TEXT    NOT NULL CHECK (kind IN ('personal', 'secret')),
    label          TEXT    NOT NULL,
    mask           TEXT    NOT NULL,
    hash           BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    scopes         TEXT    NOT NULL CHECK (json_valid(scopes)),
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER,
    last_used_at   INTEGER,
    last_rolled_at INTEGER,
    revoked_at     INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_project ON keys (project_id);
CREATE UNIQUE INDEX keys_secret_label ON keys (project_id, label)
    WHERE kind = 'secret' AND revoked_at IS NULL AND label <> '';
