package formats

import (
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// postHog reads a row of PostHog's batch exports: an event, or a person with one of its distinct ids. Its properties may be text.
func postHog(f *fields) (record.Record, error) {
	if f.all.Get("event") == nil && f.all.Get("person_id").Given() {
		return postHogPerson(f)
	}
	return postHogEvent(f)
}

func postHogEvent(f *fields) (record.Record, error) {
	r := event()
	r.Event, r.DistinctID, r.Timestamp = f.need("event"), f.need("distinct_id"), f.needTime("timestamp")
	r.UUID = f.uuid("uuid")
	r.HasUUID = r.UUID != uuid.Nil
	r.PersonID = f.uuid("person_id")
	r.Arrived = f.time("created_at")
	r.Properties = f.object("properties")
	r.PersonProperties = f.object("person_properties")
	r.Elements = f.text("elements_chain")
	if chain, ok := r.Properties.Get("$elements_chain").Text(); ok && r.Elements == "" {
		r.Elements = chain
	}
	set(&r.Properties, "$set", f.object("person_set"))
	set(&r.Properties, "$set", f.object("set"))
	set(&r.Properties, "$set_once", f.object("person_set_once"))
	set(&r.Properties, "$set_once", f.object("set_once"))
	addMissing(&r.Properties, "$ip", f.get("ip"))
	// These are about the server, the project or the order of the export, and not about the event.
	f.ignore("team_id", "inserted_at", "_inserted_at", "site_url", "bq_ingested_timestamp", "elements", "properties", "type")
	return r, f.err
}

// set adds what an event sets, unless its properties say it already.
func set(properties *record.Object, name string, values record.Object) {
	if len(values) > 0 {
		addMissing(properties, name, values.Append(nil))
	}
}

func postHogPerson(f *fields) (record.Record, error) {
	r := record.Record{Kind: record.Person, GroupIndex: -1}
	r.DistinctIDs = []string{f.need("distinct_id")}
	r.PersonID = f.uuid("person_id")
	r.Properties = f.object("properties")
	r.CreatedAt = f.time("created_at")
	f.ignore("team_id", "person_version", "person_distinct_id_version", "inserted_at", "_inserted_at", "is_identified")
	if f.flag("is_deleted") {
		return r, errSkip
	}
	return r, f.err
}
