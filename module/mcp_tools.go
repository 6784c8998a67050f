package module

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/definitions"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/texttable"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// PostHog's MCP server has some of its tools run on the server that it talks to: POST mcp_tools/{tool}/ with {"args": {…}}. The
// answer is text for a language model, and mistakes are a part of it.

// toolRoutes are the tools that are served. The others belong to products that are not.
func toolRoutes() map[address]methods {
	tool := func(serve func(*request) error) methods {
		return methods{http.MethodPost: {scope: "query:read", serve: serve}}
	}
	return map[address]methods{
		{resource: "mcp_tools", name: "execute_sql"}:   tool((*request).executeSQL),
		{resource: "mcp_tools", name: "read_taxonomy"}: tool((*request).readTaxonomy),
	}
}

// toolAnswer is what a tool says.
type toolAnswer struct {
	Success bool   `json:"success"`
	Content string `json:"content"`
}

// toolArgs reads the arguments of a tool.
func (rq *request) toolArgs(into any) error {
	fields, err := rq.readObject()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(fields["args"], into); err != nil {
		return api.Invalid("args", "invalid_input", "The arguments of the tool cannot be read.")
	}
	return nil
}

// answerTool answers with text, or with the mistake in a query that is told in its place.
func (rq *request) answerTool(text string, err error) error {
	if err == nil {
		rq.reply(http.StatusOK, toolAnswer{true, text})
		return nil
	}
	if failed := api.ErrorOf(err); failed.Status == http.StatusBadRequest {
		rq.reply(http.StatusOK, toolAnswer{false, failed.Detail})
		return nil
	}
	return err
}

// cellLength is what a tool shows of a value, in characters, unless it is asked for the whole.
const cellLength = 500

// executeSQL runs HogQL, and answers with a table.
func (rq *request) executeSQL() error {
	var args struct {
		Query      string `json:"query"`
		Truncate   *bool  `json:"truncate"`
		Connection string `json:"connectionId"`
	}
	switch err := rq.toolArgs(&args); {
	case err != nil:
		return err
	case args.Query == "":
		return api.Invalid("args.query", "required", "This field is required.")
	case args.Connection != "":
		return rq.answerTool("", api.Invalid("args.connectionId", "invalid_input", "There are no other connections than the project's own data."))
	}
	entry, err := rq.ask(&query.HogQL{Query: args.Query}, 0)
	if err != nil {
		return rq.answerTool("", err)
	}
	most := cellLength
	if args.Truncate != nil && !*args.Truncate {
		most = 0
	}
	done, _ := entry.Meta.(*execution.Details)
	text, err := texttable.Rows(done.Columns, entry.Result.Rows(), most)
	if err != nil {
		return fmt.Errorf("writing rows as text: %w", err)
	}
	if entry.Result.More() {
		text += fmt.Sprintf("\n\nThere are more rows than these %d: give the query a LIMIT and an OFFSET.", entry.Result.Len())
	}
	return rq.answerTool(text, nil)
}

// ask is result.Ask for the caller, whose quotas the answer shows.
func (rq *request) ask(q *query.HogQL, fresh time.Duration) (*cache.Entry, error) {
	got, err := result.Ask(rq.r.Context(), rq.rt.Executor, &rq.Caller, q, fresh)
	rq.showQuotas(got.Quotas)
	return got.Answer.Entry, err
}

// taxonomyQuery asks for one list of names or values.
type taxonomyQuery struct {
	Kind     string          `json:"kind"`
	Event    json.RawMessage `json:"event_name"` // a name, or several
	Property string          `json:"property_name"`
	Entity   string          `json:"entity"`
	Limit    int             `json:"limit"`
	Offset   int             `json:"offset"`
}

// events are the names that the query gives.
func (q *taxonomyQuery) events() []string {
	var names []string
	if json.Unmarshal(q.Event, &names) == nil {
		return names
	}
	var name string
	if json.Unmarshal(q.Event, &name) == nil && name != "" {
		return []string{name}
	}
	return nil
}

