package events

import (
	"slices"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// personColumn is the column that shows the person of an event.
const personColumn = "person"

// known are the people who have the distinct ids of a page now, whatever was recorded with its events.
const known = `SELECT 1 FROM page LEFT JOIN (
	SELECT ids.distinct_id AS distinct_id, 1 AS found, people.id AS id, people.created_at AS created_at, people.properties AS properties FROM (
		SELECT distinct_id, person_id FROM person_distinct_ids WHERE distinct_id IN (SELECT {name} FROM page)
	) AS ids INNER JOIN (
		SELECT id, created_at, properties FROM persons
		WHERE id IN (SELECT person_id FROM person_distinct_ids WHERE distinct_id IN (SELECT {name} FROM page))
	) AS people ON people.id = ids.person_id
) AS known ON known.distinct_id = {joined}`

// withPeople joins a page of events, if it shows people, with what is known of them.
func (b builder) withPeople(page *hogql.Select) hogql.Query {
	first := slices.IndexFunc(b.query.Select, func(column string) bool { return titled(column) == personColumn })
	if first < 0 {
		return page
	}
	var columns []hogql.Expr
	page.OrderBy = insight.Unplaced(page.OrderBy, page.Columns)
	for i, column := range page.Columns {
		own := "_column_" + strconv.Itoa(i+1)
		name := own
		if alias, named := column.(*hogql.Alias); named {
			name = alias.Name.Text // other parts of the query may refer to it
		} else {
			page.Columns[i] = insight.As(column, name)
		}
		x := insight.Field("page", name)
		if titled(b.query.Select[i]) == personColumn {
			x = &hogql.Tuple{Items: []hogql.Expr{
				insight.Field("known", "found"), insight.Field("known", "id"), insight.Field("known", "created_at"), insight.Field("known", "properties"), x,
			}}
		}
		columns = append(columns, insight.As(x, own))
	}
	var order []*hogql.Order
	for i, o := range page.OrderBy {
		name := "_order_" + strconv.Itoa(i+1)
		page.Columns = append(page.Columns, insight.As(o.X, name))
		order = append(order, &hogql.Order{X: insight.Field("page", name), Desc: o.Desc})
	}
	s, ok := insight.Template(known, map[string]any{"name": insight.Field(objectName(first)), "joined": insight.Field("page", objectName(first))}).(*hogql.Select)
	if !ok {
		panic("BUG: what is known of people is not a SELECT")
	}
	s.With = []*hogql.CTE{{Name: hogql.Name{Text: "page"}, Query: insight.Once(page)}}
	s.Columns, s.OrderBy = columns, order
	return s
}
