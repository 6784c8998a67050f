package insight_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// world is a project in a time zone; its now is a Thursday afternoon there.
func world(t *testing.T, zone string, weekStart int) *insight.World {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return &insight.World{
		Database: &schema.Database{Project: 7, Location: location, WeekStart: weekStart},
		Now:      time.Date(2020, time.January, 9, 12, 30, 15, 0, location),
	}
}

// resolved formats a range: its ends, the first event that counts, and its first, last and number of buckets.
func resolved(r *insight.Range) string {
	const form = "2006-01-02T15:04:05.999999"
	buckets := r.Buckets()
	text := r.From.Format(form) + " " + r.To.Format(form) + " since " + r.Lower.Format(form)
	if len(buckets) == 0 {
		return text + ", no bucket"
	}
	return text + ", " + r.Day(buckets[0]) + " to " + r.Day(buckets[len(buckets)-1]) + " in " + strconv.Itoa(len(buckets))
}

func TestResolve(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		dates    query.DateRange
		interval query.Interval
		want     string
	}{
		{"by default the last seven days", query.DateRange{}, query.Day, "2020-01-02T00:00:00 2020-01-09T23:59:59.999999 since 2020-01-02T00:00:00, 2020-01-02 to 2020-01-09 in 8"},
		{"an absolute day", query.DateRange{From: "2020-1-7", To: "2020-01-08"}, query.Day, "2020-01-07T00:00:00 2020-01-08T23:59:59.999999 since 2020-01-07T00:00:00, 2020-01-07 to 2020-01-08 in 2"},
		{"a day by the hour is its midnight", query.DateRange{From: "2020-01-09", To: "2020-01-09"}, query.Hour, "2020-01-09T00:00:00 2020-01-09T00:00:00 since 2020-01-09T00:00:00, 2020-01-09 00:00:00 to 2020-01-09 00:00:00 in 1"},
		{"relative hours", query.DateRange{From: "-3h"}, query.Hour, "2020-01-09T09:00:00 2020-01-09T12:59:59.999999 since 2020-01-09T09:00:00, 2020-01-09 09:00:00 to 2020-01-09 12:00:00 in 4"},
		{"relative hours by the day count from their hour", query.DateRange{From: "-24h"}, query.Day, "2020-01-08T12:00:00 2020-01-09T23:59:59.999999 since 2020-01-08T12:00:00, 2020-01-08 to 2020-01-09 in 2"},
		{"an hour of minutes", query.DateRange{From: "-1h"}, query.Minute, "2020-01-09T11:30:15 2020-01-09T12:30:59.999999 since 2020-01-09T11:30:15, 2020-01-09 11:30:00 to 2020-01-09 12:30:00 in 61"},
		{"weeks begin before the first event that counts", query.DateRange{From: "2020-01-01", To: "2020-01-08"}, query.Week, "2020-01-01T00:00:00 2020-01-08T23:59:59.999999 since 2020-01-01T00:00:00, 2019-12-29 to 2020-01-05 in 2"},
		{"and so do months", query.DateRange{From: "2019-11-15", To: "2020-01-08"}, query.Month, "2019-11-15T00:00:00 2020-01-08T23:59:59.999999 since 2019-11-15T00:00:00, 2019-11-01 to 2020-01-01 in 3"},
		{"quarters begin with their first month", query.DateRange{From: "2019-11-15", To: "2020-04-01"}, query.Quarter, "2019-11-15T00:00:00 2020-04-01T23:59:59.999999 since 2019-11-15T00:00:00, 2019-10-01 to 2020-04-01 in 3"},
		{"years", query.DateRange{From: "2018-11-15", To: "2020-01-01"}, query.Year, "2018-11-15T00:00:00 2020-01-01T23:59:59.999999 since 2018-11-15T00:00:00, 2018-01-01 to 2020-01-01 in 3"},
		{"seconds", query.DateRange{From: "2020-01-09T12:00:01.5", To: "2020-01-09T12:00:03"}, query.Second, "2020-01-09T12:00:01.5 2020-01-09T12:00:03 since 2020-01-09T12:00:01, 2020-01-09 12:00:01 to 2020-01-09 12:00:03 in 3"},
		{"today", query.DateRange{From: "today", To: "today"}, query.Day, "2020-01-09T00:00:00 2020-01-09T23:59:59.999999 since 2020-01-09T00:00:00, 2020-01-09 to 2020-01-09 in 1"},
		{"the start of a month", query.DateRange{From: "-1mStart", To: "-1mEnd"}, query.Day, "2019-12-01T00:00:00 2019-12-31T23:59:59.999999 since 2019-12-01T00:00:00, 2019-12-01 to 2019-12-31 in 31"},
		{"the last week", query.DateRange{From: "-1wStart", To: "-1wEnd"}, query.Day, "2019-12-29T00:00:00 2020-01-04T23:59:59.999999 since 2019-12-29T00:00:00, 2019-12-29 to 2020-01-04 in 7"},
		{"the last week by the hour", query.DateRange{From: "-1wStart", To: "-1wEnd"}, query.Hour, "2019-12-29T00:00:00 2020-01-04T23:59:59.999999 since 2019-12-29T00:00:00, 2019-12-29 00:00:00 to 2020-01-04 23:00:00 in 168"},
		{"the last quarter", query.DateRange{From: "-1qStart", To: "-1qEnd"}, query.Month, "2019-10-01T00:00:00 2019-12-31T23:59:59.999999 since 2019-10-01T00:00:00, 2019-10-01 to 2019-12-01 in 3"},
		{"explicit ends stay", query.DateRange{From: "2020-01-05T10:00", To: "2020-01-07", Explicit: true}, query.Day, "2020-01-05T10:00:00 2020-01-07T00:00:00 since 2020-01-05T10:00:00, 2020-01-05 to 2020-01-07 in 3"},
		{"weekdays", query.DateRange{From: "2020-01-03", To: "2020-01-06", DaysOfWeek: []int{1, 5, 7}}, query.Day, "2020-01-03T00:00:00 2020-01-06T23:59:59.999999 since 2020-01-03T00:00:00, 2020-01-03 to 2020-01-06 in 3"},
		{"whole weeks alone", query.DateRange{From: "-15d", ExcludeIncomplete: true}, query.Week, "2019-12-29T00:00:00 2020-01-04T23:59:59.999999 since 2019-12-29T00:00:00, 2019-12-29 to 2019-12-29 in 1"},
		{"not even one whole week", query.DateRange{From: "2020-01-01", ExcludeIncomplete: true}, query.Week, "2020-01-01T00:00:00 2020-01-04T23:59:59.999999 since 2020-01-01T00:00:00, 2019-12-29 to 2019-12-29 in 1"},
		{"within the week that runs", query.DateRange{From: "-1d", ExcludeIncomplete: true}, query.Week, "2020-01-08T00:00:00 2020-01-09T23:59:59.999999 since 2020-01-08T00:00:00, 2020-01-05 to 2020-01-05 in 1"},
		{"a part of a week at the end is no running one", query.DateRange{From: "2019-12-01", To: "2019-12-17", ExcludeIncomplete: true}, query.Week, "2019-12-01T00:00:00 2019-12-17T23:59:59.999999 since 2019-12-01T00:00:00, 2019-12-01 to 2019-12-15 in 3"},
		{"explicit ends without the month that is not over", query.DateRange{From: "2019-11-05", To: "2020-01-20", Explicit: true, ExcludeIncomplete: true}, query.Month, "2019-12-01T00:00:00 2019-12-31T23:59:59.999999 since 2019-12-01T00:00:00, 2019-12-01 to 2019-12-01 in 1"},
		{"without the day that is not over", query.DateRange{From: "2020-01-07", ExcludeIncomplete: true}, query.Day, "2020-01-07T00:00:00 2020-01-08T23:59:59.999999 since 2020-01-07T00:00:00, 2020-01-07 to 2020-01-08 in 2"},
		{"from after to", query.DateRange{From: "2020-01-03", To: "2020-01-01"}, query.Day, "2020-01-03T00:00:00 2020-01-01T23:59:59.999999 since 2020-01-03T00:00:00, no bucket"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := insight.Resolve(world(t, "UTC", 0), &query.Common{DateRange: tt.dates}, tt.interval)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, resolved(&r)); diff != "" {
				t.Errorf("range (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHoursOfAClockThatMoves checks that buckets are those of ClickHouse's toStartOfHour, which start anew where a clock is changed by part
// of an hour.
func TestHoursOfAClockThatMoves(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, zone, from, to, want string }{
		{"back by an hour", "America/New_York", "2020-11-01T00:30", "2020-11-01T02:00", "00:00-04 01:00-04 01:00-05 02:00-05"},
		{"on by an hour", "America/New_York", "2020-03-08T01:00", "2020-03-08T04:59", "01:00-05 03:00-04 04:00-04"},
		{"back by half an hour", "Australia/Lord_Howe", "2020-04-05T00:59", "2020-04-05T03:00", "00:00+11 01:00+11 01:30+1030 02:30+1030"},
		{"on by half an hour", "Australia/Lord_Howe", "2020-10-04T01:00", "2020-10-04T04:00", "01:00+1030 02:30+11 03:30+11"},
		{"from behind the change", "Australia/Lord_Howe", "2020-04-05T03:05", "2020-04-05T04:00", "02:30+1030 03:30+1030"},
		{"the next day is as any other", "Australia/Lord_Howe", "2020-04-05T22:00", "2020-04-06T02:00", "21:30+1030 22:30+1030 23:30+1030 00:00+1030 01:00+1030 02:00+1030"},
		{"half an hour from the full ones of UTC", "Asia/Kolkata", "2020-04-05T22:15", "2020-04-05T23:00", "22:00+0530 23:00+0530"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := insight.Resolve(world(t, tt.zone, 0), &query.Common{DateRange: query.DateRange{From: tt.from, To: tt.to}}, query.Hour)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, start := range r.Buckets() {
				got = append(got, start.Format("15:04-07"))
				if _, offset := start.Zone(); offset%3600 != 0 {
					got[len(got)-1] = start.Format("15:04-0700")
				}
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("buckets %s, want %s", text, tt.want)
			}
		})
	}
}

// TestDaysWithoutMidnight checks that a day whose midnight the clock skips is there once, and so are the weeks and months that begin with
// it.
func TestDaysWithoutMidnight(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		zone, from, to string
		interval       query.Interval
		want           []string
	}{
		{"America/Havana", "2024-03-09", "2024-03-11", query.Day, []string{"2024-03-09T00:00", "2024-03-10T01:00", "2024-03-11T00:00"}},
		{"Africa/Cairo", "2024-04-25", "2024-04-27", query.Day, []string{"2024-04-25T00:00", "2024-04-26T01:00", "2024-04-27T00:00"}},
		{"America/Havana", "2024-03-03", "2024-03-20", query.Week, []string{"2024-03-03T00:00", "2024-03-10T01:00", "2024-03-17T00:00"}},
		{"America/Asuncion", "2017-09-01", "2017-11-02", query.Month, []string{"2017-09-01T00:00", "2017-10-01T01:00", "2017-11-01T00:00"}},
	} {
		w := world(t, tt.zone, 0)
		w.Now = time.Date(2024, time.June, 1, 0, 0, 0, 0, w.Database.Location)
		r, err := insight.Resolve(w, &query.Common{DateRange: query.DateRange{From: tt.from, To: tt.to}}, tt.interval)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, start := range r.Buckets() {
			got = append(got, start.Format("2006-01-02T15:04"))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", tt.interval, tt.zone, diff)
		}
	}
}

