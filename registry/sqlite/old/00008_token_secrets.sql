-- Tokens for browsers are signed with the newest secret of their project.
CREATE TABLE token_secrets (
    id         TEXT    PRIMARY KEY,
    project_id INTEGER NOT NULL REFERENCES projects (id),
    secret     BLOB    NOT NULL CHECK (length(secret) = 32),
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX token_secrets_project ON token_secrets (project_id);
