package schema

import "strings"

// The sessions of a project are its events grouped by $session_id (contract: hogql.md, section 7; api.md, section 9.1). They are not stored: a query
// computes the fields that it uses.

const (
	// seen is the condition on events that show a page or a screen. Their properties tell where a session came from; those of other events only count
	// if there is no such event: entryTime and endTime move those a year away.
	seen      = "event in ('$pageview', '$screen')"
	entryTime = "if(" + seen + ", timestamp, timestamp + toIntervalSecond(31536000))"
	endTime   = "if(" + seen + ", timestamp, timestamp - toIntervalSecond(31536000))"
	// counted is the condition on events that keep a session from being a bounce.
	counted = "event in ('$pageview', '$screen', '$autocapture')"
)

// adIDs are the ad networks' click ids that sessions keep, in addition to gclid, gad_source and fbclid.
var adIDs = strings.Fields("gclsrc dclid gbraid wbraid msclkid twclid li_fat_id mc_cid igshid ttclid epik qclid sccid _kx irclid")

func entry(property string) *Formula {
	return ofGroup("argMin(properties." + property + ", " + entryTime + ")")
}

// entryHas reports whether the session's first event has a property.
func entryHas(property string) *Formula {
	return ofGroup("argMin(properties." + property + " is not null, " + entryTime + ")")
}

// channelFacts is a hidden field: what the session's first event tells about its origin, as one tuple in this order.
const channelFacts = "$entry_channel_type_properties"

func sessionChannel() *Formula {
	return channelType(channelInputs{
		facts: map[string]string{
			"utm_source": channelFacts + ".1", "utm_medium": channelFacts + ".2", "utm_campaign": channelFacts + ".3",
			"referring_domain": channelFacts + ".4", "url": "$entry_current_url", "pathname": "$entry_pathname", "hostname": "$entry_hostname",
		},
		gclid: channelFacts + ".5", fbclid: channelFacts + ".6", gadSource: channelFacts + ".7",
	})
}

func sessionFields() []Field {
	text := func(name string, f *Formula) Field { return Field{Name: name, Type: stringType, Formula: f} }
	number := func(name string, f *Formula) Field { return Field{Name: name, Type: intType, Formula: f} }
	moment := func(name string, f *Formula) Field { return Field{Name: name, Type: timeType, Formula: f} }
	flag := func(name string, f *Formula) Field { return Field{Name: name, Type: boolType, Formula: f} }
	hidden := func(f Field) Field { f.Hidden = true; return f }
	fields := []Field{
		text("session_id", ofGroup("$session_id")),
		hidden(number(ProjectColumn, ofGroup("any(team_id)"))),
		hidden(number("session_id_v7", formula("_toUInt128(toUUID(session_id))"))),
		hidden(Field{Name: "id", Type: stringType, Same: "session_id"}),
		moment("session_timestamp", formula("UUIDv7ToDateTime(assumeNotNull(toUUID(session_id)))")),
		text("distinct_id", ofGroup("argMax(distinct_id, timestamp)")),
		{Name: "person_id", Type: uuidType, Formula: ofGroup("argMax(person_id, timestamp)")},
		moment("$start_timestamp", ofGroup("min(timestamp)")),
		moment("$end_timestamp", ofGroup("max(timestamp)")),
		moment("max_inserted_at", ofGroup("max(inserted_at)").needing("inserted_at")),
		{Name: "$urls", Type: stringsOf, Formula: ofGroup("arrayDistinct(arrayMap(u -> u.2, arraySort(" +
			"groupArrayIf((timestamp, ifNull(properties.$current_url, '')), " + seen + " and properties.$current_url is not null))))")},
		number("$num_uniq_urls", formula("length($urls)")),
		text("$entry_current_url", entry("$current_url")),
		text("$entry_pathname", formula("path($entry_current_url)")),
		text("$entry_hostname", formula("domain($entry_current_url)")),
		text("$end_current_url", ofGroup("argMax(properties.$current_url, "+endTime+")")),
		text("$end_pathname", formula("path($end_current_url)")),
		text("$end_hostname", formula("domain($end_current_url)")),
		text("$entry_referring_domain", entry("$referring_domain")),
		hidden(text("$entry_referrer", entry("$referrer"))),
		text("$last_external_click_url", ofGroup("argMax(properties.$external_click_url, timestamp)")),
		hidden(Field{Name: "$exit_current_url", Type: stringType, Same: "$end_current_url"}),
		hidden(Field{Name: "$exit_pathname", Type: stringType, Same: "$end_pathname"}),
	}
	for _, name := range []string{"utm_source", "utm_campaign", "utm_medium", "utm_term", "utm_content"} {
		fields = append(fields, text("$entry_"+name, entry(name)))
	}
	fields = append(fields,
		text("$entry_fbclid", entry("fbclid")),
		hidden(text("$entry_gclid", entry("gclid"))),
		hidden(text("$entry_gad_source", entry("gad_source"))),
		flag("$entry_has_fbclid", entryHas("fbclid")),
		flag("$entry_has_gclid", entryHas("gclid")),
		number("$pageview_count", ofGroup("uniqExactIf(uuid, event = '$pageview')")),
		number("$autocapture_count", ofGroup("uniqExactIf(uuid, event = '$autocapture')")),
		number("$screen_count", ofGroup("uniqExactIf(uuid, event = '$screen')")),
		hidden(number("$page_screen_autocapture_count_up_to", ofGroup("least(uniqExactIf(uuid, "+counted+"), 2)"))),
		hidden(Field{Name: channelFacts, Formula: ofGroup(
			"argMin(tuple(properties.utm_source, properties.utm_medium, properties.utm_campaign, properties.$referring_domain, " +
				"properties.gclid is not null, properties.fbclid is not null, properties.gad_source), " + entryTime + ")",
		), Type: tupleType}),
		text("$channel_type", sessionChannel()),
		number("$session_duration", formula("dateDiff('second', $start_timestamp, $end_timestamp)")),
		hidden(Field{Name: "duration", Type: intType, Same: "$session_duration"}),
		flag("$is_bounce", formula("if($page_screen_autocapture_count_up_to = 0, null, "+
			"not ($page_screen_autocapture_count_up_to > 1 or $session_duration >= {"+bounceSeconds+"}))")),
		hidden(Field{Name: "$vitals_lcp", Type: floatType, Formula: ofGroup(
			"argMin(toFloat(properties.$web_vitals_LCP_value), timestamp)",
		)}),
	)
	for _, id := range adIDs {
		fields = append(fields, text("$entry_"+id, entry(id)), flag("$entry_has_"+id, entryHas(id)))
	}
	return fields
}

// sessions only has ids that are UUIDv7: other ids belong to no session.
var sessions = &Table{
	Name: "sessions", Physical: "events", Fields: sessionFields(),
	Grouping: &Grouping{
		Table: "events", Key: "$session_id", Time: "timestamp", First: "$start_timestamp", Last: "$end_timestamp", MostDays: 3,
		where: formula("substring($session_id, 15, 1) = '7' and toUUID($session_id) is not null"),
	},
}
