-- Times are microseconds since 1970 in UTC.

-- revision is the number of the last write that put a record. Records that were removed up to forgotten are not known any more.
CREATE TABLE registry (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    revision  INTEGER NOT NULL,
    forgotten INTEGER NOT NULL DEFAULT 0
) STRICT;

-- data is NULL for a record that was removed.
CREATE TABLE records (
    project  INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    revision INTEGER NOT NULL,
    data     TEXT,
    UNIQUE (project, kind, id)
) STRICT;
CREATE INDEX records_revision ON records (revision);
CREATE INDEX records_project ON records (project, revision);
CREATE INDEX records_removed ON records (revision) WHERE data IS NULL;

CREATE TABLE unique_keys (
    kind    TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    project INTEGER NOT NULL,
    id      TEXT    NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX unique_keys_record ON unique_keys (project, kind, id);

CREATE TABLE entries (
    project INTEGER NOT NULL,
    log     TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    item    TEXT    NOT NULL,
    by      TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    data    TEXT,
    UNIQUE (project, log, id)
) STRICT;
CREATE INDEX entries_at ON entries (project, log, at, id);
CREATE INDEX entries_item ON entries (project, log, item, at, id);
CREATE INDEX entries_by ON entries (project, log, by);

-- logs is what each log takes. Triggers keep it, so that nothing is counted when it is asked for.
CREATE TABLE logs (
    project INTEGER NOT NULL,
    log     TEXT    NOT NULL,
    entries INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,
    PRIMARY KEY (project, log)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER logs_added AFTER INSERT ON entries BEGIN
    INSERT INTO logs VALUES (NEW.project, NEW.log, 1, coalesce(octet_length(NEW.data), 0))
    ON CONFLICT DO UPDATE SET entries = entries + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER logs_changed AFTER UPDATE OF data ON entries BEGIN
    UPDATE logs SET bytes = bytes + coalesce(octet_length(NEW.data), 0) - coalesce(octet_length(OLD.data), 0) WHERE project = NEW.project AND log = NEW.log;
END;
CREATE TRIGGER logs_removed AFTER DELETE ON entries BEGIN
    UPDATE logs SET entries = entries - 1, bytes = bytes - coalesce(octet_length(OLD.data), 0) WHERE project = OLD.project AND log = OLD.log;
END;
