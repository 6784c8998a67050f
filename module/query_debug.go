package module

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// shown is what a query asks to see beside its rows, by its modifiers and by explain: contract sections 1.5, 2.10 and 3.
type shown struct {
	modifiers json.RawMessage // as they were given; nil for none
	timings   bool            // how long each part took
	explain   bool            // what ClickHouse does to get the rows
	debug     bool            // that, what HogQLMetadata says, and a mistake as a member of the answer
}

// readShown reads what a valid query asks to see. Wrapper nodes have it in their source.
func readShown(raw json.RawMessage) shown {
	var node struct {
		Kind      string          `json:"kind"`
		Source    json.RawMessage `json:"source"`
		Modifiers json.RawMessage `json:"modifiers"`
		Explain   any             `json:"explain"`
	}
	if json.Unmarshal(raw, &node) != nil {
		return shown{}
	}
	switch node.Kind {
	case "InsightVizNode", "DataVisualizationNode", "DataTableNode":
		return readShown(node.Source)
	}
	s := shown{explain: node.Explain == true}
	if len(node.Modifiers) == 0 || api.IsNull(node.Modifiers) {
		return s
	}
	var modifiers struct {
		Debug   any `json:"debug"`
		Timings any `json:"timings"`
	}
	var compact bytes.Buffer
	if json.Unmarshal(node.Modifiers, &modifiers) != nil || json.Compact(&compact, node.Modifiers) != nil {
		return s
	}
	s.modifiers, s.timings, s.debug = compact.Bytes(), modifiers.Timings == true, modifiers.Debug == true
	s.explain = s.explain || s.debug
	return s
}

// variant tells apart the pages of one result that show different things.
func (s *shown) variant() string {
	if s.modifiers == nil {
		return ""
	}
	return " modifiers=" + string(s.modifiers)
}

// inspection is what was found out for one request that asks for explain or debug; zero for others.
type inspection struct {
	explain  []string
	metadata *compiler.Metadata
}

// inspect finds out what the request asks to see beside the rows.
func (rq *request) inspect(p *plan) error {
	if !p.shows.explain {
		return nil
	}
	var err error
	var shown execution.Quotas
	rq.inspected.explain, shown, err = rq.rt.Explain(rq.r.Context(), rq.Caller.Caller, p.Query)
	rq.showQuotas(shown)
	if err != nil || !p.shows.debug {
		return err
	}
	rq.inspected.metadata, err = rq.metadata(p)
	return err
}

// metadata is what HogQLMetadata says of a query's text; nil for insights, which have none.
func (rq *request) metadata(p *plan) (*compiler.Metadata, error) {
	q, ok := p.Node.(*query.HogQL)
	if !ok {
		return nil, nil
	}
	about, err := rq.rt.Describe(rq.r.Context(), rq.Caller.Caller, &query.Metadata{
		Language: query.LanguageHogQL, Query: q.Query, Globals: q.Values, Variables: q.Variables, Filters: q.Filters, Modifiers: q.Modifiers,
	})
	if err != nil {
		return nil, &execution.QueryError{Text: p.Text, Err: err}
	}
	return about, nil
}

// writeMistake answers a HogQL query that is at fault and asks for debug: what would be the error of the answer is its member
// error, beside what HogQLMetadata says. Any other error is given back.
func (rq *request) writeMistake(p *plan, err error) error {
	if _, ok := p.Node.(*query.HogQL); !ok || !p.shows.debug {
		return err
	}
	mistake := api.ErrorOf(err)
	if mistake.Status != http.StatusBadRequest {
		return err
	}
	if rq.inspected.metadata, err = rq.metadata(p); err != nil {
		return err
	}
	now := cache.Answer{Entry: cache.NewEntry(&cache.Result{}, rq.Start, &execution.Details{}, 0)}
	body := []byte(`{"results":[],"columns":[],"types":[],"hasMore":null,"limit":null,"offset":null`)
	body = rq.appendFreshness(body, p, now)
	body = append(body, `,"query":null,"metadata":`...)
	body = jsontext.Append(body, rq.inspected.metadata)
	body = append(body, `,"query_metadata":null,"error":`...)
	body = jsontext.Append(body, mistake.Detail)
	body = append(body, `,"query_status":null,"hogql":null,"clickhouse":null,"cache_key":"`...)
	body = append(append(body, p.Key.String()...), '"')
	body = rq.appendShown(body, p, &execution.Details{})
	rq.write(api.Raw(http.StatusOK, append(body, `,"calculation_trigger":null,"resolved_date_range":null}`...)))
	return nil
}

// appendShown appends what the query asks to see beside its rows.
func (rq *request) appendShown(dst []byte, p *plan, done *execution.Details) []byte {
	dst = append(dst, `,"explain":`...)
	if rq.inspected.explain == nil {
		dst = append(dst, "null"...)
	} else {
		dst = jsontext.Append(dst, rq.inspected.explain)
	}
	dst = append(dst, `,"modifiers":`...)
	if p.shows.modifiers == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, p.shows.modifiers...)
	}
	dst = append(dst, `,"timings":`...)
	if !p.shows.timings || done.ExecutionID == uuid.Nil {
		return append(dst, "null"...)
	}
	return jsontext.Append(dst, []timing{
		{"./compile", done.Compile.Seconds()}, {"./clickhouse", done.Stats.Elapsed.Seconds()}, {".", (done.Compile + done.Stats.Elapsed).Seconds()},
	})
}

// timing is how long a part of a computation took, in seconds: "." is the whole, "./compile" a part of it.
type timing struct {
	Part    string  `json:"k"`
	Seconds float64 `json:"t"`
}
