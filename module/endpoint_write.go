package module

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// endpointFields are the writable fields of contract section 5.2, and ours for drafts and deprecation; nil ones were not given.
type endpointFields struct {
	name, description, derivedFrom *string
	freshness, version             *int
	active, materialized, deleted  *bool
	tags, optionalBreakdowns       *[]string
	rateLimit                      *Rate      // the zero Rate for null
	deprecatedAt, sunsetAt         *time.Time // the zero time for null
	draft, refuseBreaking          bool
	query                          json.RawMessage
}

// endpointWrites are the fields that a write may have, and endpointReads those that it may have because it sends a record
// back as it was read; they change nothing. Any other is a slip of the pen that would go unnoticed.
var (
	endpointWrites = []string{
		"name", "query", "description", "data_freshness_seconds", "is_active", "is_materialized", "derived_from_insight", "version",
		"bucket_overrides", "optional_breakdown_properties", "tags", "deleted", "deprecated_at", "sunset_at", "draft", "refuse_breaking",
		"rate_limit",
	}
	endpointReads = []string{
		"id", "endpoint_path", "url", "ui_url", "created_at", "updated_at", "created_by", "current_version", "current_version_id",
		"versions_count", "last_executed_at", "materialization", "columns", "version_id", "endpoint_is_active", "version_created_at",
		"version_updated_at", "version_created_by", "is_current", "is_draft", "published_at", "changes",
	}
)

func (rq *request) readEndpointFields() (endpointFields, error) {
	var f endpointFields
	fields, err := rq.readFields(slices.Concat(endpointWrites, endpointReads)...)
	if err != nil {
		return f, err
	}
	var overrides map[string]string
	if _, err := api.Field(fields, "bucket_overrides", &overrides); err != nil {
		return f, err
	}
	if len(overrides) > 0 {
		return f, api.Invalid("bucket_overrides", "invalid_input", "bucket_overrides means nothing here: no endpoint is materialized.")
	}
	if raw, ok := fields["data_freshness_seconds"]; ok && api.IsNull(raw) {
		f.freshness = new(registry.DefaultFreshness)
	}
	f.query = fields["query"]
	if api.IsNull(f.query) {
		f.query = nil
	}
	draft, errDraft := api.BoolField(fields, "draft")
	refuse, errRefuse := api.BoolField(fields, "refuse_breaking")
	f.draft, f.refuseBreaking = draft, refuse
	return f, errors.Join(
		api.Optional(fields, "name", &f.name), api.Optional(fields, "description", &f.description),
		api.Optional(fields, "derived_from_insight", &f.derivedFrom), api.Optional(fields, "data_freshness_seconds", &f.freshness),
		api.Optional(fields, "version", &f.version), api.Optional(fields, "is_active", &f.active),
		api.Optional(fields, "is_materialized", &f.materialized), api.Optional(fields, "deleted", &f.deleted), api.Optional(fields, "tags", &f.tags),
		api.Optional(fields, "optional_breakdown_properties", &f.optionalBreakdowns),
		timeField(fields, "deprecated_at", &f.deprecatedAt), timeField(fields, "sunset_at", &f.sunsetAt),
		rateField(fields, &f.rateLimit), errDraft, errRefuse,
	)
}

// timeField reads a time into *out where it is given; null is the zero time.
func timeField(fields map[string]json.RawMessage, name string, out **time.Time) error {
	raw, ok := fields[name]
	if !ok {
		return nil
	}
	var at time.Time
	if err := json.Unmarshal(raw, &at); err != nil || at.UTC().Year() < 1 || at.UTC().Year() > 9999 { // those that JSON can show
		return api.Invalid(name, "invalid_input", "Datetime has wrong format. Use a time such as 2026-06-30T00:00:00Z.")
	}
	*out = &at
	return nil
}

// rateField reads rate_limit into *out where it is given; null is no rate.
func rateField(fields map[string]json.RawMessage, out **Rate) error {
	if raw, ok := fields["rate_limit"]; ok && api.IsNull(raw) {
		*out = new(Rate)
		return nil
	}
	var text string
	if given, err := api.Field(fields, "rate_limit", &text); err != nil || !given {
		return err
	}
	r, err := ParseRate(text)
	if err != nil {
		return api.Invalid("rate_limit", "invalid_input", "%s", err.Error())
	}
	*out = &r
	return nil
}

