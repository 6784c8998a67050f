package module

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// endpointRecord is an endpoint on the wire: contract section 5.3. The fields of a version stand in it twice over: of the
// newest one in a plain record, of the one asked for in a version record.
type endpointRecord struct {
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
	CreatedBy                   *string           `json:"created_by"`
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
	OptionalBreakdownProperties []string          `json:"optional_breakdown_properties"`
	*versionRecord
}

// versionRecord is what a version's own record has beyond its endpoint's.
type versionRecord struct {
	Version          int       `json:"version"`
	VersionID        string    `json:"version_id"`
	EndpointIsActive bool      `json:"endpoint_is_active"`
	VersionCreatedAt time.Time `json:"version_created_at"`
	VersionUpdatedAt time.Time `json:"version_updated_at"`
	VersionCreatedBy *string   `json:"version_created_by"`
}

// materialization is the state of a materialised table, which no endpoint has here: results are cached instead.
type materialization struct {
	Name           string `json:"name"`
	Enabled        bool   `json:"enabled"`
	Ready          bool   `json:"ready"`
	CanMaterialize bool   `json:"can_materialize"`
	Reason         string `json:"reason"`
}

func (rq *request) recordEndpoint(e *registry.Endpoint) endpointRecord {
	v := e.Current()
	path := fmt.Sprintf("/api/environments/%d/endpoints/%s/run", e.Project, e.Name)
	url := rq.origin() + path
	return endpointRecord{
		ID: e.ID, Name: e.Name, Description: v.Description, Query: v.Query, IsActive: e.Active, DataFreshnessSeconds: v.FreshnessSeconds,
		EndpointPath: path, URL: &url, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, CreatedBy: orNull(e.CreatedBy),
		CurrentVersion: e.CurrentVersion, CurrentVersionID: v.ID, VersionsCount: len(e.Versions), DerivedFromInsight: orNull(e.DerivedFromInsight),
		LastExecutedAt: orNil(e.LastExecutedAt), Columns: v.Columns, Tags: e.Tags,
		Materialization: materialization{Name: e.Name, Reason: "Results are cached; there is no table to materialize."},
	}
}

