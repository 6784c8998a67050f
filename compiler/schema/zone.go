package schema

import (
	_ "embed" // the names of the zones
	"iter"
	"strings"
)

// zoneText lists the time zones, one a line: a name, or a name and the name of the zone of which it is another name. It
// holds the names of the IANA database that both Go and ClickHouse know, but not those that are not places (Factory,
// localtime, posixrules). The tests compare it with Go and with the engine. Names that releases of the database disagree
// on, such as EST, stand for themselves.
//
//go:embed zones.txt
var zoneText string

// zones holds the zones by name: each leads to the name under which ClickHouse is to load it.
var zones = readZones(zoneText)

func readZones(text string) map[string]string {
	all := make(map[string]string, strings.Count(text, "\n"))
	for line := range strings.Lines(text) {
		name, target, linked := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !linked {
			target = name
		}
		all[name] = target
	}
	return all
}

// LookupZone finds a time zone by its IANA name, whose case matters, and returns the name under which ClickHouse is to
// load it. ClickHouse takes more for a name: fixed offsets, which cost it memory without end, and files. It keeps some
// megabytes for each name that it has seen, also for two names of one zone; so these are loaded under one.
func LookupZone(name string) (target string, ok bool) {
	target, ok = zones[name]
	return target, ok
}

// ZoneNames yields the names that LookupZone finds, in no order.
func ZoneNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range zones {
			if !yield(name) {
				return
			}
		}
	}
}

// NearestZone names the time zone that was probably meant, or "" when none is near.
func NearestZone(name string) string { return Nearest(name, ZoneNames()) }
