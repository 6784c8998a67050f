-- Texts are compared byte by byte, so that no index depends on the system's rules of a language. Times are microseconds since 1970 in UTC.

-- revision is the number of the last write that put a record. Records that were removed up to forgotten are not known any more. Whoever
-- writes changes the row. recent are the numbers that the last of all writes have drawn, by which one whose answer is lost is found.
CREATE TABLE analytics_registry (
    id        integer PRIMARY KEY CHECK (id = 1),
    version   integer NOT NULL,
    revision  bigint  NOT NULL,
    forgotten bigint  NOT NULL DEFAULT 0,
    writes    bigint  NOT NULL DEFAULT 0,
    recent    bigint[] NOT NULL DEFAULT '{}'
);
INSERT INTO analytics_registry (id, version, revision) VALUES (1, 0, 0);

-- data is NULL for a record that was removed. It is text: jsonb would not keep the bytes as they are.
CREATE TABLE analytics_records (
    project  bigint NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    id       text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    data     text COLLATE "C",
    PRIMARY KEY (project, kind, id)
);
CREATE INDEX analytics_records_revision ON analytics_records (revision);
CREATE INDEX analytics_records_project ON analytics_records (project, revision);
CREATE INDEX analytics_records_removed ON analytics_records (revision) WHERE data IS NULL;

CREATE TABLE analytics_unique_keys (
    kind    text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    project bigint NOT NULL,
    id      text COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, key)
);
CREATE INDEX analytics_unique_keys_record ON analytics_unique_keys (project, kind, id);

CREATE TABLE analytics_entries (
    project bigint NOT NULL,
    log     text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    item    text COLLATE "C" NOT NULL,
    by      text COLLATE "C" NOT NULL,
    at      bigint NOT NULL,
    data    text COLLATE "C",
    PRIMARY KEY (project, log, id)
);
CREATE INDEX analytics_entries_at ON analytics_entries (project, log, at, id);
CREATE INDEX analytics_entries_item ON analytics_entries (project, log, item, at, id);
CREATE INDEX analytics_entries_by ON analytics_entries (project, log, by);

-- analytics_logs is what each log takes. A trigger keeps it, so that nothing is counted when it is asked for.
CREATE TABLE analytics_logs (
    project bigint NOT NULL,
    log     text COLLATE "C" NOT NULL,
    entries bigint NOT NULL,
    bytes   bigint NOT NULL,
    PRIMARY KEY (project, log)
);
CREATE FUNCTION analytics_count_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        UPDATE analytics_logs SET entries = entries - 1, bytes = bytes - coalesce(octet_length(OLD.data), 0) WHERE project = OLD.project AND log = OLD.log;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO analytics_logs AS known VALUES (NEW.project, NEW.log, 1, coalesce(octet_length(NEW.data), 0))
        ON CONFLICT (project, log) DO UPDATE SET entries = known.entries + 1, bytes = known.bytes + excluded.bytes;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER analytics_count_entries AFTER INSERT OR UPDATE OR DELETE ON analytics_entries FOR EACH ROW EXECUTE FUNCTION analytics_count_entries();

-- What is kept for those who have a lock, large values as they are: they are compressed already or short-lived.
CREATE TABLE analytics_kept (
    name text COLLATE "C" PRIMARY KEY,
    data bytea NOT NULL
);
ALTER TABLE analytics_kept ALTER COLUMN data SET STORAGE EXTERNAL;

-- The last holder of each lock. turn grows when another one gets it.
CREATE TABLE analytics_locks (
    name   text COLLATE "C" PRIMARY KEY,
    holder text COLLATE "C" NOT NULL,
    turn   bigint NOT NULL
);

-- What is spent of allowances that nodes share: whole is when nothing of one is spent any more, in nanoseconds since 1970. It may be lost in a crash.
CREATE UNLOGGED TABLE analytics_allowances (
    name  text COLLATE "C" PRIMARY KEY,
    whole bigint  NOT NULL,
    got   integer NOT NULL
) WITH (fillfactor = 50);