func (rq *request) recordVersion(e *registry.Endpoint, v *registry.Version) endpointRecord {
	record := rq.recordEndpoint(e)
	record.URL = nil
	record.Description, record.Query, record.IsActive = v.Description, v.Query, v.Active
	record.DataFreshnessSeconds, record.Columns, record.LastExecutedAt = v.FreshnessSeconds, v.Columns, orNil(v.LastExecutedAt)
	record.versionRecord = &versionRecord{
		Version: v.Number, VersionID: v.ID, EndpointIsActive: e.Active,
		VersionCreatedAt: v.CreatedAt, VersionUpdatedAt: v.UpdatedAt, VersionCreatedBy: orNull(v.CreatedBy),
	}
	return record
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// endpoint finds the endpoint that the address names.
func (rq *request) endpoint() (*registry.Endpoint, error) {
	if e := rq.snap.Endpoint(rq.project.ID, rq.at.name); e != nil {
		return e, nil
	}
	return nil, notFound("Not found.")
}

func (rq *request) listEndpoints() error {
	params := rq.r.URL.Query()
	active, filtered := params.Get("is_active"), params.Get("is_active") != ""
	wanted, err := strconv.ParseBool(active)
	if filtered && err != nil {
		return validation("is_active", "invalid_input", "Must be a valid boolean.")
	}
	records := []endpointRecord{}
	for _, e := range rq.snap.Endpoints(rq.project.ID) {
		if filtered && e.Active != wanted {
			continue
		}
		if want := params.Get("created_by"); want != "" && want != e.CreatedBy {
			continue
		}
		records = append(records, rq.recordEndpoint(e))
	}
	return writePage(rq, records)
}

func (rq *request) getEndpoint() error {
	e, err := rq.endpoint()
	if err != nil {
		return err
	}
	number, asked, err := rq.queryInt("version")
	if err != nil {
		return err
	}
	if !asked {
		rq.reply(http.StatusOK, rq.recordEndpoint(e))
		return nil
	}
	v := e.Version(number)
	if number == 0 || v == nil {
		return runError(http.StatusNotFound, "invalid_request", "not_found", fmt.Sprintf("Version %d not found", number))
	}
	rq.reply(http.StatusOK, rq.recordVersion(e, v))
	return nil
}

func (rq *request) listVersions() error {
	e, err := rq.endpoint()
	if err != nil {
		return err
	}
	records := []endpointRecord{}
	for i := len(e.Versions) - 1; i >= 0; i-- {
		records = append(records, rq.recordVersion(e, &e.Versions[i]))
	}
	return writePage(rq, records)
}

// endpointFields are the writable fields of contract section 5.2; nil ones were not given.
type endpointFields struct {
	name, description, derivedFrom *string
	freshness, version             *int
	active, materialized, deleted  *bool
	tags                           *[]string
	query                          json.RawMessage
}

// endpointWrites are the fields that a write may have, and endpointReads those that it may have because it sends a record
// back as it was read; they change nothing. Any other is a slip of the pen that would go unnoticed.
var (
	endpointWrites = []string{
		"name", "query", "description", "data_freshness_seconds", "is_active", "is_materialized", "derived_from_insight", "version",
		"bucket_overrides", "optional_breakdown_properties", "tags", "deleted",
	}
	endpointReads = []string{
		"id", "endpoint_path", "url", "ui_url", "created_at", "updated_at", "created_by", "current_version", "current_version_id",
		"versions_count", "last_executed_at", "materialization", "columns", "version_id", "endpoint_is_active", "version_created_at",
		"version_updated_at", "version_created_by",
	}
)

func readEndpointFields(body []byte) (endpointFields, error) {
	var f endpointFields
	fields, err := decodeObject(body)
	if err != nil {
		return f, err
	}
	for _, name := range sortedNames(fields) {
		if !slices.Contains(endpointWrites, name) && !slices.Contains(endpointReads, name) {
			return f, validation(name, "invalid_input", "Extra inputs are not permitted")
		}
	}
	for _, name := range []string{"optional_breakdown_properties", "bucket_overrides"} {
		if raw := string(bytes.TrimSpace(fields[name])); raw != "" && raw != "null" && raw != "[]" && raw != "{}" {
			return f, validation(name, "invalid_input", "%s means nothing for this query: it has no breakdowns and is not materialized.", name)
		}
	}
	if raw, ok := fields["data_freshness_seconds"]; ok && isNull(raw) {
		standard := registry.DefaultFreshness
		f.freshness = &standard
	}
	f.query = fields["query"]
	return f, errors.Join(
		optional(fields, "name", &f.name), optional(fields, "description", &f.description),
		optional(fields, "derived_from_insight", &f.derivedFrom), optional(fields, "data_freshness_seconds", &f.freshness),
		optional(fields, "version", &f.version), optional(fields, "is_active", &f.active),
		optional(fields, "is_materialized", &f.materialized), optional(fields, "deleted", &f.deleted), optional(fields, "tags", &f.tags),
	)
}

// optional reads a field into *out where it is given and not null.
func optional[T any](fields map[string]json.RawMessage, name string, out **T) error {
	var value T
	given, err := field(fields, name, &value)
	if given {
		*out = &value
	}
	return err
}

// refuseMaterialization says why an endpoint can't be materialised; switching it off always works.
func (f *endpointFields) refuseMaterialization() error {
	if f.materialized != nil && *f.materialized {
		return validation("is_materialized", "invalid_input",
			"Cannot materialize endpoint. Reason: results are cached instead; set data_freshness_seconds.")
	}
	return nil
}

func (rq *request) createEndpoint() error {
	body, err := readBody(rq.r)
	if err != nil {
		return err
	}
	defer returnBody(body)
	fields, err := readEndpointFields(body.Bytes())
	if err != nil {
		return err
	}
	if err := fields.refuseMaterialization(); err != nil {
		return err
	}
	wanted := registry.NewEndpoint{
		Project: rq.project.ID, Name: deref(fields.name), Description: deref(fields.description), FreshnessSeconds: deref(fields.freshness),
		Inactive: fields.active != nil && !*fields.active, DerivedFromInsight: deref(fields.derivedFrom), Tags: deref(fields.tags), CreatedBy: rq.key.ID,
	}
	if fields.freshness != nil && *fields.freshness == 0 {
		wanted.FreshnessSeconds = -1 // 0 would stand for the default
	}
	if wanted.Name == "" {
		return validation("name", "required", "This field is required.")
	}
	if len(fields.query) == 0 || isNull(fields.query) {
		return validation("query", "required", "This field is required.")
	}
	checked, err := rq.checkEndpointQuery(fields.query)
	if err != nil {
		return err
	}
	wanted.Query, wanted.Columns = checked.raw, checked.columns
	e, err := rq.rt.registry.CreateEndpoint(rq.r.Context(), wanted, time.Now())
	if err != nil {
		return err
	}
	rq.reply(http.StatusCreated, rq.recordEndpoint(e))
	return nil
}

func (rq *request) updateEndpoint() error {
	e, err := rq.endpoint()
	if err != nil {
		return err
	}
	body, err := readBody(rq.r)
	if err != nil {
		return err
	}
	defer returnBody(body)
	fields, err := readEndpointFields(body.Bytes())
	if err != nil {
		return err
	}
	if fields.deleted != nil && *fields.deleted {
		if err := rq.rt.registry.DeleteEndpoint(rq.r.Context(), rq.project.ID, e.Name, time.Now()); err != nil {
			return err
		}
		rq.reply(http.StatusOK, map[string]bool{"success": true})
		return nil
	}
	if err := fields.refuseMaterialization(); err != nil {
		return err
	}
	if fields.version == nil {
		number, asked, err := rq.queryInt("version")
		if err != nil {
			return err
		}
		if asked {
			fields.version = &number
		}
	}
	update := registry.EndpointUpdate{
		Version: deref(fields.version), Description: fields.description, FreshnessSeconds: fields.freshness,
		Active: fields.active, Tags: fields.tags, By: rq.key.ID,
	}
	hasQuery := len(fields.query) > 0 && !isNull(fields.query)
	if fields.version != nil && !hasQuery && (update.Version == 0 || e.Version(update.Version) == nil) {
		return validation("version", "invalid_input", "Version %d not found", update.Version) // 0 would stand for the newest
	}
	if hasQuery && fields.version == nil {
		checked, err := rq.checkEndpointQuery(fields.query)
		if err != nil {
			return err
		}
		update.Query, update.Columns, update.SameQuery = checked.raw, checked.columns, checked.same
	} else if hasQuery {
		return validation("query", "invalid_input", "Cannot change query when targeting a specific version. Query changes create a new version.")
	}
	updated, err := rq.rt.registry.UpdateEndpoint(rq.r.Context(), rq.project.ID, e.Name, update, time.Now())
	if err != nil {
		return err
	}
	if fields.version != nil {
		rq.reply(http.StatusOK, rq.recordVersion(updated, updated.Version(update.Version)))
		return nil
	}
	rq.reply(http.StatusOK, rq.recordEndpoint(updated))
	return nil
}

func (rq *request) deleteEndpoint() error {
	if err := rq.rt.registry.DeleteEndpoint(rq.r.Context(), rq.project.ID, rq.at.name, time.Now()); err != nil {
		return err
	}
	rq.replyNothing()
	return nil
}

// deref returns what p points to, or the zero value.
func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
