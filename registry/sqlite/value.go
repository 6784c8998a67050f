package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// toTime is what a time is stored as.
func toTime(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: !t.IsZero()}
}

// fromTime reads what toTime has stored.
func fromTime(v sql.NullInt64) time.Time {
	if !v.Valid {
		return time.Time{}
	}
	return time.UnixMicro(v.Int64).UTC()
}

// toJSON is what a list is stored as; nil becomes NULL.
func toJSON[T any](list []T) (sql.NullString, error) {
	if list == nil {
		return sql.NullString{}, nil
	}
	text, err := json.Marshal(list)
	if err != nil {
		return sql.NullString{}, fmt.Errorf("writing a list: %w", err)
	}
	return sql.NullString{String: string(text), Valid: true}, nil
}

// fromJSON reads what toJSON has stored.
func fromJSON[T any](v sql.NullString) ([]T, error) {
	if !v.Valid {
		return nil, nil
	}
	var list []T
	if err := json.Unmarshal([]byte(v.String), &list); err != nil {
		return nil, fmt.Errorf("reading a list: %w", err)
	}
	return list, nil
}

// textOrNull is what a text is stored as that is absent when it is empty.
func textOrNull(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }

// orNull is what JSON is stored as that may be absent.
func orNull(raw json.RawMessage) sql.NullString {
	return sql.NullString{String: string(raw), Valid: raw != nil}
}

// uniques maps the columns that SQLite names when they are not unique to the registry's word for it.
var uniques = map[string]string{
	"keys.id":                              registry.ConflictID,
	"keys.user_id":                         registry.ConflictUser,
	"keys.hash":                            registry.ConflictHash,
	"keys.project_id, keys.label":          registry.ConflictLabel,
	"token_secrets.id":                     registry.ConflictID,
	"endpoints.id":                         registry.ConflictID,
	"endpoints.project_id, endpoints.name": registry.ConflictEndpointName,
	"endpoint_versions.id":                 registry.ConflictID,
	"endpoint_versions.endpoint_id, endpoint_versions.number": registry.ConflictVersion,
	"insight_variables.id":                                      registry.ConflictID,
	"insights.project_id, insights.short_id":                    registry.ConflictShortID,
	"dashboard_tiles.dashboard_id, dashboard_tiles.insight_id":  registry.ConflictTile,
	"insight_variables.project_id, insight_variables.code_name": registry.ConflictCodeName,
	"cohorts.project_id, cohorts.id":                            registry.ConflictID,
	"cohorts.project_id, cohorts.name":                          registry.ConflictCohortName,
}

// told turns what SQLite says of a broken rule into the registry's errors, and names what was being done in any other.
func told(err error, doing string) error {
	if err == nil {
		return nil
	}
	if broken, ok := errors.AsType[*sqlite.Error](err); ok {
		switch broken.Code() {
		case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
			_, columns, _ := strings.Cut(broken.Error(), "UNIQUE constraint failed: ")
			columns, _, _ = strings.Cut(columns, " (")
			if field, known := uniques[columns]; known {
				return &registry.ConflictError{Field: field}
			}
		case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
			return registry.ErrNotFound
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return registry.ErrNotFound
	}
	return fmt.Errorf("%s: %w", doing, err)
}
