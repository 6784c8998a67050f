package clickhouse

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"
)

func TestParseType(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string, location *time.Location) chType { return chType{name: name, location: location} }
	tests := []struct {
		text  string
		want  chType
		times bool
		easy  bool
	}{
		{"UInt64", chType{name: "UInt64"}, false, true},
		{"DateTime", at("DateTime", time.UTC), false, true},
		{"DateTime('Europe/Berlin')", at("DateTime", berlin), true, true},
		{"DateTime64(6, 'UTC')", at("DateTime64", time.UTC), true, true},
		{"DateTime64(3)", at("DateTime64", time.UTC), true, true},
		{"Nullable(Nothing)", chType{name: "Nothing", nullable: true}, false, true},
		{"LowCardinality(Nullable(String))", chType{name: "String", nullable: true}, false, true},
		{"Enum8('a,(' = 1, 'b\\'' = 2)", chType{name: "Enum8"}, false, true},
		{"Array(Nullable(DateTime64(6, 'UTC')))", chType{name: "Array", args: []chType{{name: "DateTime64", location: time.UTC, nullable: true}}}, true, true},
		{"Map(String, Array(DateTime))", chType{name: "Map", args: []chType{{name: "String"}, {name: "Array", args: []chType{at("DateTime", time.UTC)}}}}, false, true},
		{"Tuple(a UInt8, `b, c` DateTime64(3, 'UTC'), String)", chType{name: "Tuple", args: []chType{{name: "UInt8"}, at("DateTime64", time.UTC), {name: "String"}}}, true, true},
		{"Tuple(Tuple(String))", chType{name: "Tuple", args: []chType{{name: "Tuple", args: []chType{{name: "String"}}}}}, false, false},
		{"Nested(a UInt8)", chType{name: "Array", args: []chType{{name: "Tuple", args: []chType{{name: "UInt8"}}}}}, false, false},
		{"SimpleAggregateFunction(max, DateTime64(6, 'Europe/Berlin'))", at("DateTime64", berlin), true, true},
		{"AggregateFunction(uniq, String)", chType{name: "AggregateFunction"}, false, false},
		{"JSON(max_dynamic_paths=8, a.b UInt8)", chType{name: "JSON"}, false, true},
		{"Variant(DateTime64(3), String)", chType{name: "Variant", args: []chType{at("DateTime64", time.UTC), {name: "String"}}}, false, false},
		{"Decimal(18, 4)", chType{name: "Decimal"}, false, true},
		{"IntervalDay", chType{name: "IntervalDay"}, false, true},
	}
	for _, tt := range tests {
		got := parseType(tt.text)
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(chType{}), cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
		if got.hasTime() != tt.times || got.easy() != tt.easy {
			t.Errorf("%s: has times %t, easy %t", tt.text, got.hasTime(), got.easy())
		}
	}
}

// FuzzTimeWriter rewrites rows of JSON. Values other than times are unchanged; times come out as package time prints them.
func FuzzTimeWriter(f *testing.F) {
	f.Add(`"a"`, "2020-01-02T03:04:05.123456Z")
	f.Add(`[1,{"a":"]\""}]`, "1969-12-31T23:59:59Z")
	f.Add(`-1e-7`, "2024-11-03T05:59:59.999Z")
	f.Add(`null`, "1900-01-01T00:00:00.1234567Z")
	shown := func(at time.Time) string {
		layout := "2006-01-02T15:04:05"
		if at.Nanosecond() >= 1000 {
			layout += ".000000"
		}
		switch _, offset := at.Zone(); {
		case offset == 0:
			layout += "Z"
		case offset%60 == 0:
			layout += "-07:00"
		default:
			layout += "-07:00:00"
		}
		return at.Format(layout)
	}
	f.Fuzz(func(t *testing.T, value, clock string) {
		if !json.Valid([]byte(value)) || strings.ContainsAny(value, " \t\r\n") {
			return
		}
		at, err := time.Parse("2006-01-02T15:04:05.999999999Z", clock)
		if err != nil || at.Year() < 1900 || at.Year() > 2299 || at.Format("2006-01-02T15:04:05") != clock[:secondsEnd] || strings.Contains(clock, ",") {
			return // the engine prints no such time
		}
		for _, name := range []string{"UTC", "America/New_York", "Asia/Kathmandu", "Europe/Dublin", "Africa/Monrovia"} {
			zone, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			w := newTimeWriter([]Column{{"v", "String"}, {"t", "DateTime64(6, '" + name + "')"}, {"a", "Array(DateTime64(9, 'UTC'))"}})
			const around = 100 * 24 * time.Hour
			for _, at := range []time.Time{at, at.Add(around), at.Add(-around), at} { // the second half of a year may have another offset
				printed := at.Format("2006-01-02T15:04:05") + clock[secondsEnd:]
				row := `[` + value + `, "` + printed + `", ["` + printed + `",null]]`
				got, err := w.row([]byte(row))
				if err != nil {
					t.Fatalf("%s: %v", row, err)
				}
				if want := `[` + value + `, "` + shown(at.In(zone)) + `", ["` + shown(at) + `",null]]`; string(got) != want {
					t.Fatalf("%s: %s became %s, want %s", name, row, got, want)
				}
			}
		}
	})
}

