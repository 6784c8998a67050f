package clickhouse

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// How much is kept between batches: distinct ids and groups, and bytes of their properties. Beyond it all is
// forgotten and looked up again.
const (
	maxState      = 50_000
	maxStateBytes = 64 << 20
)

// person is what is known about a person of the project.
type person struct {
	id         uuid.UUID
	createdAt  time.Time // zero until it is known
	given      bool      // createdAt was given, and does not move
	identified bool
	deleted    bool
	version    uint64
	stored     bool // a row of it is in ClickHouse
	changed    bool
	line       int // that changed it last
	properties object
	size       profileSize
	text       string // properties as JSON; empty when it has to be made again
}

func (p *person) json() string {
	if p.text == "" {
		p.text = p.properties.json()
	}
	return p.text
}

func (p *person) change(line int) {
	p.changed = true
	p.line = line
}

// set gives the person a property, and reports whether there was room for it.
func (p *person) set(line int, key string, value []byte) bool {
	if old := p.properties.get(key); old != nil && string(old) == string(value) {
		return true
	}
	if !p.size.room(p.properties, key, value) {
		return false
	}
	p.properties = p.properties.set(key, value)
	p.text = ""
	p.change(line)
	return true
}

// maxProfile is how many bytes the properties of a person or group may take: each of its events repeats them.
const maxProfile = 2 << 20

// profileSize is what the properties of a person or group come to.
type profileSize struct {
	names, bytes int
	known        bool
}

// room reports whether there is room for a property beside those in o, and counts it if so. One that becomes smaller always has room.
func (s *profileSize) room(o object, key string, value []byte) bool {
	if !s.known {
		s.known, s.names, s.bytes = true, 0, 0
		for _, m := range o {
			s.names += 1 + namesIn(m.value)
			s.bytes += propertyBytes(m.key, m.value)
		}
	}
	names, bytes := s.names+1+namesIn(value), s.bytes+propertyBytes(key, value)
	if old := o.get(key); old != nil {
		names -= 1 + namesIn(old)
		bytes -= propertyBytes(key, old)
	}
	if grows := names > s.names || bytes > s.bytes; grows && (names > MaxNames || bytes > maxProfile) {
		return false
	}
	s.names, s.bytes = names, bytes
	return true
}

func propertyBytes(key string, value []byte) int { return len(key) + len(value) + len(`"":,`) }

// namesIn counts the names of the objects in a value of canonical JSON: what stands before a colon outside of strings.
func namesIn(value []byte) (n int) {
	if len(value) == 0 || value[0] != '{' && value[0] != '[' {
		return 0
	}
	inString := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case c == ':' && !inString:
			n++
		}
	}
	return n
}

func (p *person) unset(line int, key string) {
	if p.properties.get(key) == nil {
		return
	}
	p.properties = p.properties.without(key)
	p.text, p.size = "", profileSize{}
	p.change(line)
}

// seen moves the time of creation to that of an event, unless it was given or is earlier.
func (p *person) seen(line int, at time.Time) {
	if !p.given && (p.createdAt.IsZero() || at.Before(p.createdAt)) {
		p.createdAt = at
		p.change(line)
	}
}

// distinctID is one of the names of a person.
type distinctID struct {
	person  *person
	version int64
	stored  bool // a row of it is in ClickHouse
	changed bool
	moved   bool // it belonged to another person
	line    int
}

// groupID names a group.
type groupID struct {
	index int
	key   string
}

// group is what is known about a group of the project.
type group struct {
	createdAt  time.Time
	given      bool
	stamp      time.Time // of its newest row
	stored     bool
	described  bool // there is a line or a row for it, not only events that name it
	changed    bool
	line       int
	properties object
	size       profileSize
	text       string
}

func (g *group) json() string {
	if g.text == "" {
		g.text = g.properties.json()
	}
	return g.text
}

// importState holds persons and groups between batches.
type importState struct {
	ids     map[string]*distinctID
	persons map[uuid.UUID]*person
	groups  map[groupID]*group
}

func newImportState() *importState {
	return &importState{ids: map[string]*distinctID{}, persons: map[uuid.UUID]*person{}, groups: map[groupID]*group{}}
}

// bytes is about what the properties take.
func (s *importState) bytes() int {
	size := 0
	for _, p := range s.persons {
		size += 2 * len(p.json())
	}
	for _, g := range s.groups {
		size += 2 * len(g.json())
	}
	return size
}

