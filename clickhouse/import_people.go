package clickhouse

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// owner gives the person of a distinct id, and makes one where there is none.
func (i *importer) owner(line int, name string) *person {
	entry := i.state.ids[name]
	if entry == nil {
		entry = &distinctID{}
		i.state.ids[name] = entry
	}
	if entry.person == nil {
		i.assign(line, entry, i.newPerson(line, name))
	}
	return entry.person
}

// newPerson makes the person that a distinct id stands for.
func (i *importer) newPerson(line int, name string) *person {
	id := personUUID(i.options.Project, name)
	p := i.state.persons[id]
	if p == nil {
		p = &person{id: id}
		i.state.persons[id] = p
	}
	if !p.stored || p.deleted {
		p.deleted = false
		p.change(line)
	}
	return p
}

// assign gives a distinct id to a person.
func (i *importer) assign(line int, entry *distinctID, p *person) {
	if entry.person == p {
		return
	}
	entry.moved = entry.moved || entry.person != nil
	if entry.stored || entry.person != nil {
		entry.version++
	}
	entry.person = p
	entry.changed = true
	entry.line = line
}

// person applies a line that describes a person: all its ids belong to one person from now on.
func (i *importer) person(ctx context.Context, line importLine) error {
	var target *person
	for _, name := range line.distinctIDs {
		if entry := i.state.ids[name]; entry != nil && entry.person != nil {
			target = entry.person
			break
		}
	}
	if target == nil {
		target = i.owner(line.number, line.distinctIDs[0])
	}
	for _, name := range line.distinctIDs {
		if err := i.join(ctx, line.number, target, name); err != nil {
			return err
		}
	}
	for _, m := range line.properties {
		i.give(target, line.number, m)
	}
	if !line.createdAt.IsZero() && (!target.given || !target.createdAt.Equal(line.createdAt)) {
		target.createdAt, target.given = line.createdAt, true
		target.change(line.number)
	}
	i.types.observe(personScope, 0, line.properties)
	i.report.Persons++
	return nil
}

// join gives a distinct id to a person. If it belongs to another one, both become one: the target keeps its
// properties and gets those that it lacks, and the earlier time of creation.
func (i *importer) join(ctx context.Context, line int, target *person, name string) error {
	entry := i.state.ids[name]
	if entry == nil {
		entry = &distinctID{}
		i.state.ids[name] = entry
	}
	source := entry.person
	if source == nil || source == target {
		i.assign(line, entry, target)
		return nil
	}
	if err := i.idsOf(ctx, source); err != nil {
		return err
	}
	for _, other := range i.state.ids {
		if other.person == source {
			i.assign(line, other, target)
		}
	}
	for _, m := range source.properties {
		if target.properties.get(m.key) == nil {
			i.give(target, line, m)
		}
	}
	if !source.createdAt.IsZero() && (target.createdAt.IsZero() || source.createdAt.Before(target.createdAt)) {
		target.createdAt, target.given = source.createdAt, source.given
		target.change(line)
	}
	if source.identified && !target.identified {
		target.identified = true
		target.change(line)
	}
	i.movesInto(source, target)
	source.deleted = true
	source.properties, source.text, source.size = nil, "", profileSize{}
	source.change(line)
	return nil
}

// mergedID gives the other distinct id that an event joins to its own, and whether it does so even when the
// other one is identified.
func mergedID(line importLine) (id string, force bool) {
	name := ""
	switch line.event {
	case "$identify":
		name = "$anon_distinct_id"
	case "$create_alias":
		name = "alias"
	case "$merge_dangerously":
		name, force = "alias", true
	default:
		return "", false
	}
	id, _ = nameOf(line.properties.get(name))
	if id == line.distinctID {
		return "", false
	}
	return id, force
}

// profile applies what an event says about its person and gives the person as of the event. An event without
// profile gives nil for its person's data, but has the id that the person would have.
func (i *importer) profile(ctx context.Context, line importLine) (id uuid.UUID, p *person, err error) {
	if string(line.properties.get("$process_person_profile")) == "false" {
		if entry := i.state.ids[line.distinctID]; entry != nil && entry.person != nil {
			return entry.person.id, nil, nil
		}
		return personUUID(i.options.Project, line.distinctID), nil, nil
	}
	p = i.owner(line.number, line.distinctID)
	if other, force := mergedID(line); other != "" {
		entry := i.state.ids[other]
		if entry == nil || entry.person == nil || !entry.person.identified || force {
			if err := i.join(ctx, line.number, p, other); err != nil {
				return p.id, nil, err
			}
		}
		if !p.identified {
			p.identified = true
			p.change(line.number)
		}
	}
	p.seen(line.number, line.timestamp)
	for _, m := range objectOf(line.properties.get("$set_once")) {
		if p.properties.get(m.key) == nil {
			i.give(p, line.number, m)
		}
	}
	for _, m := range objectOf(line.properties.get("$set")) {
		i.give(p, line.number, m)
	}
	for _, key := range unsetKeys(line.properties.get("$unset")) {
		p.unset(line.number, key)
	}
	return p.id, p, nil
}

// give sets a property of a person. One that the person has no room for is left out and counted; the line goes in.
func (i *importer) give(p *person, line int, m member) {
	if !p.set(line, m.key, m.value) {
		i.leftOut(line)
	}
}

