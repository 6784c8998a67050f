package formats

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// mixpanel reads a line of Mixpanel's raw export. Everything about an event but its name is in its properties.
func mixpanel(f *fields) (record.Record, error) {
	r := event()
	r.Event = f.need("event")
	all := f.object("properties")
	if f.err != nil {
		return r, f.err
	}
	p := fields{all: all}
	p.known = p.room[:0]
	r.Timestamp = p.needTime("time")
	r.DistinctID = p.text("distinct_id")
	user, device := p.text("$user_id"), p.text("$device_id")
	switch {
	case r.DistinctID == "" && user != "":
		r.DistinctID = user
	case r.DistinctID == "" && device != "":
		r.DistinctID = mixpanelDevice + device
	}
	mixpanelMerge(&r, &p, user, device)
	if r.DistinctID == "" && p.err == nil {
		p.err = errNoIDs
	}
	if id := p.text("$insert_id"); id != "" {
		r.UUID, r.HasUUID = idOf("mixpanel", r.Event+" "+r.DistinctID+" "+id), true
	}
	r.Properties = make(record.Object, 0, len(all))
	for _, m := range all {
		if name := mixpanelName(m.Key); name != "" {
			r.Properties = r.Properties.Set(name, m.Value)
		}
	}
	if name, ok := mixpanelEvents[r.Event]; ok {
		r.Event = name
	}
	return r, p.err
}

// mixpanelDevice is the prefix of a device id that is a distinct id.
const mixpanelDevice = "$device:"

// mixpanelMerge finds which ids an event says belong to one person.
func mixpanelMerge(r *record.Record, p *fields, user, device string) {
	switch r.Event {
	case "$identify":
		if id := p.text("$identified_id"); id != "" {
			r.DistinctID, r.OtherID = id, p.text("$anon_id")
			return
		}
	case "$create_alias":
		if alias := p.text("alias"); alias != "" {
			r.OtherID = alias
			return
		}
	case "$merge":
		if ids := p.get("$distinct_ids").Texts(); len(ids) == 2 {
			r.DistinctID, r.OtherID = ids[0], ids[1]
			return
		}
	}
	switch before := p.text("$distinct_id_before_identity"); {
	case before != "" && before != r.DistinctID:
		r.OtherID = before
	case user != "" && device != "" && r.DistinctID == user:
		r.OtherID = mixpanelDevice + strings.TrimPrefix(device, mixpanelDevice)
	}
}

// Events and properties that have other names here.
var (
	mixpanelEvents = map[string]string{"$mp_web_page_view": "$pageview"}

	mixpanelNames = map[string]string{
		"$city": "$geoip_city_name", "$region": "$geoip_subdivision_1_name", "mp_country_code": "$geoip_country_code",
		"mp_lib": "$lib", "$lib_version": "$lib_version", "current_url": "$current_url",
		// These are fields, or say how the event passed through Mixpanel.
		"time": "", "distinct_id": "", "$insert_id": "", "mp_processing_time_ms": "", "$mp_api_endpoint": "", "$mp_api_timestamp_ms": "", "$geo_source": "",
		"$import": "",
	}
)

// mixpanelName returns the name that a property has here; empty for one that is left out.
func mixpanelName(name string) string {
	if other, ok := mixpanelNames[name]; ok {
		return other
	}
	return name
}

// mixpanelPeople reads a profile as /engage returns it.
func mixpanelPeople(f *fields) (record.Record, error) {
	r := record.Record{Kind: record.Person, GroupIndex: -1}
	r.DistinctIDs = []string{f.need("$distinct_id")}
	for _, m := range f.object("$properties") {
		switch m.Key {
		case "$email", "$name", "$first_name", "$last_name", "$phone", "$avatar":
			r.Properties = r.Properties.Set(m.Key[1:], m.Value)
		case "$city", "$region", "$country_code":
			r.Properties = r.Properties.Set(mixpanelPlaces[m.Key], m.Value)
		case "$distinct_id":
		case "$created":
			text, _ := m.Value.Text()
			r.CreatedAt, _ = timeOf(text)
		default:
			r.Properties = r.Properties.Set(m.Key, m.Value)
		}
	}
	return r, f.err
}

var mixpanelPlaces = map[string]string{"$city": "$geoip_city_name", "$region": "$geoip_subdivision_1_name", "$country_code": "$geoip_country_code"}
