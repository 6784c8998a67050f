-- The names of cohorts; their members are in ClickHouse. A cohort that was deleted stays, so that its number is not given again.
CREATE TABLE cohorts (
    project_id INTEGER NOT NULL REFERENCES projects (id),
    id         INTEGER NOT NULL CHECK (id > 0),
    name       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER,
    PRIMARY KEY (project_id, id)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX cohorts_name ON cohorts (project_id, name) WHERE deleted_at IS NULL;
