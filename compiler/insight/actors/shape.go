package actors

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// kind has what differs between people and groups.
type kind struct {
	group bool
	// object is the word that selects an actor as an object, table the table of actors, id their field in it, typ the type of that field.
	object, table, id, typ string
	// orderBy is the property to order by for the word object.
	orderBy string
	// known is a SELECT that joins the page with what is known of its actors. columns are the columns of what is known; the first is found.
	known   string
	columns [][2]string
	// members are the members of the object that come from columns, without found.
	members []insight.Member
}

// The kinds of actors. Only actors of the page are looked up.
var (
	personKind = kind{
		object: "person", table: "persons", id: "id", typ: "UUID", orderBy: "email",
		known: `SELECT 1 FROM page LEFT JOIN (
			SELECT id, 1 AS found, properties, created_at, if(is_identified, 'true', 'false') AS is_identified FROM persons WHERE id IN (SELECT actor_id FROM page)
		) AS known ON known.id = page.actor_id LEFT JOIN (
			SELECT person_id, arraySort(groupArray(distinct_id)) AS distinct_ids FROM person_distinct_ids
			WHERE person_id IN (SELECT actor_id FROM page) GROUP BY person_id
		) AS named ON named.person_id = page.actor_id`,
		columns: [][2]string{{"known", "found"}, {"known", "properties"}, {"known", "created_at"}, {"known", "is_identified"}, {"named", "distinct_ids"}},
		members: []insight.Member{{Name: "properties", JSON: true}, {Name: "created_at"}, {Name: "is_identified", JSON: true}, {Name: "distinct_ids"}},
	}
	groupKind = kind{
		group: true, object: "group", table: "groups", id: "key", typ: "String", orderBy: "name",
		known: `SELECT 1 FROM page LEFT JOIN (
			SELECT key, 1 AS found, properties, created_at FROM groups WHERE index = {index} AND key IN (SELECT actor_id FROM page)
		) AS known ON known.key = page.actor_id`,
		columns: [][2]string{{"known", "found"}, {"known", "properties"}, {"known", "properties"}, {"known", "created_at"}},
		members: []insight.Member{{Name: "properties", JSON: true}, {Name: "group_properties", JSON: true}, {Name: "created_at"}},
	}
)

// object turns the tuple of an actor into an object. An actor of whom nothing is known has only its id. A group also has the index of its
// type, a person the distinct ids of its events if the query shows these.
func (b *builder) object(dst []byte, values []json.RawMessage) ([]byte, error) {
	columns := b.kind.columns
	if len(values) <= len(columns) {
		return nil, fmt.Errorf("it has %d values", len(values))
	}
	known := string(values[1]) == "1"
	dst = append(append(dst, `{"id":`...), values[0]...)
	if b.kind.group {
		if known {
			dst = append(append(dst, `,"type":"group","group_key":`...), values[0]...)
		}
		dst = strconv.AppendInt(append(dst, `,"group_type_index":`...), int64(*b.people.Group), 10)
	}
	if !known {
		if rest := values[1+len(columns):]; len(rest) > 0 {
			dst = append(append(dst, `,"distinct_ids":`...), rest[0]...)
		}
		return append(dst, '}'), nil
	}
	members, err := insight.ObjectOf(b.kind.members)(nil, values[2:1+len(columns)])
	if err != nil {
		return nil, err
	}
	dst = append(dst, ',')
	return append(dst, members[1:]...), nil
}

// shape sets how rows of the query become rows of the answer.
func (b *builder) shape(out *insight.Listing) {
	objects := map[int]insight.Object{}
	actor := -1
	for i, c := range b.cells {
		if c.object != nil {
			objects[i] = c.object
		}
		if c.x == nil {
			actor = i
		}
	}
	out.Row = insight.Objects(len(b.cells), objects)
	if actor < 0 {
		return
	}
	out.Types = map[int]string{actor: b.kind.typ}
	out.Missing = func(row []byte) (bool, error) {
		cells, err := insight.List(row, len(b.cells))
		if err != nil {
			return false, fmt.Errorf("reading a row of actors: %w", err)
		}
		var known struct {
			CreatedAt json.RawMessage `json:"created_at"`
		}
		if err := json.Unmarshal(cells[actor], &known); err != nil {
			return false, fmt.Errorf("reading an actor: %w", err)
		}
		return known.CreatedAt == nil, nil
	}
}
