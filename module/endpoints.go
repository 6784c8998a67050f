package module

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/changes"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// endpointRecord is an endpoint on the wire: contract section 5.3. The fields of a version stand in it twice over: of the
// current one in a plain record, of the one asked for in a version record.
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
	RateLimit                   *Rate             `json:"rate_limit"` // null: the server's default
	OptionalBreakdownProperties []string          `json:"optional_breakdown_properties"`
	DeprecatedAt                *time.Time        `json:"deprecated_at"`
	SunsetAt                    *time.Time        `json:"sunset_at"`
	*versionRecord
	// Changes reports what the request that is answered changed for callers.
	Changes *changes.Changes `json:"changes,omitempty"`
}

// versionRecord is what a version's own record has beyond its endpoint's.
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

func (rq *request) recordEndpoint(e *registry.Endpoint) endpointRecord {
	v := e.Current()
	path := fmt.Sprintf("/api/environments/%d/endpoints/%s/run", e.Project, e.Name)
	url := rq.origin() + path
	record := endpointRecord{
		ID: e.ID, Name: e.Name, IsActive: e.Active, EndpointPath: path, URL: &url, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt,
		CreatedBy: rq.User(e.CreatedBy), CurrentVersion: e.CurrentVersion, CurrentVersionID: v.ID, VersionsCount: len(e.Versions),
		DerivedFromInsight: orNull(e.DerivedFromInsight), LastExecutedAt: api.OrNil(rq.Snapshot.LastExecuted(e, 0)), Tags: e.Tags,
		Materialization: noMaterialization(e.Name),
	}
	if !e.RateLimit.IsZero() {
		record.RateLimit = &e.RateLimit
	}
	record.setVersion(v)
	return record
}

// setVersion fills in the fields that belong to a version.
func (r *endpointRecord) setVersion(v *registry.Version) {
	r.Description, r.Query, r.DataFreshnessSeconds = v.Description, v.Query, v.FreshnessSeconds
	r.Columns, r.OptionalBreakdownProperties = orEmpty(v.Columns), orEmpty(v.OptionalBreakdowns)
	r.DeprecatedAt, r.SunsetAt = api.OrNil(v.DeprecatedAt), api.OrNil(v.SunsetAt)
}

func (rq *request) recordVersion(e *registry.Endpoint, v *registry.Version) endpointRecord {
	record := rq.recordEndpoint(e)
	record.setVersion(v)
	record.URL, record.IsActive, record.LastExecutedAt = nil, v.Active, api.OrNil(rq.Snapshot.LastExecuted(e, v.Number))
	record.versionRecord = &versionRecord{
		Version: v.Number, VersionID: v.ID, EndpointIsActive: e.Active,
		VersionCreatedAt: v.CreatedAt, VersionUpdatedAt: v.UpdatedAt, VersionCreatedBy: rq.User(v.CreatedBy),
		IsCurrent: v.Number == e.CurrentVersion, IsDraft: v.Draft(), PublishedAt: api.OrNil(v.PublishedAt),
	}
	return record
}

// orEmpty makes a nil list an empty one, for JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// endpoint finds the endpoint that the address names.
func (rq *request) endpoint() (*registry.Endpoint, error) {
	if e := rq.Snapshot.Endpoint(rq.Project.ID, rq.at.Name); e != nil {
		return e, nil
	}
	return nil, rq.noEndpoint()
}

// missingEndpoint is what the answer about an endpoint that is not there says beside the standard detail.
type missingEndpoint struct {
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"` // the nearest name
}

// noEndpoint names the endpoint that is not there, and the nearest of those that the caller may run.
func (rq *request) noEndpoint() error {
	nearest := schema.Nearest(rq.at.Name, func(yield func(string) bool) {
		for _, e := range rq.Snapshot.Endpoints(rq.Project.ID) {
			if e.Active && rq.Token == nil && rq.Key.MayRun(e.Name) && !yield(e.Name) {
				return
			}
		}
	})
	const most = 128 // bytes of a name
	missing := missingEndpoint{Message: fmt.Sprintf("This project has no endpoint named %q.", strings.ToValidUTF8(rq.at.Name[:min(most, len(rq.at.Name))], "")), Hint: nearest}
	if nearest != "" {
		missing.Message += fmt.Sprintf(" Did you mean %q?", nearest)
	}
	answer := api.NotFound("Not found.")
	answer.Extra = missing
	return answer
}

func (rq *request) listEndpoints() error {
	params := rq.r.URL.Query()
	active, filtered := params.Get("is_active"), params.Get("is_active") != ""
	wanted, err := strconv.ParseBool(active)
	if filtered && err != nil {
		return api.Invalid("is_active", "invalid_input", "Must be a valid boolean.")
	}
	records := []endpointRecord{}
	for _, e := range rq.Snapshot.Endpoints(rq.Project.ID) {
		if filtered && e.Active != wanted {
			continue
		}
		if want := params.Get("created_by"); want != "" && want != e.CreatedBy && want != strconv.FormatInt(rq.UserNumber(e.CreatedBy), 10) {
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
	v, asked, err := rq.askedVersion(e)
	if err != nil {
		return err
	}
	if asked {
		rq.reply(http.StatusOK, rq.recordVersion(e, v))
	} else {
		rq.reply(http.StatusOK, rq.recordEndpoint(e))
	}
	return nil
}

// askedVersion finds the version that the query string names, else the current one, and reports whether it names one.
func (rq *request) askedVersion(e *registry.Endpoint) (v *registry.Version, asked bool, err error) {
	number, asked, err := rq.queryInt("version")
	if err != nil {
		return nil, false, err
	}
	v, err = versionOf(e, number, asked)
	return v, asked, err
}

// versionOf finds the version that a request asks for by its number, else the current one.
func versionOf(e *registry.Endpoint, number int, asked bool) (*registry.Version, error) {
	v := e.Version(number)
	if v == nil || asked && number == 0 { // 0 would stand for the current one
		return nil, api.NewRunError(http.StatusNotFound, "invalid_request", "not_found", fmt.Sprintf("Version %d not found", number))
	}
	return v, nil
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
