package schema

import (
	_ "embed" // the names of the zones
	"iter"
	"strings"
)

// zoneText lists the time zones, one per line: a name, or a name and the name of the zone that it is an alias of. It contains the names in the IANA
// database that both Go and ClickHouse know, except those that are not places (Factory, localtime, posixrules). The tests compare it with Go and
// with the engine. Names that releases of the database disagree on, such as EST, are not treated as aliases.
//
//go:embed zones.txt
var zoneText string

// zones maps each zone to the name by which ClickHouse should load it.
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

// LookupZone finds a time zone by its case-sensitive IANA name, and returns the name by which ClickHouse should load it. ClickHouse accepts more
// names: fixed offsets, which cost it memory without limit, and files. It keeps some megabytes for each name that it has seen, even for two names
// of the same zone; so aliases are loaded by one name.
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

// NearestZone returns the time zone that was probably meant, or "" if none is near.
func NearestZone(name string) string { return Nearest(name, ZoneNames()) }
