package ingest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// groupID names a group.
type groupID struct {
	index int
	key   string
}

// group is what is known about a group of the project.
type group struct {
	profile
	createdAt time.Time
	given     bool
	stamp     time.Time // _timestamp of its newest row
	stored    bool
	described bool // it has a record or a row, not only events that name it
	changed   bool
	line      int
}

// seen moves the creation time of a group to that of an earlier event, unless it was given.
func (g *group) seen(line int, at time.Time) {
	if !g.given && (g.createdAt.IsZero() || at.Before(g.createdAt)) {
		g.createdAt = at
		if g.described {
			g.changed, g.line = true, line
		}
	}
}

// begin sets the creation time of a group that has none.
func (g *group) begin(line int, at time.Time) {
	if g.createdAt.IsZero() {
		g.createdAt, g.given, g.changed, g.line = at, true, true, line
	}
}

// created takes the creation time from a record that has one.
func (g *group) created(r *record.Record) {
	if !r.CreatedAt.IsZero() && (!g.given || !g.createdAt.Equal(r.CreatedAt)) {
		g.createdAt, g.given, g.changed, g.line = r.CreatedAt, true, true, r.Line
	}
}

// groups finds the groups of each record, and keeps what is known about them between batches.
type groups struct {
	store  *store
	types  map[string]int // index by name
	found  bool           // some of them are not kept yet
	known  map[groupID]*group
	noRoom func(line int) // called for each property that is left out
}

// begin starts with the group types that are already kept.
func (g *groups) begin(types []GroupType) {
	g.types, g.found = make(map[string]int, len(types)), false
	for _, t := range types {
		g.types[t.Name] = t.Index
	}
}

// name gives a group type its index.
func (g *groups) name(name string, index int) { g.types[name], g.found = index, true }

func (g *groups) forget() { g.known = map[groupID]*group{} }

// bytes estimates the memory that the properties take.
func (g *groups) bytes() (size int) {
	for _, one := range g.known {
		size += 2 * len(one.json())
	}
	return size
}

// of returns a group, which may have no row.
func (g *groups) of(id groupID) *group {
	one := g.known[id]
	if one == nil {
		one = &group{}
		g.known[id] = one
	}
	return one
}

// list lists the group types in the order of their index.
func (g *groups) list() []GroupType {
	var list []GroupType
	for name, index := range g.types {
		list = append(list, GroupType{Name: name, Index: index})
	}
	slices.SortFunc(list, func(a, b GroupType) int { return a.Index - b.Index })
	return list
}

// maxGroupType is how many characters the name of a group type may have.
const maxGroupType = 400

func checkGroupType(name string) error {
	if utf8.RuneCountInString(name) > maxGroupType {
		return fmt.Errorf("a group type's name can have at most %d characters", maxGroupType)
	}
	return nil
}

// index returns the index of a group type. A new name takes the next free one of five. An empty or too long name has none.
func (g *groups) index(name string) (int, bool) {
	if index, ok := g.types[name]; ok {
		return index, true
	}
	if name == "" || checkGroupType(name) != nil {
		return 0, false
	}
	taken := slices.Collect(maps.Values(g.types))
	for index := range physical.GroupTypes {
		if !slices.Contains(taken, index) {
			g.name(name, index)
			return index, true
		}
	}
	return 0, false
}

// share takes over the group types that others found, as far as there is room, and copies all group types into types.
func (g *groups) share(types map[string]int) {
	taken := slices.Collect(maps.Values(g.types))
	for name, index := range types {
		if _, known := g.types[name]; !known && !slices.Contains(taken, index) {
			g.name(name, index)
		}
	}
	clear(types)
	maps.Copy(types, g.types)
}

