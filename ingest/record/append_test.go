package record_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// TestAppendParse writes any record as a line, which has to read back as the same record.
func TestAppendParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genRecord(t)
		line := record.Append([]byte("before"), &want)[len("before"):]
		if !json.Valid(line) {
			t.Fatalf("%s is not JSON", line)
		}
		got, err := new(record.Parser).Parse(line)
		if err != nil {
			t.Fatalf("Parse(%s): %v", line, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(record.Record{}, "Source"), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s reads back differently (-want +got):\n%s", line, diff)
		}
	})
}

var (
	genName  = rapid.StringN(1, 20, 60)
	genNames = rapid.SliceOfNDistinct(genName, 1, 4, rapid.ID)
	genTime  = rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMicro(rapid.Int64Range(record.Earliest.UnixMicro(), record.Latest.UnixMicro()).Draw(t, "time")).UTC()
	})
	genValue = rapid.OneOf(
		rapid.Map(rapid.String(), record.TextValue),
		rapid.SampledFrom([]record.Value{
			record.Value("null"), record.Value("true"), record.Value("-0.5e-7"), record.Value("18446744073709551615"), record.Value(`{"a":{"b":[1,{"c":"\"}"}]}}`),
		}),
	)
	genProperties = rapid.Custom(func(t *rapid.T) (o record.Object) {
		for _, key := range rapid.SliceOfDistinct(rapid.StringMatching(`[a-z$_.:"\\ é]*`), rapid.ID).Draw(t, "keys") {
			o = append(o, record.Member{Key: key, Value: genValue.Draw(t, "value")})
		}
		return o
	})
)

func genRecord(t *rapid.T) record.Record {
	r := record.Record{
		Kind:       rapid.SampledFrom([]record.Kind{record.Event, record.Person, record.Group, record.Cohort}).Draw(t, "kind"),
		GroupIndex: -1,
	}
	if r.Kind != record.Cohort {
		r.Properties = genProperties.Draw(t, "properties")
	}
	switch r.Kind {
	case record.Event:
		r.Event, r.DistinctID, r.Timestamp = genName.Draw(t, "event"), genName.Draw(t, "distinct id"), genTime.Draw(t, "timestamp")
		r.Elements, r.SharedID = rapid.String().Draw(t, "elements"), rapid.Bool().Draw(t, "shared id")
		if r.HasUUID = rapid.Bool().Draw(t, "has uuid"); r.HasUUID {
			r.UUID = uuid.New()
		}
	case record.Person:
		r.DistinctIDs = genNames.Draw(t, "distinct ids")
	case record.Group:
		r.GroupType, r.GroupKey = genName.Draw(t, "type"), genName.Draw(t, "key")
		r.GroupIndex = rapid.IntRange(-1, 4).Draw(t, "index")
	case record.Cohort:
		r.Cohort, r.DistinctIDs = rapid.Int64Range(1, 1<<62).Draw(t, "cohort"), genNames.Draw(t, "distinct ids")
	}
	if (r.Kind == record.Person || r.Kind == record.Group) && rapid.Bool().Draw(t, "created") {
		r.CreatedAt = genTime.Draw(t, "created_at")
	}
	return r
}
