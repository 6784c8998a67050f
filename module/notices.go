package module

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// notices are headers that announce an end: that of a version by Deprecation (RFC 9745) and Sunset (RFC 8594), that of a field by
// the peer's X-PostHog-Warn. They are made with the plan, so that a cached run allocates none.
type notices struct{ deprecation, sunset, warn []string }

// overrideWarning is sent with runs that use filters_override: contract section 5.4.
var overrideWarning = []string{"filters_override is deprecated. Use variables instead."}

// noticesOf gives the notices of a run with these fields; nil for none.
func noticesOf(v *registry.Version, fields map[string]json.RawMessage) *notices {
	var n notices
	if !v.DeprecatedAt.IsZero() {
		n.deprecation = []string{"@" + strconv.FormatInt(v.DeprecatedAt.Unix(), 10)}
	}
	if !v.SunsetAt.IsZero() {
		n.sunset = []string{v.SunsetAt.UTC().Format(http.TimeFormat)}
	}
	if raw, ok := fields["filters_override"]; ok && !api.IsNull(raw) {
		n.warn = overrideWarning
	}
	if n.deprecation == nil && n.sunset == nil && n.warn == nil {
		return nil
	}
	return &n
}

// setNotices sets the headers that announce the end of what the plan uses.
func (p *plan) setNotices(h http.Header) {
	if p.notices == nil {
		return
	}
	if p.notices.deprecation != nil {
		h["Deprecation"] = p.notices.deprecation
	}
	if p.notices.sunset != nil {
		h["Sunset"] = p.notices.sunset
	}
	if p.notices.warn != nil {
		h["X-Posthog-Warn"] = p.notices.warn
	}
}