// readTaxonomy reports which events, properties and values there are.
func (rq *request) readTaxonomy() error {
	var args struct {
		Query taxonomyQuery `json:"query"`
	}
	if err := rq.toolArgs(&args); err != nil {
		return err
	}
	q := &args.Query
	var rows [][]string
	var err error
	switch q.Kind {
	case "events":
		rows, err = rq.taxonomyEvents(q)
	case "event_properties":
		rows, err = rq.taxonomyProperties(q)
	case "event_property_values":
		if len(q.events()) == 0 || q.Property == "" {
			return api.Invalid("args.query", "invalid_input", "event_property_values needs an event_name and a property_name.")
		}
		rows, err = rq.taxonomyValues("events", taxonomy.EventValues(q.Property, q.events()))
	case "entity_properties":
		rows, err = rq.taxonomyEntity(q.Entity)
	case "entity_property_values":
		if singular(q.Entity) != "person" || q.Property == "" {
			return rq.answerTool("", api.Invalid("args.query", "invalid_input", "Values are known of the properties of people alone: entity_property_values needs the entity person and a property_name."))
		}
		rows, err = rq.taxonomyValues("persons", taxonomy.PersonValues(q.Property))
	default:
		return rq.answerTool("", api.Invalid("args.query.kind", "invalid_choice", "There is no %q here: read events, event_properties, event_property_values, entity_properties or entity_property_values.", q.Kind))
	}
	if err != nil {
		return rq.answerTool("", err)
	}
	return rq.answerTool(texttable.Texts(rows), nil)
}

func singular(entity string) string { return strings.TrimSuffix(entity, "s") }

// taxonomyEvents lists the events, the latest first.
func (rq *request) taxonomyEvents(q *taxonomyQuery) ([][]string, error) {
	records, quotas, err := rq.rt.definitions().Events(rq.r.Context(), &rq.Caller)
	rq.showQuotas(quotas)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(records, definitions.LatestFirst)
	records = records[min(max(q.Offset, 0), len(records)):]
	records = records[:min(cmp.Or(max(q.Limit, 0), api.DefaultPage), len(records))]
	rows := [][]string{{"event", "last_seen_at"}}
	for _, r := range records {
		rows = append(rows, []string{r.Name, r.LastSeenAt.Format(time.RFC3339)})
	}
	return rows, nil
}

// taxonomyProperties lists the properties that the latest of some events have.
func (rq *request) taxonomyProperties(q *taxonomyQuery) ([][]string, error) {
	seen, quotas, err := rq.rt.definitions().PropertiesOf(rq.r.Context(), &rq.Caller, q.events())
	rq.showQuotas(quotas)
	if err != nil {
		return nil, err
	}
	return rq.propertyRows(func(d registry.PropertyDefinition) bool { return d.Scope == registry.EventProperty && seen[d.Name] }), nil
}

// taxonomyEntity lists the properties of people, or of groups of a type.
func (rq *request) taxonomyEntity(entity string) ([][]string, error) {
	if singular(entity) == "person" {
		return rq.propertyRows(func(d registry.PropertyDefinition) bool { return d.Scope == registry.PersonProperty }), nil
	}
	for _, g := range rq.Snapshot.GroupTypes(rq.Project.ID) {
		if g.Name == entity || g.Name == singular(entity) {
			return rq.propertyRows(func(d registry.PropertyDefinition) bool {
				return d.Scope == registry.GroupProperty && d.GroupTypeIndex == g.Index
			}), nil
		}
	}
	return nil, api.Invalid("args.query.entity", "invalid_choice", "There is no entity %q here.", entity)
}

func (rq *request) propertyRows(wanted func(registry.PropertyDefinition) bool) [][]string {
	rows := [][]string{{"property", "type"}}
	for _, d := range rq.Snapshot.PropertyDefinitions(rq.Project.ID) {
		if wanted(d) {
			rows = append(rows, []string{d.Name, string(d.Type)})
		}
	}
	return rows
}

// taxonomyValues lists the values of a property that a query finds, with the number of those that have them.
func (rq *request) taxonomyValues(counted string, q *query.HogQL) ([][]string, error) {
	found, err := rq.ask(q, definitions.MaxAge)
	if err != nil {
		return nil, err
	}
	rows := [][]string{{"value", counted}}
	for row := range found.Result.Rows() {
		var value string
		var count json.Number
		if err := json.Unmarshal(row, &[]any{&value, &count}); err != nil {
			return nil, fmt.Errorf("reading a value: %w", err)
		}
		rows = append(rows, []string{value, count.String()})
	}
	return rows, nil
}