// refuseMaterialization says why an endpoint can't be materialised; switching it off always works.
func (f *endpointFields) refuseMaterialization(active bool) error {
	switch {
	case f.materialized == nil || !*f.materialized:
		return nil
	case !active:
		return api.Invalid("is_materialized", "invalid_input", "Cannot enable materialization on inactive endpoint.")
	}
	return api.Invalid("", "invalid_input", "Cannot materialize endpoint. Reason: %s", noTables)
}

func (rq *request) createEndpoint() error {
	fields, err := rq.readEndpointFields()
	if err != nil {
		return err
	}
	if api.Deref(fields.name) == "" {
		return api.Invalid("name", "required", "This field is required.")
	}
	if fields.query == nil {
		return api.Invalid("query", "required", "This field is required.")
	}
	if fields.draft {
		return api.Invalid("draft", "invalid_input", "The first version of an endpoint is its current one; is_active keeps it from being run.")
	}
	if err := fields.refuseMaterialization(fields.active == nil || *fields.active); err != nil {
		return err
	}
	wanted := registry.NewEndpoint{
		Project: rq.Project.ID, Name: *fields.name, Description: api.Deref(fields.description), FreshnessSeconds: api.Deref(fields.freshness),
		Inactive: fields.active != nil && !*fields.active, DerivedFromInsight: api.Deref(fields.derivedFrom), Tags: api.Deref(fields.tags),
		OptionalBreakdowns: api.Deref(fields.optionalBreakdowns), DeprecatedAt: api.Deref(fields.deprecatedAt), SunsetAt: api.Deref(fields.sunsetAt),
		RateLimit: api.Deref(fields.rateLimit), CreatedBy: rq.Key.ID,
	}
	if fields.freshness != nil && *fields.freshness == 0 {
		wanted.FreshnessSeconds = -1 // 0 would stand for the default
	}
	checked, err := rq.checkQuery(fields.query)
	if err != nil {
		return err
	}
	if err := checkOptionalBreakdowns(checked.node, wanted.OptionalBreakdowns); err != nil {
		return err
	}
	wanted.Query, wanted.Columns = checked.raw, checked.columns
	e, err := rq.rt.registry.CreateEndpoint(rq.r.Context(), wanted, rq.Start)
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
	fields, err := rq.readEndpointFields()
	if err != nil {
		return err
	}
	if api.Deref(fields.deleted) {
		if err := rq.dropEndpoint(e.Name); err != nil {
			return err
		}
		rq.reply(http.StatusOK, map[string]bool{"success": true})
		return nil
	}
	active := e.Active
	if fields.active != nil && fields.version == nil {
		active = *fields.active
	}
	if err := fields.refuseMaterialization(active); err != nil {
		return err
	}
	if err := rq.targetVersion(e, &fields); err != nil {
		return err
	}
	update := registry.EndpointUpdate{
		Version: api.Deref(fields.version), Draft: fields.draft, Description: fields.description, FreshnessSeconds: fields.freshness,
		Active: fields.active, Tags: fields.tags, DeprecatedAt: fields.deprecatedAt, SunsetAt: fields.sunsetAt,
		OptionalBreakdowns: fields.optionalBreakdowns, RateLimit: fields.rateLimit, By: rq.Key.ID,
	}
	comparison := comparison{snap: rq.Snapshot, project: rq.Project.ID, refuseBreaking: fields.refuseBreaking, attr: "query"}
	if err := rq.setQuery(e, &fields, &update); err != nil {
		return err
	}
	update.Check = comparison.check
	updated, err := rq.rt.registry.UpdateEndpoint(rq.r.Context(), rq.Project.ID, e.Name, update, rq.Start)
	if err != nil {
		return err
	}
	var record endpointRecord
	switch {
	case fields.draft:
		draft := updated.Version(len(updated.Versions))
		record = rq.recordVersion(updated, draft)
		comparison.compare(updated.Current(), draft)
	case fields.version != nil:
		record = rq.recordVersion(updated, updated.Version(update.Version))
	default:
		record = rq.recordEndpoint(updated)
	}
	record.Changes = comparison.found
	rq.reply(http.StatusOK, record)
	return nil
}

