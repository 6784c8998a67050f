CREATE TABLE property_definitions (
    project_id       INTEGER NOT NULL REFERENCES projects (id),
    scope            TEXT    NOT NULL CHECK (scope IN ('event', 'person', 'group')),
    group_type_index INTEGER NOT NULL CHECK (group_type_index BETWEEN 0 AND 4),
    name             TEXT    NOT NULL,
    type             TEXT    NOT NULL CHECK (type IN ('String', 'Numeric', 'Boolean', 'DateTime')),
    PRIMARY KEY (project_id, scope, group_type_index, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE group_types (
    project_id       INTEGER NOT NULL REFERENCES projects (id),
    group_type_index INTEGER NOT NULL CHECK (group_type_index BETWEEN 0 AND 4),
    name             TEXT    NOT NULL,
    PRIMARY KEY (project_id, group_type_index),
    UNIQUE (project_id, name)
) STRICT, WITHOUT ROWID;
