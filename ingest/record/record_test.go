package record

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// FuzzParse reads any text. What is read must be JSON that the engine takes, and reading it again gives the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"event":"a","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":{"$set":{"a":[1,2.5,null,"x"]}}}`,
		`{"type":"person","distinct_ids":["x",7],"properties":{"a.b":"\ud800\u0000"},"created_at":"2024-01-01"}`,
		`{"type":"group","group_type":"o","group_type_index":0,"group_key":"k","properties":{"":{"":{}}}}`,
		`{"type":"cohort","cohort_id":5,"distinct_ids":["x",7,"x"]}`,
		`{"type":"cohort","cohort_id":-1e3,"distinct_ids":[null]}`, `{"type":"cohort","cohort_id":"9223372036854775808","distinct_ids":{}}`,
		`{"event":"a","distinct_id":"x","timestamp":"2024-01-01 00:00","properties":{"n":-0.0e-1,"b":123456789012345678901234567890}}`,
		`{"a":1,"a":{"b":2}}`, `[`, `{"a":"\`, "{\"\xff\":1}", `{"a":tru}`, `{"a":01}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := parseObject(text)
		if err != nil {
			if _, err := new(Parser).Parse(text); err == nil {
				t.Fatalf("%q is no object, but a line", text)
			}
			return
		}
		if !json.Valid([]byte(strings.ToValidUTF8(string(text), "?"))) {
			t.Fatalf("%q was read, but is not JSON", text)
		}
		first := o.JSON()
		if !json.Valid([]byte(first)) || !utf8.ValidString(first) {
			t.Fatalf("%q became %q, which is not JSON", text, first)
		}
		again, err := parseObject([]byte(first))
		if err != nil {
			t.Fatalf("%q became %q, which does not read: %v", text, first, err)
		}
		if second := again.JSON(); second != first {
			t.Fatalf("%q became %q and then %q", text, first, second)
		}
		line, err := new(Parser).Parse(text)
		if err != nil {
			return
		}
		switch line.Kind {
		case Event:
			if line.Event == "" || line.DistinctID == "" || line.Timestamp.Year() < 1900 || line.Timestamp.Year() > 2261 {
				t.Fatalf("%q gives %+v", text, line)
			}
		case Person:
			if len(line.DistinctIDs) == 0 {
				t.Fatalf("%q gives %+v", text, line)
			}
		case Group:
			if line.GroupType == "" || line.GroupKey == "" || line.GroupIndex < -1 || line.GroupIndex >= physical.GroupTypes {
				t.Fatalf("%q gives %+v", text, line)
			}
		case Cohort:
			if line.Cohort < 1 || len(line.DistinctIDs) == 0 {
				t.Fatalf("%q gives %+v", text, line)
			}
		}
	})
}
