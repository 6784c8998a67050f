package alerts_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func at(t *testing.T, text, zone string) time.Time {
	t.Helper()
	place, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	moment, err := time.ParseInLocation("2006-01-02 15:04:05", text, place)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestNextCheck(t *testing.T) {
	const berlin = "Europe/Berlin"
	for _, tt := range []struct {
		name                 string
		interval             registry.AlertInterval
		zone, now, due, want string // due: when the check was to be; empty for soon
		quiet                string
	}{
		{"hourly", registry.AlertHourly, "UTC", "2026-11-23 10:20:30", "2026-11-23 10:15:00", "2026-11-23 11:15:00", ""},
		{"hourly, the first time", registry.AlertHourly, "UTC", "2026-11-23 10:20:30", "", "2026-11-23 11:20:30", ""},
		{"hourly, after an outage", registry.AlertHourly, "UTC", "2026-11-23 10:20:30", "2026-11-21 03:15:00", "2026-11-23 11:15:00", ""},
		{"hourly, due exactly now", registry.AlertHourly, "UTC", "2026-11-23 10:15:00", "2026-11-23 10:15:00", "2026-11-23 11:15:00", ""},
		{"every 15 minutes", registry.AlertQuarterly, "UTC", "2026-11-23 10:20:30", "2026-11-23 10:20:00", "2026-11-23 10:35:00", ""},
		{"real time", registry.AlertRealTime, "UTC", "2026-11-23 10:20:30", "2026-11-23 10:20:00", "2026-11-23 10:22:00", ""},
		{"daily", registry.AlertDaily, berlin, "2026-11-23 00:20:30", "", "2026-11-24 01:20:30", ""},
		{"daily, at the end of a month", registry.AlertDaily, berlin, "2026-12-31 23:59:59", "", "2027-01-01 01:59:59", ""},
		{"daily, the day the clocks go forward", registry.AlertDaily, "America/New_York", "2026-03-07 12:30:00", "", "2026-03-08 01:30:00", ""},
		{"weekly, on a Monday", registry.AlertWeekly, berlin, "2026-11-23 00:20:30", "", "2026-11-30 03:20:30", ""},
		{"weekly, on a Sunday", registry.AlertWeekly, berlin, "2026-11-29 10:00:00", "", "2026-11-30 03:00:00", ""},
		{"monthly", registry.AlertMonthly, berlin, "2026-12-31 10:05:00", "", "2027-01-01 04:05:00", ""},
		{"in quiet hours", registry.AlertHourly, berlin, "2026-11-23 21:20:30", "", "2026-11-24 07:00:00", `[{"start":"22:00","end":"07:00"}]`},
		{"after quiet hours", registry.AlertHourly, berlin, "2026-11-23 06:00:00", "", "2026-11-23 07:00:00", `[{"start":"22:00","end":"07:00"}]`},
		{"at the start of quiet hours", registry.AlertHourly, berlin, "2026-11-23 11:00:00", "", "2026-11-23 13:00:00", `[{"start":"12:00","end":"13:00"}]`},
		{"quiet until midnight", registry.AlertHourly, berlin, "2026-11-23 22:30:00", "", "2026-11-24 00:00:00", `[{"start":"23:00","end":"00:00"}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := at(t, tt.now, tt.zone)
			a := &registry.Alert{Interval: tt.interval}
			if tt.due != "" {
				a.NextCheckAt = at(t, tt.due, tt.zone)
			}
			if tt.quiet != "" {
				a.QuietHours = quiet(t, tt.quiet)
			}
			if got, want := alerts.NextCheck(a, now, now.Location()), at(t, tt.want, tt.zone); !got.Equal(want) {
				t.Errorf("%v, want %v", got.In(now.Location()), want)
			}
		})
	}
}

// TestStartTime: checks start at a time of the day in the project's zone.
func TestStartTime(t *testing.T) {
	const berlin = "Europe/Berlin"
	for _, tt := range []struct {
		name             string
		interval         registry.AlertInterval
		now, start, want string
		checked          bool // it was checked before
		quiet            string
	}{
		{"daily, later today", registry.AlertDaily, "2026-11-23 08:20:30", "09:15", "2026-11-23 09:15:00", true, ""},
		{"daily, tomorrow", registry.AlertDaily, "2026-11-23 09:15:00", "09:15", "2026-11-24 09:15:00", true, ""},
		{"daily, after the clocks went back", registry.AlertDaily, "2026-10-24 09:15:01", "09:15", "2026-10-25 09:15:00", true, ""},
		{"daily, in quiet hours", registry.AlertDaily, "2026-11-23 10:00:00", "09:15", "2026-11-24 10:00:00", true, `[{"start":"09:00","end":"10:00"}]`},
		{"weekly, on a Monday before it", registry.AlertWeekly, "2026-11-23 08:00:00", "09:15", "2026-11-23 09:15:00", true, ""},
		{"weekly, on a Monday after it", registry.AlertWeekly, "2026-11-23 10:00:00", "09:15", "2026-11-30 09:15:00", true, ""},
		{"weekly, on a Sunday", registry.AlertWeekly, "2026-11-29 10:00:00", "09:15", "2026-11-30 09:15:00", true, ""},
		{"monthly, on the first before it", registry.AlertMonthly, "2026-12-01 00:00:00", "00:01", "2026-12-01 00:01:00", true, ""},
		{"monthly", registry.AlertMonthly, "2026-12-31 10:05:00", "00:00", "2027-01-01 00:00:00", true, ""},
		{"hourly, the first check", registry.AlertHourly, "2026-11-23 10:20:30", "22:45", "2026-11-23 22:45:00", false, ""},
		{"hourly, the first check after it", registry.AlertHourly, "2026-11-23 10:20:30", "07:45", "2026-11-23 10:45:00", false, ""},
		{"hourly, before it", registry.AlertHourly, "2026-11-23 10:20:30", "22:45", "2026-11-23 10:45:00", true, ""},
		{"hourly, exactly then", registry.AlertHourly, "2026-11-23 10:45:00", "22:45", "2026-11-23 11:45:00", true, ""},
		{"hourly, after it", registry.AlertHourly, "2026-11-23 10:50:00", "07:45", "2026-11-23 11:45:00", true, ""},
		{"every 15 minutes", registry.AlertQuarterly, "2026-11-23 10:50:00", "07:05", "2026-11-23 11:05:00", true, ""},
		{"real time", registry.AlertRealTime, "2026-11-23 10:50:00", "07:05", "2026-11-23 10:51:00", true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := at(t, tt.now, berlin)
			minutes, ok := alerts.ReadStartTime(json.RawMessage(`"` + tt.start + `"`))
			if shown := alerts.ShowStartTime(&minutes); !ok || *shown != tt.start {
				t.Fatalf("%s is %d minutes, shown as %s", tt.start, minutes, *shown)
			}
			a := &registry.Alert{Interval: tt.interval, StartTime: &minutes}
			if tt.checked {
				a.LastCheckedAt, a.NextCheckAt = now.Add(-time.Hour), now
			}
			if tt.quiet != "" {
				a.QuietHours = quiet(t, tt.quiet)
			}
			if got, want := alerts.NextCheck(a, now, now.Location()), at(t, tt.want, berlin); !got.Equal(want) {
				t.Errorf("%v, want %v", got.In(now.Location()), want)
			}
		})
	}
	for _, raw := range []string{`""`, `"24:00"`, `"7"`, `"07:60"`, `"07:30:00"`, `450`, `{"time": "07:30"}`} {
		if minutes, ok := alerts.ReadStartTime(json.RawMessage(raw)); ok {
			t.Errorf("%s is %d minutes", raw, minutes)
		}
	}
}

// TestQuietHoursOverAYear: in a zone whose clocks change, a check is never in quiet hours, and never earlier than without them.
func TestQuietHoursOverAYear(t *testing.T) {
	zone := at(t, "2026-01-01 00:00:00", "America/New_York").Location()
	hours := quiet(t, `[{"start":"01:30","end":"02:30"},{"start":"03:00","end":"23:00"},{"start":"23:30","end":"00:10"}]`)
	for now := time.Date(2026, 1, 1, 0, 0, 0, 0, zone); now.Year() == 2026; now = now.Add(7 * time.Minute) {
		a := &registry.Alert{Interval: registry.AlertQuarterly, QuietHours: hours}
		got := alerts.NextCheck(a, now, zone)
		local := got.In(zone)
		minute := local.Hour()*60 + local.Minute()
		if minute >= 90 && minute < 150 || minute >= 180 && minute < 23*60 || minute >= 23*60+30 || minute < 10 || got.Before(now.Add(15*time.Minute)) || got.Sub(now) > 24*time.Hour {
			t.Fatalf("after %v comes %v", now, local)
		}
	}
}

func quiet(t *testing.T, windows string) []registry.QuietHours {
	t.Helper()
	hours, err := alerts.ReadQuietHours(json.RawMessage(`{"blocked_windows":` + windows + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return hours
}

func TestReadQuietHours(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`null`, `null`},
		{`{}`, `null`},
		{`{"blocked_windows":null}`, `null`},
		{`{"blocked_windows":[]}`, `null`},
		{`{"blocked_windows":[{"start":"22:00","end":"07:00"}]}`, `{"blocked_windows":[{"end":"07:00","start":"22:00"}]}`},
		{`{"blocked_windows":[{"start":"10:30","end":"11:00"},{"start":"10:40","end":"11:15"}]}`, `{"blocked_windows":[{"end":"11:15","start":"10:30"}]}`},
		{`{"blocked_windows":[{"start":"19:00","end":"00:00"}]}`, `{"blocked_windows":[{"end":"00:00","start":"19:00"}]}`},
		{`{"blocked_windows":[{"start":"00:00","end":"02:00"},{"start":"12:00","end":"13:00"},{"start":"23:00","end":"01:00"}]}`, `{"blocked_windows":[{"end":"02:00","start":"00:00"},{"end":"13:00","start":"12:00"},{"end":"00:00","start":"23:00"}]}`},
		{`{"blocked_windows":[{"start":"00:00","end":"12:00"},{"start":"12:00","end":"00:00"}]}`, ""},
		{`{"blocked_windows":[{"start":"12:00","end":"12:20"}]}`, ""},
		{`{"blocked_windows":[{"start":"10:00","end":"10:00"}]}`, ""},
		{`{"blocked_windows":[{"start":"12:00:00","end":"13:00"}]}`, ""},
		{`{"blocked_windows":[{"start":"25:00","end":"26:00"}]}`, ""},
		{`{"blocked_windows":[{"start":"+1:00","end":"5:00"}]}`, ""},
		{`{"blocked_windows":[{"end":"12:00"}]}`, ""},
		{`{"blocked_window":[{"start":"22:00","end":"07:00"}]}`, ""},
		{`{"blocked_windows":[],"zone":"UTC"}`, ""},
		{`{"blocked_windows":[{"start":"22:00","end":"07:00","days":[1]}]}`, ""},
		{`{"blocked_windows":["x"]}`, ""},
		{`{"blocked_windows":{}}`, ""},
		{`[]`, ""},
		{`{"blocked_windows":[{"start":"01:00","end":"01:30"},{"start":"02:00","end":"02:30"},{"start":"03:00","end":"03:30"},{"start":"04:00","end":"04:30"},{"start":"05:00","end":"05:30"},{"start":"06:00","end":"06:30"}]}`, ""},
	} {
		hours, err := alerts.ReadQuietHours(json.RawMessage(tt.in))
		shown, _ := json.Marshal(alerts.ShowQuietHours(hours))
		if err != nil {
			shown = nil
		}
		if string(shown) != tt.want {
			t.Errorf("%s is %s, want %s", tt.in, shown, tt.want)
		}
	}
}