// targetVersion finds the version that an update is about: the body's, else the query string's.
func (rq *request) targetVersion(e *registry.Endpoint, fields *endpointFields) error {
	if fields.version == nil {
		number, asked, err := rq.queryInt("version")
		if err != nil {
			return err
		}
		if asked {
			fields.version = &number
		}
	}
	switch {
	case fields.version == nil:
		return nil
	case fields.query != nil:
		return api.Invalid("query", "invalid_input", "Cannot change query when targeting a specific version. Query changes create a new version.")
	case *fields.version == 0 || e.Version(*fields.version) == nil: // 0 would stand for the current one
		return api.Invalid("version", "invalid_input", "Version %d not found", *fields.version)
	}
	return nil
}

// setQuery checks the query of an update, and the fields whose meaning depends on it.
func (rq *request) setQuery(e *registry.Endpoint, fields *endpointFields, update *registry.EndpointUpdate) error {
	if fields.query != nil {
		checked, err := rq.checkQuery(fields.query)
		if err != nil {
			return err
		}
		update.Query, update.Columns, update.SameQuery = checked.raw, checked.columns, checked.same
		return checkOptionalBreakdowns(checked.node, api.Deref(fields.optionalBreakdowns))
	}
	if len(api.Deref(fields.optionalBreakdowns)) == 0 {
		return nil
	}
	node, err := api.StoredQuery(e, e.Version(update.Version))
	if err != nil {
		return err
	}
	return checkOptionalBreakdowns(node, *fields.optionalBreakdowns)
}

// promoteEndpoint answers POST endpoints/:name/promote/: it makes a version the current one, such as a draft.
func (rq *request) promoteEndpoint() error {
	return rq.changeCurrent(func(_ *registry.Endpoint, number int, given bool) (int, error) {
		if !given {
			return 0, api.Invalid("version", "required", "This field is required.")
		}
		return number, nil
	})
}

// rollBackEndpoint answers POST endpoints/:name/rollback/: it makes an older version the current one again, the newest that
// was published before the current one unless the body names another.
func (rq *request) rollBackEndpoint() error {
	return rq.changeCurrent(func(e *registry.Endpoint, number int, given bool) (int, error) {
		if given {
			if v := e.Version(number); v != nil && number != 0 && v.Draft() {
				return 0, api.Invalid("version", "invalid_input", "Version %d is a draft: it never was the current one. Promote it instead.", number)
			}
			return number, nil
		}
		for n := e.CurrentVersion - 1; n > 0; n-- {
			if v := e.Version(n); v.Active && !v.Draft() {
				return n, nil
			}
		}
		return 0, api.Invalid("version", "invalid_input", "There is no older version to go back to.")
	})
}

// changeCurrent makes the version that choose gives the current one, and reports what that changes for callers.
func (rq *request) changeCurrent(choose func(e *registry.Endpoint, number int, given bool) (int, error)) error {
	e, err := rq.endpoint()
	if err != nil {
		return err
	}
	fields, err := rq.readFields("version", "refuse_breaking")
	if err != nil {
		return err
	}
	var number int
	given, err := api.Field(fields, "version", &number)
	if err != nil {
		return err
	}
	refuse, err := api.BoolField(fields, "refuse_breaking")
	if err != nil {
		return err
	}
	if number, err = choose(e, number, given); err != nil {
		return err
	}
	comparison := comparison{snap: rq.Snapshot, project: rq.Project.ID, refuseBreaking: refuse, attr: "version"}
	updated, err := rq.rt.registry.Promote(rq.r.Context(), rq.Project.ID, e.Name, number, comparison.check, rq.Start)
	if err != nil {
		return err
	}
	record := rq.recordEndpoint(updated)
	record.Changes = comparison.found
	rq.reply(http.StatusOK, record)
	return nil
}

func (rq *request) deleteEndpoint() error {
	if err := rq.dropEndpoint(rq.at.Name); err != nil {
		return err
	}
	rq.replyNothing()
	return nil
}

// dropEndpoint deletes an endpoint and what was counted of it.
func (rq *request) dropEndpoint(name string) error {
	e, err := rq.endpoint()
	if err != nil {
		return err
	}
	if err := rq.rt.registry.DeleteEndpoint(rq.r.Context(), rq.Project.ID, name, rq.Start); err != nil {
		return err
	}
	rq.rt.forget(e)
	return nil
}