func TestPrevious(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		dates    query.DateRange
		interval query.Interval
		to       string
		want     string
	}{
		{"five days", query.DateRange{From: "2020-01-15", To: "2020-01-19"}, query.Day, "", "2020-01-10T00:00:00 2020-01-14T23:59:59.999999 since 2020-01-10T00:00:00, 2020-01-10 to 2020-01-14 in 5"},
		{"one day", query.DateRange{From: "2020-01-15", To: "2020-01-15"}, query.Day, "", "2020-01-14T00:00:00 2020-01-14T23:59:59.999999 since 2020-01-14T00:00:00, 2020-01-14 to 2020-01-14 in 1"},
		{"weekdays stay aligned", query.DateRange{From: "-7d"}, query.Day, "", "2019-12-26T00:00:00 2020-01-02T23:59:59.999999 since 2019-12-26T00:00:00, 2019-12-26 to 2020-01-02 in 8"},
		{"without the day that is not over", query.DateRange{From: "-7d", ExcludeIncomplete: true}, query.Day, "", "2019-12-26T00:00:00 2020-01-01T23:59:59.999999 since 2019-12-26T00:00:00, 2019-12-26 to 2020-01-01 in 7"},
		{"without it a week before", query.DateRange{From: "-6d", ExcludeIncomplete: true}, query.Day, "-1w", "2019-12-27T00:00:00 2020-01-01T23:59:59.999999 since 2019-12-27T00:00:00, 2019-12-27 to 2020-01-01 in 6"},
		{"not for other days", query.DateRange{From: "-3d"}, query.Day, "", "2020-01-02T00:00:00 2020-01-05T23:59:59.999999 since 2020-01-02T00:00:00, 2020-01-02 to 2020-01-05 in 4"},
		{"hours of the same time of day", query.DateRange{From: "2020-01-09T06:00", To: "2020-01-09T17:00"}, query.Hour, "", "2020-01-08T06:00:00 2020-01-08T17:00:00 since 2020-01-08T06:00:00, 2020-01-08 06:00:00 to 2020-01-08 17:00:00 in 12"},
		{"all of the days before one that is not over", query.DateRange{From: "-1d"}, query.Hour, "", "2020-01-06T00:00:00 2020-01-07T23:59:59.999999 since 2020-01-06T00:00:00, 2020-01-06 00:00:00 to 2020-01-07 23:00:00 in 48"},
		{"some hours of a day", query.DateRange{From: "-3h"}, query.Hour, "", "2020-01-08T09:00:00 2020-01-08T12:59:59.999999 since 2020-01-08T09:00:00, 2020-01-08 09:00:00 to 2020-01-08 12:00:00 in 4"},
		{"both ends at their time of day", query.DateRange{From: "2020-01-15T12:30", To: "2020-01-17T11:00", Explicit: true}, query.Day, "", "2020-01-13T12:30:00 2020-01-15T11:00:00 since 2020-01-13T12:30:00, 2020-01-13 to 2020-01-15 in 3"},
		{"a week before", query.DateRange{From: "2020-01-15", To: "2020-01-19"}, query.Day, "-1w", "2020-01-08T00:00:00 2020-01-12T23:59:59.999999 since 2020-01-08T00:00:00, 2020-01-08 to 2020-01-12 in 5"},
		{"overlapping", query.DateRange{From: "2020-01-15", To: "2020-01-19"}, query.Day, "-2d", "2020-01-13T00:00:00 2020-01-17T23:59:59.999999 since 2020-01-13T00:00:00, 2020-01-13 to 2020-01-17 in 5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := insight.Resolve(world(t, "UTC", 0), &query.Common{DateRange: tt.dates}, tt.interval)
			if err != nil {
				t.Fatal(err)
			}
			p, err := r.Previous(&query.Compare{At: "compare_to", To: tt.to})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, resolved(&p)); diff != "" {
				t.Errorf("range (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, zone string
		weekStart  int
		dates      query.DateRange
		interval   query.Interval
		want       string
	}{
		{"days", "UTC", 0, query.DateRange{From: "2020-01-01", To: "2020-01-02"}, query.Day, "1-Jan-2020, 2-Jan-2020"},
		{"hours", "UTC", 0, query.DateRange{From: "2020-01-09T06:00", To: "2020-01-09T07:30"}, query.Hour, "9-Jan 06:00, 9-Jan 07:00"},
		{"months", "UTC", 0, query.DateRange{From: "2020-06-07", To: "2020-07-30"}, query.Month, "Jun 2020, Jul 2020"},
		{"seconds", "UTC", 0, query.DateRange{From: "2020-01-09T06:00:09", To: "2020-01-09T06:00:10"}, query.Second, "9-Jan 06:00:09, 9-Jan 06:00:10"},
		{"quarters", "UTC", 0, query.DateRange{From: "2020-06-07", To: "2020-07-30"}, query.Quarter, "1-Apr-2020, 1-Jul-2020"},
		{"years", "UTC", 0, query.DateRange{From: "2019-06-07", To: "2020-07-30"}, query.Year, "1-Jan-2019, 1-Jan-2020"},
		{"weeks from Sunday over a change of the clock", "US/Pacific", 0, query.DateRange{From: "2020-10-31", To: "2020-12-06"}, query.Week, "31-Oct-2020, 1–7 Nov, 8–14 Nov, 15–21 Nov, 22–28 Nov, 29-Nov – 5-Dec, 6-Dec-2020"},
		{"weeks from Monday over a new year", "UTC", 1, query.DateRange{From: "2019-12-29", To: "2020-01-08"}, query.Week, "29-Dec-2019, 30-Dec-2019 – 5-Jan-2020, 6–8 Jan"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, err := insight.Resolve(world(t, tt.zone, tt.weekStart), &query.Common{DateRange: tt.dates}, tt.interval)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, start := range r.Buckets() {
				got = append(got, r.Label(start))
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}
