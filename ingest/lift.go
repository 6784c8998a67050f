package ingest

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// lifted maps the properties of events that their person gets too to the names under which the person keeps the first value (contract capture.md section 8).
var lifted = func() map[string]string {
	set := map[string]string{}
	for name := range strings.FieldsSeq(`
		$app_build $app_name $app_namespace $app_version $browser $browser_version $device_type $current_url $pathname $os $os_version
		$referring_domain $referrer $screen_height $screen_width $viewport_height $viewport_width $raw_user_agent
		utm_source utm_medium utm_campaign utm_content utm_name utm_term gclid gad_source gclsrc dclid gbraid wbraid fbclid msclkid
		twclid li_fat_id mc_cid igshid ttclid rdt_cid epik qclid sccid irclid _kx`) {
		set[name] = "$initial_" + strings.TrimPrefix(name, "$")
	}
	return set
}()

// lift adds the lifted properties of an event to those that it sets, unless it sets them itself.
func (e *event) lift() {
	server := e.fromServer()
	set, once := e.set, e.setOnce
	for _, m := range e.Properties {
		initial, ok := lifted[m.Key]
		if !ok || server && (m.Key == "$os" || m.Key == "$os_version") {
			continue
		}
		if set.Get(m.Key) == nil {
			e.set = append(e.set, m)
		}
		if !m.Value.IsNull() && once.Get(initial) == nil {
			e.setOnce = append(e.setOnce, record.Member{Key: initial, Value: m.Value})
		}
	}
}

// neverUpdates reports whether events of this name leave a person unchanged.
func neverUpdates(event string) bool {
	return event == "$exception" || event == "$$heatmap" || event == "$groupidentify"
}

// passing holds the properties of a person that change with each page or journey: another value alone is not worth another row of the person.
var passing = func() map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(`
		$current_url $pathname $referring_domain $referrer $screen_height $screen_width $viewport_height $viewport_width
		$browser $browser_version $device_type $raw_user_agent $os $os_name $os_version
		$geoip_postal_code $geoip_time_zone $geoip_latitude $geoip_longitude $geoip_accuracy_radius $geoip_city_confidence
		$geoip_country_confidence $geoip_postal_code_confidence $geoip_subdivision_1_code $geoip_subdivision_1_name
		$geoip_subdivision_1_confidence $geoip_subdivision_2_code $geoip_subdivision_2_name $geoip_subdivision_2_confidence
		$geoip_subdivision_3_code $geoip_subdivision_3_name`) {
		set[name] = true
	}
	return set
}()

// worthwhile reports whether an event changes more of a person than passing properties.
func worthwhile(of *person, e *event) bool {
	switch e.Event {
	case "$identify", "$set", "$create_alias", "$merge_dangerously":
		return true
	}
	of.index(len(e.setOnce) + len(e.set))
	defer of.unindex()
	for _, m := range e.setOnce {
		if !m.Value.IsNull() && missing(of, m) { // posthog-js sends two dozen nulls with each page
			return true
		}
	}
	for _, m := range e.set {
		old := of.get(m.Key)
		switch {
		case old == nil && !m.Value.IsNull():
			return true
		case old != nil && string(old) != string(m.Value) && !passing[m.Key]:
			return true
		}
	}
	return of.hasAny(e.unset)
}
