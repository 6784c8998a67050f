package endpoints

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// fields are the writable fields of contract api.md, section 5.2, and this project's own for drafts and deprecation; nil means not given.
type fields struct {
	name, description, derivedFrom *string
	freshness, version             *int
	active, materialized, deleted  *bool
	tags, optionalBreakdowns       *[]string
	rateLimit                      *registry.Rate // the zero Rate for null
	deprecatedAt, sunsetAt         *time.Time     // the zero time for null
	draft, refuseBreaking          *bool
	buckets                        map[string]string // of a materialized version; nil if not given
	query                          json.RawMessage
}

// writable are the fields that a write may contain. readable are those that it may contain because clients send records back as they read them; they change
// nothing. Any other field is refused, as a mistake in its name would go unnoticed.
var (
	writable = []string{
		"name", "query", "description", "data_freshness_seconds", "is_active", "is_materialized", "derived_from_insight", "version",
		"bucket_overrides", "optional_breakdown_properties", "tags", "deleted", "deprecated_at", "sunset_at", "draft", "refuse_breaking",
		"rate_limit",
	}
	readable = []string{
		"id", "endpoint_path", "url", "ui_url", "created_at", "updated_at", "created_by", "current_version", "current_version_id",
		"versions_count", "last_executed_at", "materialization", "columns", "version_id", "endpoint_is_active", "version_created_at",
		"version_updated_at", "version_created_by", "is_current", "is_draft", "published_at", "changes", "materialization_error",
	}
)

// readFields reads the body of a write.
func readFields(in *api.Input) (f fields, err error) {
	body, err := in.ReadFields(slices.Concat(writable, readable)...)
	if err != nil {
		return f, err
	}
	if f.buckets, err = bucketsField(body); err != nil {
		return f, err
	}
	if raw, ok := body["data_freshness_seconds"]; ok && api.IsNull(raw) {
		f.freshness = new(registry.DefaultFreshness)
	}
	if raw, ok := body["optional_breakdown_properties"]; ok && api.IsNull(raw) {
		f.optionalBreakdowns = new([]string)
	}
	if raw := body["query"]; !api.IsNull(raw) {
		f.query = raw
	}
	return f, errors.Join(
		api.Optional(body, "name", &f.name), api.Optional(body, "description", &f.description),
		api.Optional(body, "derived_from_insight", &f.derivedFrom), api.Optional(body, "data_freshness_seconds", &f.freshness),
		api.Optional(body, "version", &f.version), api.Optional(body, "is_active", &f.active),
		api.Optional(body, "is_materialized", &f.materialized), api.Optional(body, "deleted", &f.deleted), api.Optional(body, "tags", &f.tags),
		api.Optional(body, "optional_breakdown_properties", &f.optionalBreakdowns),
		timeField(body, "deprecated_at", &f.deprecatedAt), timeField(body, "sunset_at", &f.sunsetAt), rateField(body, &f.rateLimit),
		api.Optional(body, "draft", &f.draft), api.Optional(body, "refuse_breaking", &f.refuseBreaking),
	)
}

// timeField reads a time into *out if given; null is the zero time.
func timeField(body map[string]json.RawMessage, name string, out **time.Time) error {
	if raw, ok := body[name]; ok && api.IsNull(raw) {
		*out = new(time.Time)
		return nil
	}
	var text string
	if given, err := api.Field(body, name, &text); err != nil || !given {
		return err
	}
	at, err := api.TimeField(name, text)
	if err == nil {
		*out = &at
	}
	return err
}

// rateField reads rate_limit into *out if given; null is the zero Rate.
func rateField(body map[string]json.RawMessage, out **registry.Rate) error {
	if raw, ok := body["rate_limit"]; ok && api.IsNull(raw) {
		*out = new(registry.Rate)
		return nil
	}
	var text string
	if given, err := api.Field(body, "rate_limit", &text); err != nil || !given {
		return err
	}
	r, err := registry.ParseRate(text)
	if err != nil {
		return api.Invalid("rate_limit", "invalid_input", "%s", err.Error())
	}
	*out = &r
	return nil
}

// bucketsField reads bucket_overrides; nil if not given or null.
func bucketsField(body map[string]json.RawMessage) (map[string]string, error) {
	var buckets map[string]string
	if _, err := api.Field(body, "bucket_overrides", &buckets); err != nil {
		return nil, err
	}
	var wrong []string
	for _, column := range slices.Sorted(maps.Keys(buckets)) {
		if bucket := buckets[column]; !slices.Contains(materialize.BucketNames, bucket) {
			wrong = append(wrong, fmt.Sprintf("'%s': '%s'", column, bucket))
		}
	}
	if len(wrong) > 0 {
		return nil, api.Invalid("bucket_overrides", "invalid_input", "Invalid bucket override values: {%s}. Valid options: ['%s']",
			strings.Join(wrong, ", "), strings.Join(materialize.BucketNames, "', '"))
	}
	return buckets, nil
}
