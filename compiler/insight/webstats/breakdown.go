package webstats

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// breakdown is what the visits are broken down by.
type breakdown struct {
	// of is the value of an event.
	of string
	// paths are the values of the placeholders in of: paths, to which the project's rules apply.
	paths map[string]string
	// host is the host of the value, which is a path; empty for other values.
	host string
	// shown is the condition on the values in the answer; empty for those that are not null.
	shown string
	// typ is the ClickHouse type of a value; empty for text.
	typ string
}

// The conditions on the values in the answer.
const (
	all     = `true`
	notNull = `value IS NOT NULL`
	named   = `value IS NOT NULL AND value != ''`
	second  = `tupleElement(value, 2) IS NOT NULL`
	sized   = `tupleElement(value, 1) > 0 AND tupleElement(value, 2) > 0`
)

// The types of values with several parts.
const (
	twoTexts   = "Tuple(Nullable(String), Nullable(String))"
	threeTexts = "Tuple(Nullable(String), Nullable(String), Nullable(String))"
	twoNumbers = "Tuple(Nullable(Float64), Nullable(Float64))"
)

// breakdowns are all breakdowns, by the API's words.
var breakdowns = map[string]breakdown{
	"Page":        path("properties.$pathname", "properties.$host"),
	"InitialPage": path("session.$entry_pathname", "session.$entry_hostname"),
	"ExitPage":    path("session.$end_pathname", "session.$end_hostname"),
	"ExitClick":   {of: "session.$last_external_click_url"},
	"ScreenName":  {of: "properties.$screen_name"},
	// Within an app the previous page is known. Otherwise it is the referrer: its path if it is on the same site, else its whole URL.
	"PreviousPage": {
		of: `multiIf(properties.$prev_pageview_pathname IS NOT NULL, {previous},
			domain(properties.$current_url) = domain(properties.$referrer), {referrer}, properties.$referrer)`,
		paths: map[string]string{"previous": "properties.$prev_pageview_pathname", "referrer": "path(properties.$referrer)"},
	},
	"InitialChannelType":     {of: "session.$channel_type", shown: named},
	"InitialReferringDomain": {of: "session.$entry_referring_domain"},
	"InitialReferringURL":    {of: "cutQueryStringAndFragment(session.$entry_referrer)"},
	"InitialUTMSource":       {of: "session.$entry_utm_source", shown: all},
	"InitialUTMCampaign":     {of: "session.$entry_utm_campaign", shown: all},
	"InitialUTMMedium":       {of: "session.$entry_utm_medium", shown: all},
	"InitialUTMTerm":         {of: "session.$entry_utm_term", shown: all},
	"InitialUTMContent":      {of: "session.$entry_utm_content", shown: all},
	"InitialUTMSourceMediumCampaign": {of: `concatWithSeparator(' / ',
		multiIf(session.$entry_utm_source is not null, session.$entry_utm_source,
			session.$entry_referring_domain is not null, concat('referrer:', session.$entry_referring_domain), '(none)'),
		coalesce(session.$entry_utm_medium, '(none)'), coalesce(session.$entry_utm_campaign, '(none)'))`},
	"Browser":    {of: "properties.$browser"},
	"OS":         {of: "properties.$os"},
	"Viewport":   {of: "tuple(toFloat(properties.$viewport_width), toFloat(properties.$viewport_height))", shown: sized, typ: twoNumbers},
	"DeviceType": {of: "properties.$device_type"},
	"Country":    {of: "properties.$geoip_country_code"},
	"Region": {
		of:    "tuple(properties.$geoip_country_code, properties.$geoip_subdivision_1_code, properties.$geoip_subdivision_1_name)",
		shown: second, typ: threeTexts,
	},
	"City": {of: "tuple(properties.$geoip_country_code, properties.$geoip_city_name)", shown: second, typ: twoTexts},
	// Browsers count the minutes from local time to UTC.
	"Timezone": {of: "0 - toFloat(properties.$timezone_offset) / 60", typ: "Nullable(Float64)"},
	language:   {of: "properties.$browser_language"},
}

// language has rows for languages, each with the region of most of its visits.
const language = "Language"

func path(of, host string) breakdown {
	return breakdown{of: "{path}", paths: map[string]string{"path": of}, host: host}
}

// value returns the value of an event by a breakdown, with clean paths and with hosts if the query asks for them.
func (b *builder) value(by breakdown) hogql.Expr {
	values := map[string]any{}
	for name, text := range by.paths {
		p := insight.TemplateExpr(text, nil)
		if b.clean != nil {
			p = b.clean(p)
		}
		values[name] = p
	}
	value := insight.TemplateExpr(by.of, values)
	if !b.query.Hosts || by.host == "" {
		return value
	}
	return insight.TemplateExpr("nullIf(concat("+by.host+", {value}), '')", map[string]any{"value": value})
}

// condition returns the condition on the column value that the answer has it.
func (b breakdown) condition() hogql.Expr {
	if b.shown == "" {
		return insight.TemplateExpr(notNull, nil)
	}
	return insight.TemplateExpr(b.shown, nil)
}
