package formats

import (
	"strings"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// amplitude reads a line of Amplitude's export. An event with a user and a device says that the device is the user's, unless it is another's.
func amplitude(f *fields) (record.Record, error) {
	r := event()
	r.Event = f.need("event_type")
	user, device := f.text("user_id"), f.text("device_id")
	switch {
	case user != "":
		r.DistinctID, r.OtherID = user, device
	case device != "":
		r.DistinctID = device
	default:
		if id := f.text("amplitude_id"); id != "" {
			r.DistinctID = "amplitude:" + id
		} else if f.err == nil {
			f.err = errNoIDs
		}
	}
	if r.Timestamp = f.time("event_time"); r.Timestamp.IsZero() {
		r.Timestamp = f.needTime("client_event_time")
	}
	switch id := f.text("uuid"); {
	case id != "":
		r.UUID = idOf("amplitude", id)
	default:
		if id = f.text("$insert_id"); id == "" {
			id = f.text("insert_id")
		}
		if id != "" {
			r.UUID = idOf("amplitude insert", device+" "+id)
		}
	}
	r.HasUUID = r.UUID != uuid.Nil
	r.Arrived = f.time("server_received_time")
	amplitudeProperties(&r, f)
	if name, ok := amplitudeEvents[r.Event]; ok {
		r.Event = name
	}
	f.ignore(amplitudeIgnored...)
	return r, f.err
}

var amplitudeEvents = map[string]string{"[Amplitude] Page Viewed": "$pageview"}

// amplitudeNames are fields that become properties, with the names of the properties.
var amplitudeNames = [][2]string{
	{"country", "$geoip_country_name"},
	{"region", "$geoip_subdivision_1_name"},
	{"city", "$geoip_city_name"},
	{"ip_address", "$ip"},
	{"language", "$locale"},
	{"version_name", "$app_version"},
	{"library", "$lib"},
	{"platform", "platform"},
	{"os_name", "os_name"},
	{"os_version", "os_version"},
	{"device_type", "device_type"},
	{"device_family", "device_family"},
	{"device_model", "$device_model"},
	{"device_brand", "device_brand"},
	{"device_manufacturer", "$device_manufacturer"},
	{"device_carrier", "device_carrier"},
	{"device_id", "$device_id"},
	{"session_id", "$amplitude_session_id"},
}

var amplitudePages = [][2]string{
	{"[Amplitude] Page URL", "$current_url"},
	{"[Amplitude] Page Domain", "$host"},
	{"[Amplitude] Page Path", "$pathname"},
	{"[Amplitude] Page Title", "title"},
	{"referrer", "$referrer"},
	{"referring_domain", "$referring_domain"},
}

// amplitudeIgnored are fields that say how an event passed through Amplitude.
var amplitudeIgnored = []string{
	"amplitude_id", "app", "client_event_time", "client_upload_time", "server_upload_time", "processed_time", "event_id", "$insert_id", "insert_id", "$insert_key", "$schema", "schema",
	"adid", "idfa", "amplitude_attribution_ids", "amplitude_event_type", "data", "data_type", "dma", "group_properties", "global_user_properties",
	"is_attribution_event", "location_lat", "location_lng", "partner_id", "paying", "plan", "sample_rate", "source_id", "start_version", "user_creation_time",
	"_insert_id", "project_name", "device_id", "user_id",
}

func amplitudeProperties(r *record.Record, f *fields) {
	p := f.object("event_properties")
	for _, name := range amplitudePages {
		addMissing(&p, name[1], p.Get(name[0]))
	}
	for _, name := range amplitudeNames {
		if v := f.get(name[0]); v != nil && string(v) != `""` && string(v) != "-1" {
			addMissing(&p, name[1], v)
		}
	}
	for _, m := range f.object("user_properties") {
		switch {
		case string(m.Value) == `"EMPTY"`:
		case strings.HasPrefix(m.Key, "initial_"):
			r.PersonProperties = r.PersonProperties.Set("$"+m.Key, m.Value)
		default:
			r.PersonProperties = r.PersonProperties.Set(m.Key, m.Value)
		}
	}
	groups := record.Object{}
	for _, m := range f.object("groups") {
		key := m.Value
		if list := m.Value.Texts(); len(m.Value) > 0 && m.Value[0] == '[' {
			if len(list) == 0 {
				continue
			}
			key = record.TextValue(list[0])
		}
		if _, ok := key.Text(); ok {
			groups = groups.Set(m.Key, key)
		}
	}
	set(&p, "$groups", groups)
	if p.ManyNames() {
		f.fail("it has more than %d property names", record.MaxNames)
	}
	r.Properties = p
}