// identify finds which group a record describes.
func (g *groups) identify(r *record.Record) (groupID, error) {
	if err := checkGroupType(r.GroupType); err != nil {
		return groupID{}, err
	}
	index, known := g.types[r.GroupType]
	switch {
	case r.GroupIndex >= 0 && known && index != r.GroupIndex:
		return groupID{}, fmt.Errorf("the group type %s has the index %d", record.Quoted(r.GroupType), index)
	case r.GroupIndex >= 0 && !known:
		for name, taken := range g.types {
			if taken == r.GroupIndex {
				return groupID{}, fmt.Errorf("the group type index %d belongs to %s", taken, record.Quoted(name))
			}
		}
		index = r.GroupIndex
		g.name(r.GroupType, index)
	case !known:
		if index, known = g.index(r.GroupType); !known {
			return groupID{}, fmt.Errorf("the project has %d group types already", physical.GroupTypes)
		}
	}
	return groupID{index, r.GroupKey}, nil
}

// describe applies properties to a group.
func (g *groups) describe(line int, id groupID, properties record.Object) *group {
	one := g.of(id)
	if !one.described {
		one.described, one.changed, one.line = true, true, line
	}
	one.index(len(properties))
	defer one.unindex()
	for _, m := range properties {
		changed, ok := one.set(m)
		if !ok {
			g.noRoom(line)
		}
		if changed {
			one.changed, one.line = true, line
		}
	}
	return one
}

// ofEvent returns the key that an event names for each group type: in $groups or else in $group_N. A personless event names none, and loses its $group_N.
func (g *groups) ofEvent(r *record.Record, personless bool) (keys [physical.GroupTypes]string) {
	if personless {
		for _, name := range groupProperty {
			r.Properties = r.Properties.Without(name)
		}
		return keys
	}
	for _, m := range r.Properties.Get("$groups").Object() {
		key, ok := m.Value.Text()
		if !ok || key == "" {
			continue
		}
		if index, ok := g.index(m.Key); ok {
			keys[index] = key
		}
	}
	for index := range keys {
		name := groupProperty[index]
		if keys[index] != "" {
			r.Properties = r.Properties.Set(name, record.TextValue(keys[index]))
		} else if key, ok := r.Properties.Get(name).Text(); ok {
			keys[index] = key
		}
	}
	return keys
}

// groupProperty holds the properties that name a group, by the index of the group type.
var groupProperty = [physical.GroupTypes]string{"$group_0", "$group_1", "$group_2", "$group_3", "$group_4"}

// groupIdentify returns what a $groupidentify event says about a group.
func groupIdentify(r *record.Record) (name, key string, set record.Object) {
	if r.Event != "$groupidentify" {
		return "", "", nil
	}
	name, _ = r.Properties.Get("$group_type").Text()
	key, _ = r.Properties.Get("$group_key").Text()
	if name == "" {
		return "", "", nil
	}
	return name, key, r.Properties.Get("$group_set").Object()
}

// learn gives the group types of an event an index before its groups are looked up: an interrupted batch may have written groups of types that were not kept.
func (g *groups) learn(r *record.Record) {
	for _, m := range r.Properties.Get("$groups").Object() {
		if key, ok := m.Value.Text(); ok && key != "" {
			g.index(m.Key)
		}
	}
	if name, key, _ := groupIdentify(r); key != "" {
		g.index(name)
	}
}

// mentioned lists the groups that a record mentions and whose type is known.
func (g *groups) mentioned(r *record.Record) (ids []groupID) {
	named := func(name, key string) {
		if index, ok := g.types[name]; ok && key != "" {
			ids = append(ids, groupID{index, key})
		}
	}
	switch r.Kind {
	case record.Person, record.Cohort:
	case record.Group:
		if r.GroupIndex >= 0 {
			return []groupID{{r.GroupIndex, r.GroupKey}}
		}
		named(r.GroupType, r.GroupKey)
	case record.Event:
		for index := range physical.GroupTypes {
			if key, ok := r.Properties.Get(groupProperty[index]).Text(); ok {
				ids = append(ids, groupID{index, key})
			}
		}
		for _, m := range r.Properties.Get("$groups").Object() {
			key, _ := m.Value.Text()
			named(m.Key, key)
		}
		name, key, _ := groupIdentify(r)
		named(name, key)
	}
	return ids
}

