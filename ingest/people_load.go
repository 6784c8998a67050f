package ingest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// load looks up the distinct ids of records that are not known yet, and their persons.
func (p *people) load(ctx context.Context, records []record.Record) error {
	unknown := map[string]bool{}
	for n := range records {
		for _, id := range p.mentionedIDs(&records[n]) {
			if p.ids[id] == nil && !unknown[id] && !p.surelyNew(id) {
				unknown[id] = true
			}
		}
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(unknown)), maxAsked) {
		if err := p.loadIDs(ctx, ids, unknown); err != nil {
			return err
		}
	}
	if err := p.loadPersons(ctx, p.namedPersons(records)); err != nil {
		return err
	}
	return p.loadMerging(ctx, records)
}

// loadIDs looks up distinct ids and their persons. unknown holds all of ids, and maybe more.
func (p *people) loadIDs(ctx context.Context, ids []string, unknown map[string]bool) error {
	owner := map[string]uuid.UUID{}
	persons := map[uuid.UUID]bool{}
	err := p.store.ask(ctx, "SELECT team_id, distinct_id, argMax(person_id, version), max(version), argMax(is_deleted, version) "+
		"FROM person_distinct_id2 WHERE team_id IN {projects:Array(Int64)} AND distinct_id IN {ids:Array(String)} GROUP BY team_id, distinct_id",
		func(cells []clickhouse.Cell) error {
			name := cells[0].Text()
			if !unknown[name] || p.ids[name] != nil {
				return nil
			}
			version, err := cells[2].Int()
			if err != nil {
				return err
			}
			id, err := uuid.Parse(cells[1].Text())
			if err != nil {
				return err
			}
			p.ids[name] = &distinctID{name: name, version: version, stored: true}
			if cells[3].Text() == "0" {
				owner[name] = id
				persons[id] = true
			}
			return nil
		}, list{"ids", "String", ids})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, ok := owner[id]; !ok {
			persons[PersonUUID(p.store.project, id)] = true // it may be left from an import that broke off
		}
	}
	if err := p.loadPersons(ctx, persons); err != nil {
		return err
	}
	for name, id := range owner {
		if p.persons[id] == nil {
			p.persons[id] = &person{id: id}
		}
		p.ids[name].person = p.persons[id]
		p.persons[id].ids = append(p.persons[id].ids, p.ids[name])
	}
	return nil
}

// mentionedIDs lists the distinct ids of a record.
func (p *people) mentionedIDs(r *record.Record) []string {
	if r.Kind != record.Event {
		return r.DistinctIDs
	}
	if other, _ := p.mergedID(r); other != "" {
		return []string{r.DistinctID, other}
	}
	return []string{r.DistinctID}
}

func (p *people) loadPersons(ctx context.Context, wanted map[uuid.UUID]bool) error {
	var ids []string
	for id := range wanted {
		if p.persons[id] == nil {
			ids = append(ids, id.String())
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	table := p.store.layout[physical.Persons]
	return p.store.ask(ctx, "SELECT team_id, id, created_at, "+table.text("properties")+", is_identified, is_deleted, version, "+
		table.or("created_at_given", "1")+" FROM person WHERE team_id IN {projects:Array(Int64)} AND id IN {ids:Array(UUID)} "+
		"ORDER BY team_id, id, version DESC LIMIT 1 BY team_id, id",
		func(cells []clickhouse.Cell) error {
			one := &person{stored: true, identified: cells[3].Text() == "1", deleted: cells[4].Text() == "1", given: cells[6].Text() == "1"}
			var err error
			if one.id, err = uuid.Parse(cells[0].Text()); err != nil {
				return err
			}
			if p.persons[one.id] != nil {
				return nil // not asked for
			}
			if one.createdAt, err = cells[1].Time(); err != nil {
				return err
			}
			version, err := cells[5].Int()
			if err != nil {
				return err
			}
			one.version = uint64(version) //nolint:gosec // versions begin at 0
			if one.properties, err = record.Stored(cells[2].Text()); err != nil {
				return fmt.Errorf("the properties of person %s: %w", one.id, err)
			}
			p.persons[one.id] = one
			return nil
		}, list{"ids", "UUID", ids})
}

// loadMerging looks up all distinct ids of the persons that records may merge.
func (p *people) loadMerging(ctx context.Context, records []record.Record) error {
	var persons []*person
	for n := range records {
		ids := p.mentionedIDs(&records[n])
		if len(ids) < 2 {
			continue
		}
		for _, id := range ids {
			if one := p.of(id); one != nil {
				persons = append(persons, one)
			}
		}
	}
	return p.loadIDsOf(ctx, persons...)
}

// loadIDsOf looks up all distinct ids of persons. Those of one person are found however many they are: a batch can't have fewer persons.
func (p *people) loadIDsOf(ctx context.Context, persons ...*person) error {
	wanted := map[uuid.UUID]*person{}
	for _, one := range persons {
		if !one.whole {
			wanted[one.id] = one
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	if len(wanted) == 1 {
		defer p.store.bound(false)()
	}
	err := p.store.query(ctx, "SELECT distinct_id, argMax(person_id, version) AS owner, max(version), argMax(is_deleted, version) AS gone "+
		"FROM person_distinct_id2 WHERE team_id = {project:Int64} AND distinct_id IN "+
		"(SELECT distinct_id FROM person_distinct_id2 WHERE team_id = {project:Int64} AND person_id IN {persons:Array(UUID)}) "+
		"GROUP BY distinct_id HAVING owner IN {persons:Array(UUID)} AND gone = 0",
		func(cells []clickhouse.Cell) error {
			name := cells[0].Text()
			if p.ids[name] != nil {
				return nil // what is known is newer
			}
			owner, err := uuid.Parse(cells[1].Text())
			if err != nil {
				return err
			}
			version, err := cells[2].Int()
			one := wanted[owner]
			p.ids[name] = &distinctID{name: name, person: one, version: version, stored: true}
			one.ids = append(one.ids, p.ids[name])
			return err
		}, personsParam(maps.Keys(wanted)))
	if err != nil {
		return err
	}
	for _, one := range wanted {
		one.whole = true
	}
	return nil
}

// findAlone finds which distinct ids that a batch joined to persons have earlier events without profile. In most projects few events are without profile, so
// the mode alone excludes most.
func (p *people) findAlone(ctx context.Context) error {
	var names []string
	for name, entry := range p.ids {
		if entry.joined && entry.changed && !entry.moved && !p.fresh.lacks(freshAlone.text(name)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	mode := p.store.layout[physical.Events].or("person_mode", "'propertyless'")
	return p.store.query(ctx, "SELECT DISTINCT distinct_id FROM events WHERE team_id = {project:Int64} AND "+mode+" = 'propertyless' "+
		"AND distinct_id IN {ids:Array(String)}",
		func(cells []clickhouse.Cell) error {
			p.ids[cells[0].Text()].moved = true
			return nil
		}, clickhouse.ArrayParam("ids", "String", names))
}
