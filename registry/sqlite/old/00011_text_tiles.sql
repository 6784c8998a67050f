-- A tile shows an insight or a text. What SQLite has as NOT NULL stays so: the table is made anew.
CREATE TABLE new_tiles (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    project_id       INTEGER NOT NULL REFERENCES projects (id),
    dashboard_id     INTEGER NOT NULL REFERENCES dashboards (id),
    insight_id       INTEGER REFERENCES insights (id),
    text             TEXT    CHECK (text IS NULL OR json_valid(text)),
    layouts          TEXT    NOT NULL CHECK (json_valid(layouts)),
    color            TEXT,
    show_description INTEGER CHECK (show_description IN (0, 1)),
    filter_overrides TEXT    NOT NULL CHECK (json_valid(filter_overrides)),
    deleted          INTEGER NOT NULL CHECK (deleted IN (0, 1)),
    UNIQUE (dashboard_id, insight_id),
    CHECK ((insight_id IS NULL) <> (text IS NULL))
) STRICT;
INSERT INTO new_tiles (id, project_id, dashboard_id, insight_id, layouts, color, show_description, filter_overrides, deleted)
    SELECT id, project_id, dashboard_id, insight_id, layouts, color, show_description, filter_overrides, deleted FROM dashboard_tiles;
DROP TABLE dashboard_tiles;
ALTER TABLE new_tiles RENAME TO dashboard_tiles;
CREATE INDEX dashboard_tiles_project ON dashboard_tiles (project_id);
CREATE INDEX dashboard_tiles_insight ON dashboard_tiles (insight_id);