// load looks up what a batch speaks of and is not known yet.
func (i *importer) load(ctx context.Context, lines []importLine) error {
	if len(i.state.ids)+len(i.state.groups) > maxState || i.state.bytes() > maxStateBytes {
		i.state = newImportState()
	}
	ids := map[string]bool{}
	groups := map[groupID]bool{}
	for _, line := range lines {
		for _, id := range mentionedIDs(line) {
			if i.state.ids[id] == nil {
				ids[id] = true
			}
		}
		for _, id := range i.mentionedGroups(line) {
			if i.state.groups[id] == nil {
				groups[id] = true
			}
		}
	}
	if err := i.loadIDs(ctx, slices.Sorted(maps.Keys(ids))); err != nil {
		return err
	}
	return i.loadGroups(ctx, groups)
}

// mentionedIDs lists the distinct ids of a line.
func mentionedIDs(line importLine) []string {
	switch line.kind {
	case personLine, cohortLine:
		return line.distinctIDs
	case groupLine:
		return nil
	case eventLine:
	}
	ids := []string{line.distinctID}
	if other, _ := mergedID(line); other != "" {
		ids = append(ids, other)
	}
	return ids
}

func (i *importer) loadIDs(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	owner := map[string]uuid.UUID{}
	persons := map[uuid.UUID]bool{}
	err := i.query(ctx, "SELECT distinct_id, argMax(person_id, version), max(version), argMax(is_deleted, version) "+
		"FROM person_distinct_id2 WHERE team_id = {project:Int64} AND distinct_id IN {ids:Array(String)} GROUP BY distinct_id",
		[]Param{arrayParam("ids", "String", ids)}, func(cells []cell) error {
			version, err := cells[2].int()
			if err != nil {
				return err
			}
			id, err := uuid.Parse(cells[1].text())
			if err != nil {
				return err
			}
			entry := &distinctID{version: version, stored: true}
			name := cells[0].text()
			i.state.ids[name] = entry
			if cells[3].text() == "0" {
				owner[name] = id
				persons[id] = true
			}
			return nil
		})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, ok := owner[id]; !ok {
			persons[personUUID(i.options.Project, id)] = true // it may be left from an import that broke off
		}
	}
	if err := i.loadPersons(ctx, persons); err != nil {
		return err
	}
	for name, id := range owner {
		if i.state.persons[id] == nil {
			i.state.persons[id] = &person{id: id}
		}
		i.state.ids[name].person = i.state.persons[id]
	}
	return nil
}

