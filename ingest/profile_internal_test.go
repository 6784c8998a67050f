package ingest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// TestJSONWith records what an event sets with a profile, which stays as it is.
func TestJSONWith(t *testing.T) {
	full := record.Object{}
	for n := range record.MaxNames {
		full = append(full, record.Member{Key: fmt.Sprint("k", n), Value: record.Value("1")})
	}
	two := record.Object{{Key: "a", Value: record.Value("1")}, {Key: "b", Value: record.Value("2")}}
	for _, tt := range []struct {
		name string
		of   record.Object
		set  string
		want string
	}{
		{"nothing", two, `{}`, two.JSON()},
		{"the same", two, `{"a":1}`, two.JSON()},
		{"another value, and one more", two, `{"a":3,"c":null}`, `{"a":3,"b":2,"c":null}`},
		{"to nobody", nil, `{"a":1}`, `{"a":1}`},
		{"what it takes away", two, `{"gone":1}`, two.JSON()},
		{"no room", full, `{"new":1}`, full.JSON()},
		{"room for one of two", full[:record.MaxNames-1], `{"new":1,"newer":1}`, append(full[:record.MaxNames-1:record.MaxNames-1], record.Member{Key: "new", Value: record.Value("1")}).JSON()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, before := profile{properties: tt.of}, tt.of.JSON()
			if diff := cmp.Diff(tt.want, p.jsonWith(&event{set: record.Value(tt.set).Object(), unset: setOf([]string{"gone"})})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := p.json(); got != before {
				t.Errorf("the profile is now %s", got)
			}
		})
	}
}

// TestManyProperties applies events with as many properties as there can be, and with more that are to be taken away. Searching a profile for each of them
// takes minutes.
func TestManyProperties(t *testing.T) {
	all := func(value string) (o record.Object) {
		for n := range record.MaxNames {
			o = append(o, record.Member{Key: fmt.Sprint("k", n), Value: record.Value(value)})
		}
		return o
	}
	gone := make([]string, 100_000)
	for n := range gone {
		gone[n] = fmt.Sprint("k", 2*n)
	}
	values := []record.Object{all("1"), all("2")}
	one, p := &person{}, &people{noRoom: func(int) { t.Error("there is no room") }}
	unset := setOf(gone)
	for n := range 400 {
		e := &event{Record: &record.Record{Line: n}, set: values[n%2], setOnce: values[0]}
		if n%2 == 1 {
			e.unset = unset
		}
		if !worthwhile(one, e) {
			t.Fatalf("event %d changes nothing", n)
		}
		p.update(one, e)
		want := record.MaxNames
		if n%2 == 1 {
			want /= 2
		}
		if len(one.properties) != want || one.places != nil || one.line != n {
			t.Fatalf("after event %d there are %d properties, want %d", n, len(one.properties), want)
		}
		if got := string(one.get("k1")); got != string(values[n%2][1].Value) {
			t.Fatalf("after event %d, k1 is %s", n, got)
		}
	}
}