// leftOut counts a property for which its person or group has no room.
func (i *importer) leftOut(line int) {
	i.report.LeftOut++
	if i.report.LeftOutAt == 0 {
		i.report.LeftOutAt = line
	}
}

// objectOf reads a value that should be an object; anything else is passed over, as the peer does.
func objectOf(value []byte) object {
	if len(value) == 0 || value[0] != '{' {
		return nil
	}
	o, err := parseObject(value)
	if err != nil {
		panic("BUG: a canonical JSON object does not parse: " + err.Error())
	}
	return o
}

// unsetKeys takes a list of names, or an object for its keys.
func unsetKeys(value []byte) []string {
	if list, ok := textList(value); ok {
		return list
	}
	var keys []string
	for _, m := range objectOf(value) {
		keys = append(keys, m.key)
	}
	return keys
}

// mentionedGroups lists the groups of a line whose type is known. A type that only comes into being while the
// batch is written has no groups to look up.
func (i *importer) mentionedGroups(line importLine) []groupID {
	switch line.kind {
	case personLine, cohortLine:
		return nil
	case groupLine:
		index, ok := i.groups[line.groupType]
		if line.groupIndex >= 0 {
			index, ok = line.groupIndex, true
		}
		if !ok {
			return nil
		}
		return []groupID{{index, line.groupKey}}
	case eventLine:
	}
	var ids []groupID
	for index := range maxGroupTypes {
		if key, ok := nameOf(line.properties.get("$group_" + strconv.Itoa(index))); ok {
			ids = append(ids, groupID{index, key})
		}
	}
	for _, m := range objectOf(line.properties.get("$groups")) {
		index, ok := i.groups[m.key]
		if key, isName := nameOf(m.value); ok && isName {
			ids = append(ids, groupID{index, key})
		}
	}
	if name, key, _ := groupIdentify(line); key != "" {
		if index, ok := i.groups[name]; ok {
			ids = append(ids, groupID{index, key})
		}
	}
	return ids
}

// groupIdentify gives what an event $groupidentify says about a group.
func groupIdentify(line importLine) (name, key string, set object) {
	if line.event != "$groupidentify" {
		return "", "", nil
	}
	name, _ = nameOf(line.properties.get("$group_type"))
	key, _ = nameOf(line.properties.get("$group_key"))
	if name == "" {
		return "", "", nil
	}
	return name, key, objectOf(line.properties.get("$group_set"))
}

// describe applies properties to a group.
func (i *importer) describe(line int, id groupID, properties object) *group {
	g := i.state.groups[id]
	if g == nil {
		g = &group{}
		i.state.groups[id] = g
	}
	if !g.described {
		g.described, g.changed, g.line = true, true, line
	}
	for _, m := range properties {
		if old := g.properties.get(m.key); old != nil && string(old) == string(m.value) {
			continue
		}
		if !g.size.room(g.properties, m.key, m.value) {
			i.leftOut(line)
			continue
		}
		g.properties = g.properties.set(m.key, m.value)
		g.text, g.changed, g.line = "", true, line
	}
	i.types.observe(groupScope, id.index, properties)
	return g
}

// group applies a line that describes a group.
func (i *importer) group(line importLine) {
	index, known := i.groups[line.groupType]
	switch {
	case line.groupIndex >= 0 && known && index != line.groupIndex:
		i.bad(line.number, fmt.Errorf("the group type %s has the index %d", quotedTrim(line.groupType), index))
		return
	case line.groupIndex >= 0 && !known:
		for name, taken := range i.groups {
			if taken == line.groupIndex {
				i.bad(line.number, fmt.Errorf("the group type index %d belongs to %s", taken, quotedTrim(name)))
				return
			}
		}
		index = line.groupIndex
		i.groups[line.groupType] = index
	case !known:
		if index, known = i.groupIndex(line.groupType); !known {
			i.bad(line.number, fmt.Errorf("the project has %d group types already", maxGroupTypes))
			return
		}
	}
	g := i.describe(line.number, groupID{index, line.groupKey}, line.properties)
	if !line.createdAt.IsZero() && (!g.given || !g.createdAt.Equal(line.createdAt)) {
		g.createdAt, g.given, g.changed, g.line = line.createdAt, true, true, line.number
	}
	i.report.Groups++
}

// eventGroups gives the key of each group type that an event names: from $groups, and directly from $group_N.
func (i *importer) eventGroups(line *importLine) (keys [maxGroupTypes]string) {
	for _, m := range objectOf(line.properties.get("$groups")) {
		key, ok := nameOf(m.value)
		if !ok || key == "" {
			continue
		}
		if index, ok := i.groupIndex(m.key); ok {
			keys[index] = key
		}
	}
	for index := range keys {
		name := "$group_" + strconv.Itoa(index)
		if key, ok := nameOf(line.properties.get(name)); ok {
			keys[index] = key
		} else if keys[index] != "" {
			line.properties = line.properties.set(name, appendString(nil, keys[index]))
		}
	}
	return keys
}

// seen moves the time of creation of a group to that of an event.
func (g *group) seen(line int, at time.Time) {
	if !g.given && (g.createdAt.IsZero() || at.Before(g.createdAt)) {
		g.createdAt = at
		if g.described {
			g.changed, g.line = true, line
		}
	}
}
