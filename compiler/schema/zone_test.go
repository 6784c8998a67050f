package schema_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// TestZonesAreKnownToGo: Go formats the times of answers, so it must know each zone, and must see no difference between a zone and the one loaded in its
// place.
func TestZonesAreKnownToGo(t *testing.T) {
	t.Parallel()
	seen := 0
	for name := range schema.ZoneNames() {
		seen++
		location, err := time.LoadLocation(name)
		if err != nil {
			t.Errorf("LoadLocation(%q): %v", name, err)
			continue
		}
		target, ok := schema.LookupZone(name)
		if again, known := schema.LookupZone(target); !ok || !known || again != target {
			t.Errorf("%s leads to %s, and that to %s", name, target, again)
		}
		if target != name {
			sameZone(t, location, target)
		}
	}
	if seen < 590 {
		t.Errorf("only %d zones", seen)
	}
}

// sameZone compares the offsets of a zone with those of its target, at each change of either and in each month.
func sameZone(t *testing.T, location *time.Location, target string) {
	t.Helper()
	other, err := time.LoadLocation(target)
	if err != nil {
		t.Errorf("LoadLocation(%q): %v", target, err)
		return
	}
	for at := time.Date(1880, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2100; {
		_, a := at.In(location).Zone()
		_, b := at.In(other).Zone()
		if a != b {
			t.Errorf("at %v, %s and %s differ", at, location, target)
			return
		}
		next := at.AddDate(0, 1, 0)
		for _, l := range []*time.Location{location, other} {
			if _, until := at.In(l).ZoneBounds(); until.After(at) && until.Before(next) {
				next = until.UTC()
			}
		}
		at = next
	}
}

func TestZoneFileIsSorted(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	name := func(line string) string { first, _, _ := strings.Cut(line, " "); return first }
	if !slices.IsSortedFunc(lines, func(a, b string) int { return strings.Compare(name(a), name(b)) }) {
		t.Error("the lines are not sorted by name")
	}
}

func TestLookupZone(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, target, near string }{
		{"UTC", "UTC", ""},
		{"Etc/UTC", "UTC", ""},
		{"Europe/Berlin", "Europe/Berlin", ""},
		{"US/Pacific", "America/Los_Angeles", ""},
		{"Asia/Calcutta", "Asia/Kolkata", ""},
		{"Etc/GMT+5", "Etc/GMT+5", ""},
		{"EST", "EST", ""},
		{"europe/berlin", "", "Europe/Berlin"},
		{"utc", "", "UTC"},
		{"Europe/Berln", "", "Europe/Berlin"},
		{"", "", ""},
		{"Local", "", ""},
		{"Factory", "", ""},
		{"localtime", "", ""},
		{"posixrules", "", ""},
		{"posix/Europe/Berlin", "", ""},
		{"Fixed/UTC+01:00:00", "", ""},
		{"UTC+1", "", ""},
		{"file:/proc/self/fd/3", "", ""},
		{"libc:localtime", "", ""},
		{"/usr/share/zoneinfo/UTC", "", ""},
		{"../Europe/Berlin", "", ""},
		{" UTC", "", ""},
		{"UTC UTC", "", ""},
		{"Etc/UTC UTC", "", ""},
		{"UTC\x00", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			target, ok := schema.LookupZone(tt.name)
			if diff := cmp.Diff(tt.target, target); diff != "" || ok != (tt.target != "") {
				t.Errorf("LookupZone(%q) gives %t (-want +got):\n%s", tt.name, ok, diff)
			}
			if tt.near != "" {
				if near := schema.NearestZone(tt.name); near != tt.near {
					t.Errorf("NearestZone(%q) = %q, want %q", tt.name, near, tt.near)
				}
			}
		})
	}
}

// TestRowsThatPutAZone: a function that the project's zone is added to accepts a zone from its caller at the same place.
func TestRowsThatPutAZone(t *testing.T) {
	t.Parallel()
	for f := range schema.Functions() {
		if f.Zone > 0 && f.ZoneAt != f.Zone {
			t.Errorf("%s gets the project's zone as argument %d, and checks its caller's as argument %d", f.Name, f.Zone, f.ZoneAt)
		}
		for _, at := range f.NamesAt {
			if f.Names == nil || at < 1 || at > f.MaxArgs && f.MaxArgs != schema.Any {
				t.Errorf("%s checks argument %d against %v", f.Name, at, f.Names)
			}
		}
	}
}