// load looks up the groups of records that are not known yet.
func (g *groups) load(ctx context.Context, records []record.Record) error {
	wanted := map[groupID]bool{}
	for n := range records {
		for _, id := range g.mentioned(&records[n]) {
			if g.known[id] == nil {
				wanted[id] = true
			}
		}
	}
	table := g.store.layout["groups"]
	return g.byIndex(maps.Keys(wanted), func(index int, keys clickhouse.Param) error {
		return g.store.query(ctx, "SELECT group_key, created_at, "+table.text("group_properties")+", "+table.or("created_at_given", "1")+", _timestamp "+
			"FROM groups WHERE team_id = {project:Int64} AND group_type_index = {index:UInt8} AND group_key IN {keys:Array(String)} "+
			"ORDER BY group_key, _timestamp DESC LIMIT 1 BY group_key",
			func(cells []clickhouse.Cell) error {
				one := &group{stored: true, described: true, given: cells[3].Text() == "1"}
				var err error
				if one.createdAt, err = cells[1].Time(); err != nil {
					return err
				}
				if one.stamp, err = cells[4].Time(); err != nil {
					return err
				}
				if one.properties, err = record.Stored(cells[2].Text()); err != nil {
					return fmt.Errorf("the properties of a group: %w", err)
				}
				g.known[groupID{index, cells[0].Text()}] = one
				return nil
			}, keys, clickhouse.Param{Name: "index", Type: "UInt8", Value: strconv.Itoa(index)})
	})
}

// date finds the creation time of groups that are described after their events.
func (g *groups) date(ctx context.Context) error {
	undated := func(yield func(groupID) bool) {
		for id, one := range g.known {
			if one.changed && !one.stored && !one.given && !yield(id) {
				return
			}
		}
	}
	return g.byIndex(undated, func(index int, keys clickhouse.Param) error {
		column := fmt.Sprintf("`$group_%d`", index)
		return g.store.query(ctx, "SELECT "+column+" AS key, min(timestamp) FROM events WHERE team_id = {project:Int64} AND "+
			column+" IN {keys:Array(String)} GROUP BY key",
			func(cells []clickhouse.Cell) error {
				at, err := cells[1].Time()
				one := g.known[groupID{index, cells[0].Text()}]
				one.seen(one.line, at)
				return err
			}, keys)
	})
}

// byIndex calls ask once for each group type, with the keys of its groups as the parameter keys.
func (*groups) byIndex(ids iter.Seq[groupID], ask func(index int, keys clickhouse.Param) error) error {
	var byIndex [physical.GroupTypes][]string
	for id := range ids {
		byIndex[id.index] = append(byIndex[id.index], id.key)
	}
	for index, keys := range byIndex {
		if len(keys) == 0 {
			continue
		}
		slices.Sort(keys)
		if err := ask(index, clickhouse.ArrayParam("keys", "String", keys)); err != nil {
			return err
		}
	}
	return nil
}

var groupColumns = []string{"group_type_index", "group_key", "created_at", "group_properties", "created_at_given"}

// rows returns the rows of the changed groups. The newest row of a group is the one with the latest _timestamp, so each row gets a later one than the last.
func (g *groups) rows() []row {
	var rows []row
	step := tick(g.store.layout["groups"]["_timestamp"])
	for id, one := range g.known {
		if !one.changed {
			continue
		}
		stamp := g.store.now.Truncate(step)
		if !stamp.After(one.stamp) {
			stamp = one.stamp.Add(step)
		}
		one.stamp = stamp
		if one.createdAt.IsZero() {
			one.createdAt = g.store.now
		}
		rows = append(rows, row{one.line, fmt.Sprintf("%d %q %s %s %s", id.index, id.key, stamp, one.createdAt, one.json()), []any{
			g.store.project, stamp, uint64(0),
			uint8(id.index), id.key, one.createdAt, one.json(), uint8(flag(one.given)), //nolint:gosec // 0 to 4, 0 or 1
		}})
	}
	return sorted(rows)
}

// tick is the smallest step of a time column.
func tick(typ string) time.Duration {
	if strings.HasPrefix(typ, "DateTime64(6") {
		return time.Microsecond
	}
	return time.Second
}

// written marks what changed as stored.
func (g *groups) written() {
	for _, one := range g.known {
		if one.described {
			one.stored, one.changed = true, false
		}
	}
}
