package endpoints

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// overrideWarning is sent with runs that use filters_override: contract clients-queries.md section 9.
var overrideWarning = []string{"filters_override is deprecated. Use variables instead, or mark the breakdown property as optional on the endpoint " +
	"if you want to call /run without supplying its value: https://posthog.com/docs/api/endpoints"}

// noticesOf returns the headers that announce an end: for a version, Deprecation (RFC 9745) and Sunset (RFC 8594); for a field, PostHog's X-PostHog-Warn.
// It returns nil if there are none. They are made with the plan, so that a cached run allocates none.
func noticesOf(v *registry.Version, fields map[string]json.RawMessage) http.Header {
	h := http.Header{}
	if !v.DeprecatedAt.IsZero() {
		h["Deprecation"] = []string{"@" + strconv.FormatInt(v.DeprecatedAt.Unix(), 10)}
	}
	if !v.SunsetAt.IsZero() {
		h["Sunset"] = []string{v.SunsetAt.UTC().Format(http.TimeFormat)}
	}
	if raw, ok := fields["filters_override"]; ok && !api.IsNull(raw) {
		h["X-Posthog-Warn"] = overrideWarning
	}
	if len(h) == 0 {
		return nil
	}
	return h
}