func TestAppendTime(t *testing.T) {
	zone := func(name string) *time.Location {
		location, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		return location
	}
	tests := []struct {
		at   time.Time
		want string
	}{
		{time.Unix(0, 0).UTC(), "1970-01-01T00:00:00Z"},
		{time.Unix(0, 999).UTC(), "1970-01-01T00:00:00Z"},
		{time.Unix(0, 1000).UTC(), "1970-01-01T00:00:00.000001Z"},
		{time.Unix(0, 0).In(zone("America/St_Johns")), "1969-12-31T20:30:00-03:30"},
		{time.Date(1880, 1, 1, 0, 0, 0, 0, zone("America/New_York")), "1880-01-01T00:00:00-04:56:02"},
	}
	for _, tt := range tests {
		if got := string(appendTime(nil, tt.at)); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// TestDriverTimes: over the native protocol, times are right in all years that ClickHouse has.
func TestDriverTimes(t *testing.T) {
	typ := parseType("DateTime64(6, 'Asia/Tokyo')")
	for _, want := range []string{"1900-01-01T00:00:00+09:00", "1969-12-31T23:59:59.999999+09:00", "2262-04-12T08:47:16.854775+09:00", "2262-04-12T08:47:16.854776+09:00", "2299-12-31T23:59:59.999999+09:00"} {
		at, err := time.Parse(time.RFC3339Nano, want)
		if err != nil {
			t.Fatal(err)
		}
		read := proto.DateTime64(at.UnixMicro()).Time(proto.PrecisionMicro)
		cell, write := newCell(typ)
		*cell.(*time.Time) = read
		single, err := write(nil)
		if err != nil {
			t.Fatal(err)
		}
		list, err := appendValue(nil, chType{name: "Array", args: []chType{typ}}, []time.Time{read})
		if err != nil {
			t.Fatal(err)
		}
		if want = strconv.Quote(want); string(single) != want || string(list) != "["+want+"]" {
			t.Errorf("%s is written as %s, and in a list as %s", want, single, list)
		}
	}
}

// BenchmarkTimes rewrites the time of a row of five columns.
func BenchmarkTimes(b *testing.B) {
	for _, bb := range []struct{ name, zone, clock string }{
		{"whole seconds", "UTC", "2024-03-05T10:17:36.000000Z"},
		{"microseconds", "UTC", "2024-03-05T10:17:36.123456Z"},
		{"another zone", "America/New_York", "2024-03-05T10:17:36.123456Z"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			w := newTimeWriter([]Column{
				{"n", "UInt64"}, {"label", "String"}, {"third", "Float64"}, {"time", "DateTime64(6, '" + bb.zone + "')"}, {"even", "UInt8"},
			})
			row := []byte(`[31017,"31017",10339,"` + bb.clock + `",0]`)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.row(row); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestMismatchedTables: two hosts have the same rows if they are one server, or replicas of each other.
func TestMismatchedTables(t *testing.T) {
	t.Parallel()
	const kind, replicated = "ReplacingMergeTree", "ReplicatedReplacingMergeTree"
	for _, tt := range []struct {
		name      string
		one, like stored
		want      string
	}{
		{"one server", stored{engine: kind, id: "a"}, stored{engine: kind, id: "a"}, ""},
		{"two servers", stored{engine: kind, id: "a"}, stored{engine: kind, id: "b"}, "keeps rows of its own in the table events, which has the engine ReplacingMergeTree"},
		{"replicas", stored{replicated, "a", "/1"}, stored{replicated, "b", "/1"}, ""},
		{
			"shards",
			stored{replicated, "a", "/2"},
			stored{replicated, "b", "/1"},
			"is of another shard: the replicas of its table events are at /2 in ZooKeeper, those of the first host at /1",
		},
		{"replicas of which nothing may be read", stored{engine: replicated, id: "a"}, stored{replicated, "b", "/1"}, ""},
		{"distributed tables", stored{engine: "Distributed", id: "a"}, stored{engine: "Distributed", id: "b"}, ""},
	} {
		if got := tt.one.mismatch("events", tt.like); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestLongestQuery: a query gets the time that it may take, which differs from other queries'.
func TestLongestQuery(t *testing.T) {
	c := &Client{config: Config{MaxExecutionTime: 5 * time.Second}}
	for _, tt := range []struct {
		longest      time.Duration
		seconds      int // of the limit in ClickHouse
		deadlineHere time.Duration
	}{
		{0, 5, 5*time.Second + grace},
		{MaxFillTime, 600, MaxFillTime + grace},
		{time.Second, 1, 5*time.Second + grace},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, cancel := c.withinLimit(t.Context(), Query{longest: tt.longest})
			defer cancel()
			if got := c.executionSeconds(ctx, tt.longest); got != tt.seconds {
				t.Errorf("%s: max_execution_time is %d, want %d", tt.longest, got, tt.seconds)
			}
			if deadline, _ := ctx.Deadline(); deadline.Sub(began) != tt.deadlineHere {
				t.Errorf("%s: it is ended after %s, want %s", tt.longest, deadline.Sub(began), tt.deadlineHere)
			}
		})
	}
}

// TestTemporaryFiles: what queries and fills move to the disk is bounded.
func TestTemporaryFiles(t *testing.T) {
	c := &Client{config: Config{MaxMemory: 1 << 30, MaxExecutionTime: time.Second}}
	s := &server{settings: map[string]bool{"max_temporary_data_on_disk_size_for_query": true, "min_free_disk_space_for_temporary_data": true}}
	want := driver.Settings{"max_temporary_data_on_disk_size_for_query": 16 << 30, "min_free_disk_space_for_temporary_data": 1 << 30}
	if diff := cmp.Diff(want, c.settings(t.Context(), s, Query{})); diff != "" {
		t.Errorf("a query's settings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, c.fillSettings(t.Context(), s, Query{}, nil)); diff != "" {
		t.Errorf("a fill's settings (-want +got):\n%s", diff)
	}
}