func (i *importer) loadPersons(ctx context.Context, wanted map[uuid.UUID]bool) error {
	var ids []string
	for id := range wanted {
		if i.state.persons[id] == nil {
			ids = append(ids, id.String())
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	table := i.layout["person"]
	return i.query(ctx, "SELECT id, created_at, "+table.text("properties")+", is_identified, is_deleted, version, "+
		table.or("created_at_given", "1")+" FROM person WHERE team_id = {project:Int64} AND id IN {ids:Array(UUID)} "+
		"ORDER BY id, version DESC LIMIT 1 BY id",
		[]Param{arrayParam("ids", "UUID", ids)}, func(cells []cell) error {
			p := &person{stored: true, identified: cells[3].text() == "1", deleted: cells[4].text() == "1", given: cells[6].text() == "1"}
			var err error
			if p.id, err = uuid.Parse(cells[0].text()); err != nil {
				return err
			}
			if p.createdAt, err = cells[1].time(); err != nil {
				return err
			}
			version, err := cells[5].int()
			if err != nil {
				return err
			}
			p.version = uint64(version) //nolint:gosec // versions begin at 0
			if p.properties, err = parseNames([]byte(cells[2].text()), math.MaxInt); err != nil {
				return fmt.Errorf("the properties of person %s: %w", p.id, err)
			}
			i.state.persons[p.id] = p
			return nil
		})
}

func (i *importer) loadGroups(ctx context.Context, wanted map[groupID]bool) error {
	byIndex := map[int][]string{}
	for id := range wanted {
		byIndex[id.index] = append(byIndex[id.index], id.key)
	}
	table := i.layout["groups"]
	for index, keys := range byIndex {
		slices.Sort(keys)
		err := i.query(ctx, "SELECT group_key, created_at, "+table.text("group_properties")+", "+table.or("created_at_given", "1")+", _timestamp "+
			"FROM groups WHERE team_id = {project:Int64} AND group_type_index = {index:UInt8} AND group_key IN {keys:Array(String)} "+
			"ORDER BY group_key, _timestamp DESC LIMIT 1 BY group_key",
			[]Param{arrayParam("keys", "String", keys), {Name: "index", Type: "UInt8", Value: strconv.Itoa(index)}}, func(cells []cell) error {
				g := &group{stored: true, described: true, given: cells[3].text() == "1"}
				var err error
				if g.createdAt, err = cells[1].time(); err != nil {
					return err
				}
				if g.stamp, err = cells[4].time(); err != nil {
					return err
				}
				key := cells[0].text()
				if g.properties, err = parseNames([]byte(cells[2].text()), math.MaxInt); err != nil {
					return fmt.Errorf("the properties of a group: %w", err)
				}
				i.state.groups[groupID{index, key}] = g
				return nil
			})
		if err != nil {
			return err
		}
	}
	return nil
}

// idsOf lists all distinct ids of persons that are about to be merged into another.
func (i *importer) idsOf(ctx context.Context, p *person) error {
	if !p.stored {
		return nil // all its ids are in the state
	}
	return i.query(ctx, "SELECT distinct_id, argMax(person_id, version) AS owner, max(version), argMax(is_deleted, version) AS gone "+
		"FROM person_distinct_id2 WHERE team_id = {project:Int64} AND distinct_id IN "+
		"(SELECT distinct_id FROM person_distinct_id2 WHERE team_id = {project:Int64} AND person_id = {person:UUID}) "+
		"GROUP BY distinct_id HAVING owner = {person:UUID} AND gone = 0",
		[]Param{{Name: "person", Type: "UUID", Value: p.id.String()}}, func(cells []cell) error {
			name := cells[0].text()
			if i.state.ids[name] != nil {
				return nil // the state knows better
			}
			version, err := cells[2].int()
			i.state.ids[name] = &distinctID{person: p, version: version, stored: true}
			return err
		})
}

// knownEvents finds which events of a batch are in ClickHouse already. The conditions name every column of the
// primary key, so that only the parts are read where they could be.
func (i *importer) knownEvents(ctx context.Context, lines []importLine) (map[uuid.UUID]bool, error) {
	ids := make([]string, 0, len(lines))
	days, names, people := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, line := range lines {
		if line.kind == eventLine {
			ids = append(ids, line.uuid.String())
			days[line.timestamp.Format(time.DateOnly)] = true
			names[line.event] = true
			people[line.distinctID] = true
		}
	}
	known := map[uuid.UUID]bool{}
	if len(ids) == 0 {
		return known, nil
	}
	err := i.query(ctx, "SELECT uuid FROM events WHERE team_id = {project:Int64} AND toDate(timestamp) IN {days:Array(Date)} "+
		"AND event IN {events:Array(String)} AND cityHash64(distinct_id) IN (SELECT cityHash64(arrayJoin({people:Array(String)}))) "+
		"AND uuid IN {ids:Array(UUID)}",
		[]Param{
			arrayParam("days", "Date", sortedKeys(days)), arrayParam("events", "String", sortedKeys(names)),
			arrayParam("people", "String", sortedKeys(people)), arrayParam("ids", "UUID", ids),
		}, func(cells []cell) error {
			id, err := uuid.Parse(cells[0].text())
			known[id] = true
			return err
		})
	return known, err
}

// firstEvents finds the time of the first event of groups that were not known before.
func (i *importer) firstEvents(ctx context.Context, index int, keys []string, first func(key string, at time.Time)) error {
	column := identifier(fmt.Sprintf("$group_%d", index))
	return i.query(ctx, "SELECT "+column+" AS key, min(timestamp) FROM events WHERE team_id = {project:Int64} AND "+
		column+" IN {keys:Array(String)} GROUP BY key",
		[]Param{arrayParam("keys", "String", keys)}, func(cells []cell) error {
			at, err := cells[1].time()
			first(cells[0].text(), at)
			return err
		})
}

// query runs a look-up of the import's own project.
func (i *importer) query(ctx context.Context, sql string, params []Param, row func([]cell) error) error {
	params = append(params, Param{Name: "project", Type: "Int64", Value: strconv.FormatInt(i.options.Project, 10)})
	return i.client.collect(ctx, Query{SQL: sql, Params: params, Project: i.options.Project}, row)
}

// personsParam is the parameter persons with a list of ids.
func personsParam(ids iter.Seq[uuid.UUID]) Param {
	var list []string
	for id := range ids {
		list = append(list, id.String())
	}
	slices.Sort(list)
	return arrayParam("persons", "UUID", list)
}

// arrayParam is a parameter with a list of texts.
func arrayParam(name, typ string, list []string) Param {
	var b strings.Builder
	b.WriteByte('[')
	for i, s := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(literal(s))
	}
	b.WriteByte(']')
	return Param{Name: name, Type: "Array(" + typ + ")", Value: b.String()}
}
