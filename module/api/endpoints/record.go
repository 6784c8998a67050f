package endpoints

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/changes"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// record is an endpoint in JSON: contract api.md, section 5.3. Its version fields are those of the current version or, in a version record, of that version.
type record struct {
	ID                          string            `json:"id"`
	Name                        string            `json:"name"`
	Description                 string            `json:"description"`
	Query                       json.RawMessage   `json:"query"`
	IsActive                    bool              `json:"is_active"`
	DataFreshnessSeconds        int               `json:"data_freshness_seconds"`
	EndpointPath                string            `json:"endpoint_path"`
	URL                         *string           `json:"url"`
	UIURL                       *string           `json:"ui_url"`
	CreatedAt                   time.Time         `json:"created_at"`
	UpdatedAt                   time.Time         `json:"updated_at"`
	CreatedBy                   *api.User         `json:"created_by"`
	IsMaterialized              bool              `json:"is_materialized"`
	CurrentVersion              int               `json:"current_version"`
	CurrentVersionID            string            `json:"current_version_id"`
	VersionsCount               int               `json:"versions_count"`
	DerivedFromInsight          *string           `json:"derived_from_insight"`
	LastExecutedAt              *time.Time        `json:"last_executed_at"`
	Materialization             materialization   `json:"materialization"`
	BucketOverrides             map[string]string `json:"bucket_overrides"`
	Columns                     []registry.Column `json:"columns"`
	Tags                        []string          `json:"tags"`
	RateLimit                   *registry.Rate    `json:"rate_limit"` // null: the server's default
	OptionalBreakdownProperties []string          `json:"optional_breakdown_properties"`
	DeprecatedAt                *time.Time        `json:"deprecated_at"`
	SunsetAt                    *time.Time        `json:"sunset_at"`
	*versionRecord
	// MaterializationError says why the new version that an update made is not materialized, unlike the one before.
	MaterializationError string `json:"materialization_error,omitempty"`
	// Changes lists what a write changed for callers or, in a response that only reads, what changed under the version.
	Changes *changes.Changes `json:"changes,omitempty"`
}

// versionRecord holds the fields that only a version record has.
type versionRecord struct {
	Version          int        `json:"version"`
	VersionID        string     `json:"version_id"`
	EndpointIsActive bool       `json:"endpoint_is_active"`
	VersionCreatedAt time.Time  `json:"version_created_at"`
	VersionUpdatedAt time.Time  `json:"version_updated_at"`
	VersionCreatedBy *api.User  `json:"version_created_by"`
	IsCurrent        bool       `json:"is_current"`
	IsDraft          bool       `json:"is_draft"`
	PublishedAt      *time.Time `json:"published_at"` // when it last became the current one; null for a draft
}

// recordOf returns the record of an endpoint.
func (s *Endpoints) recordOf(ctx context.Context, c *api.Caller, in *api.Input, e *registry.Endpoint) record {
	r := endpointRecord(c, in, e)
	s.setVersion(ctx, c, &r, e, e.Current())
	return r
}

// endpointRecord returns a record without the fields of a version.
func endpointRecord(c *api.Caller, in *api.Input, e *registry.Endpoint) record {
	v := e.Current()
	path := fmt.Sprintf("/api/environments/%d/endpoints/%s/run", e.Project, e.Name)
	url := in.Base() + path
	r := record{
		ID: e.ID, Name: e.Name, IsActive: e.Active, EndpointPath: path, URL: &url, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
		CreatedBy: c.User(e.CreatedBy), CurrentVersion: e.CurrentVersion, CurrentVersionID: v.ID, VersionsCount: len(e.Versions),
		DerivedFromInsight: api.OrNull(e.DerivedFromInsight), LastExecutedAt: api.OrNil(c.Snapshot.LastExecuted(e, 0)), Tags: e.Tags,
	}
	if !e.RateLimit.IsZero() {
		r.RateLimit = &e.RateLimit
	}
	return r
}

// setVersion sets the fields of a version.
func (s *Endpoints) setVersion(ctx context.Context, c *api.Caller, r *record, e *registry.Endpoint, v *registry.Version) {
	r.Description, r.Query, r.DataFreshnessSeconds = v.Description, v.Query, v.FreshnessSeconds
	r.Columns, r.OptionalBreakdownProperties = api.OrEmpty(v.Columns), api.OrEmpty(v.OptionalBreakdowns)
	r.DeprecatedAt, r.SunsetAt = api.OrNil(v.DeprecatedAt), api.OrNil(v.SunsetAt)
	r.IsMaterialized, r.Materialization = v.Table != nil, s.materializationOf(ctx, c, e, v, s.lastTrial(c.Project.ID))
	if v.Table != nil && len(v.Table.Buckets) > 0 {
		r.BucketOverrides = v.Table.Buckets
	}
}

// recordOfVersion returns the record of a version.
func (s *Endpoints) recordOfVersion(ctx context.Context, c *api.Caller, in *api.Input, e *registry.Endpoint, v *registry.Version) record {
	r := endpointRecord(c, in, e)
	s.setVersion(ctx, c, &r, e, v)
	r.URL, r.IsActive, r.LastExecutedAt = nil, v.Active, api.OrNil(c.Snapshot.LastExecuted(e, v.Number))
	r.versionRecord = &versionRecord{
		Version: v.Number, VersionID: v.ID, EndpointIsActive: e.Active,
		VersionCreatedAt: v.CreatedAt, VersionUpdatedAt: v.UpdatedAt, VersionCreatedBy: c.User(v.CreatedBy),
		IsCurrent: v.Number == e.CurrentVersion, IsDraft: v.Draft(), PublishedAt: api.OrNil(v.PublishedAt),
	}
	return r
}
