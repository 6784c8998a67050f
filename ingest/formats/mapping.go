package formats

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// Mapping maps columns to the fields that they become: a field of an event (event, distinct_id, timestamp, uuid, person_id, elements_chain), properties or
// person for an object in JSON, properties.NAME, person.NAME, groups.TYPE, or - for none.
type Mapping map[string]string

// tableFields are the fields that columns can become.
var tableFields = []string{
	"event", "distinct_id", "timestamp", "uuid", "person_id", "created_at", "elements_chain", "properties", "person_properties", "person",
	"person_set", "person_set_once", "set", "set_once", "ip",
}

// ParseMapping reads pairs column=field.
func ParseMapping(pairs []string) (Mapping, error) {
	m := Mapping{}
	for _, pair := range pairs {
		at := strings.LastIndexByte(pair, '=')
		if at <= 0 || at == len(pair)-1 {
			return nil, fmt.Errorf("%s does not map a column: want, for example, email=distinct_id or plan=properties.plan", record.Quoted(pair))
		}
		column, field := pair[:at], pair[at+1:]
		if !mappable(field) {
			text := record.Quoted(field) + " is no field that a column can become"
			if near := nearest(field, tableFields); near != "" {
				text += ": did you mean " + near + "?"
			}
			return nil, errors.New(text)
		}
		if _, twice := m[column]; twice {
			return nil, fmt.Errorf("the column %s is mapped twice", record.Quoted(column))
		}
		m[column] = field
	}
	return m, nil
}

func mappable(field string) bool {
	if field == "-" || slices.Contains(tableFields, field) {
		return true
	}
	scope, name, ok := strings.Cut(field, ".")
	return ok && name != "" && slices.Contains([]string{"properties", "person", "groups"}, scope)
}

// column is a column of a table, with what it becomes.
type column struct {
	name, field string // field is empty for an unknown column
}

// table makes records of the rows of CSV or Parquet.
type table struct {
	columns []column
	persons bool // the rows describe persons
}

const maxColumns = record.MaxNames + 50

// newTable finds out what the columns become, and trims their names in place. If a column holds the properties, other columns count as unknown. Otherwise they
// become properties.
func (r *Reader) newTable(names []string) (*table, error) {
	if len(names) > maxColumns {
		return nil, fmt.Errorf("the file has %d columns; it can have %d", len(names), maxColumns)
	}
	t := &table{columns: make([]column, len(names))}
	used := map[string]bool{}
	for i, name := range names {
		name = strings.TrimSpace(name)
		names[i] = name
		field, mapped := r.options.Map[name]
		if !mapped && slices.Contains(tableFields, name) {
			field = name
		}
		t.columns[i] = column{name, field}
		used[field] = true
	}
	for name := range r.options.Map {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("the file has no column %s; it has %s", record.Quoted(name), listed(names))
		}
	}
	t.persons = !used["event"] && !used["timestamp"] && (used["person_id"] || used["person"])
	if err := t.check(used, names); err != nil {
		return nil, err
	}
	var properties []string
	for i, c := range t.columns {
		known := t.persons && slices.Contains(personColumns, c.name) || used["properties"] && slices.Contains(exportColumns, c.name)
		switch {
		case c.field != "":
		case known:
			t.columns[i].field = "-"
		case !used["properties"] && c.name != "":
			t.columns[i].field = "properties." + c.name
			properties = append(properties, shortened(c.name))
		}
	}
	if err := t.distinct(); err != nil {
		return nil, err
	}
	r.summary.Columns = append(r.summary.Columns, properties...)
	return t, nil
}

// distinct fails if two columns become the same field: a row can hold only one of them.
func (t *table) distinct() error {
	used := make(map[string]string, len(t.columns))
	for _, c := range t.columns {
		if c.field == "" || c.field == "-" {
			continue
		}
		if other, twice := used[c.field]; twice {
			return fmt.Errorf("the columns %s and %s both become %s: map one of them to another field, or to - to leave it out",
				record.Quoted(other), record.Quoted(c.name), c.field)
		}
		used[c.field] = c.name
	}
	return nil
}

// Columns of PostHog's exports that say nothing about an event or person.
var (
	exportColumns = []string{"team_id", "inserted_at", "_inserted_at", "site_url", "bq_ingested_timestamp", "elements"}
	personColumns = []string{"team_id", "person_version", "person_distinct_id_version", "is_deleted", "is_identified"}
)

func (t *table) check(used map[string]bool, names []string) error {
	needed := []string{"event", "distinct_id", "timestamp"}
	if t.persons {
		needed = []string{"distinct_id"}
	}
	for _, field := range needed {
		if !used[field] {
			return fmt.Errorf("no column is the field %s: say which one is with --map COLUMN=%s; the file has the columns %s", field, field, listed(names))
		}
	}
	return nil
}

func listed(names []string) string {
	const most = 20
	short := make([]string, 0, most)
	for _, name := range names[:min(len(names), most)] {
		short = append(short, shortened(name))
	}
	text := strings.Join(short, ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// row makes the record of a row. A nil value is missing.
func (t *table) row(r *Reader, values []record.Value, line int, source []byte) (record.Record, error) {
	f := fields{all: make(record.Object, 0, len(values))}
	var properties, person, groups record.Object
	for i, v := range values {
		if i >= len(t.columns) || !v.Given() {
			continue
		}
		c := t.columns[i]
		switch scope, name, sub := strings.Cut(c.field, "."); {
		case c.field == "" && c.name != "":
			r.unknown.add(c.name, func() []string { return tableFields })
		case c.field == "", c.field == "-" && c.name != "is_deleted":
		case sub && scope == "properties":
			properties = append(properties, record.Member{Key: name, Value: v})
		case sub && scope == "person":
			person = append(person, record.Member{Key: name, Value: v})
		case sub && scope == "groups":
			groups = append(groups, record.Member{Key: name, Value: v})
		case c.field == "-":
			f.all = append(f.all, record.Member{Key: c.name, Value: v})
		default:
			f.all = append(f.all, record.Member{Key: c.field, Value: v})
		}
	}
	return r.converted(&f, func(f *fields) (record.Record, error) { return t.convert(f, properties, person, groups) }, line, source)
}

// convert makes the record of a row, some of whose columns are properties.
func (t *table) convert(f *fields, properties, person, groups record.Object) (record.Record, error) {
	given := f.object("person")
	for _, m := range person {
		given = given.Set(m.Key, m.Value)
	}
	rec, err := postHogRow(f, t.persons)
	if err != nil {
		return rec, err
	}
	for _, m := range properties {
		rec.Properties = rec.Properties.Set(m.Key, m.Value)
	}
	if t.persons {
		for _, m := range given {
			rec.Properties = rec.Properties.Set(m.Key, m.Value)
		}
	} else {
		set(&rec.Properties, "$set", given)
		set(&rec.Properties, "$groups", groups)
	}
	if rec.Properties.ManyNames() {
		f.fail("it has more than %d property names", record.MaxNames)
	}
	return rec, f.err
}

func postHogRow(f *fields, person bool) (record.Record, error) {
	if person {
		return postHogPerson(f)
	}
	return postHogEvent(f)
}
