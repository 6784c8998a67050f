// Package query reads the JSON query nodes of the API: bytes ─▶ [query] ─▶ typed nodes. It has the parts shared by all kinds, and the nodes that
// contain HogQL; nodes of insights and lists are in the folders of their kinds. Models are closed: an unknown field is a mistake, and every
// mistake names its place (contract: api.md, sections 1.2, 3 and 7).
package query

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Node is a query that can be run.
type Node interface {
	// Kind is the node's name in the API, such as HogQLQuery.
	Kind() string
	// Text is the HogQL text that the positions of mistakes point into; empty for kinds without one.
	Text() string
	// Canonical is JSON that is only equal for nodes that always have the same answer: keys are in order, and fields that only label a query are
	// left out.
	Canonical() []byte
}

// SQLWrapper is the kind that displays the answer of HogQL text.
const SQLWrapper = "DataVisualizationNode"

// wrappers are the kinds that display the answer of their source, with their display fields.
var wrappers = map[string][]string{
	SQLWrapper: {"display", "chartSettings", "tableSettings"},
	"InsightVizNode": {
		"full", "showHeader", "showTable", "showFilters", "showResults", "showCorrelationTable", "showLastComputation",
		"showLastComputationRefresh", "embedded", "suppressSessionAnalysisWarning", "hidePersonsModal", "hideTooltipOnScroll",
		"vizSpecificOptions",
	},
	"DataTableNode": {
		"full", "columns", "hiddenColumns", "pinnedColumns", "embedded", "showActions", "showCount", "showSearch", "showDateRange",
		"showExport", "showEventFilter", "showEventsFilter", "showPropertyFilter", "showHogQLEditor", "showReload", "showTimings",
		"showElapsedTime", "showColumnConfigurator", "showPersistentColumnConfigurator", "showSavedQueries", "showSavedFilters",
		"showTestAccountFilters", "showResultsTable", "showOpenEditorButton", "showSourceQueryOptions", "showAbsoluteTime",
		"showRecordingColumn", "showSparkline", "showTableViews", "allowSorting", "expandable", "propertiesViaUrl", "context",
		"contextKey", "defaultColumns", "uniqueKey", "tags",
	},
}

// labels are fields that every node may have and that do not affect its answer.
var labels = []string{"kind", "version", "response"}

// known are the kinds of PostHog's discriminator, in its order (contract: api.md, section 1.6). Those that are not supported are refused by
// name.
var known = []string{
	"EventsNode", "ActionsNode", "PersonsNode", "DataWarehouseNode", "EventsQuery", "ActorsQuery", "GroupsQuery",
	"InsightActorsQuery", "InsightActorsQueryOptions", "SessionsTimelineQuery", "HogQuery", "HogQLQuery", "HogQLMetadata",
	"HogQLAutocomplete", "HogQLASTQuery", "DatabaseSchemaQuery", "InsightVizNode", "DataTableNode", "DataVisualizationNode",
	"SavedInsightNode", "TrendsQuery", "FunnelsQuery", "RetentionQuery", "PathsQuery", "StickinessQuery", "LifecycleQuery",
	"FunnelsActorsQuery", "StickinessActorsQuery", "FunnelCorrelationQuery", "FunnelCorrelationActorsQuery", "RecordingsQuery",
	"TracesQuery", "TraceQuery", "WebOverviewQuery", "WebStatsTableQuery", "WebExternalClicksTableQuery", "WebGoalsQuery",
	"WebVitalsQuery", "WebVitalsPathBreakdownQuery", "WebPageURLSearchQuery", "WebTrendsQuery", "SessionAttributionExplorerQuery",
	"RevenueAnalyticsGrossRevenueQuery", "RevenueAnalyticsMetricsQuery", "RevenueAnalyticsMRRQuery",
	"RevenueAnalyticsOverviewQuery", "RevenueAnalyticsTopCustomersQuery", "RevenueExampleEventsQuery",
	"RevenueExampleDataWarehouseTablesQuery", "MarketingAnalyticsTableQuery", "MarketingAnalyticsAggregatedQuery",
	"ErrorTrackingQuery", "ErrorTrackingIssueCorrelationQuery", "ErrorTrackingSimilarIssuesQuery", "ExperimentQuery",
	"ExperimentExposureQuery", "ExperimentEventExposureConfig", "ExperimentFunnelsQuery", "ExperimentTrendsQuery", "LogsQuery",
	"TeamTaxonomyQuery", "EventTaxonomyQuery", "ActorsPropertyTaxonomyQuery", "CalendarHeatmapQuery", "SuggestedQuestionsQuery",
	"VectorSearchQuery", "UsageMetricsQuery", "SessionsQuery", "PropertyValuesQuery",
}

// Kind describes how nodes of a kind are read.
type Kind struct {
	// Name is the kind's name in the API, such as TrendsQuery.
	Name string
	// Read reads the fields of a node. It returns nil if it cannot, after noting why.
	Read func(r *Reader, o *Object) Node
	// Unlisted hides the kind from the list that a mistake in the kind shows.
	Unlisted bool
	// Insight reports whether the kind is an insight.
	Insight bool
	// Actors reads a node that asks for the actors behind a number of an insight of this kind; nil for other kinds.
	Actors func(r *Reader, o *Object, d Drill, behind Insight) PeopleSource
	// Drills reports whether the kind asks for the actors behind an insight.
	Drills bool
}

// Kinds are the kinds that can be read, in the order in which mistakes list them.
type Kinds []Kind

// find returns the entry of a kind; nil if there is none.
func (k Kinds) find(name string) *Kind {
	for i := range k {
		if k[i].Name == name {
			return &k[i]
		}
	}
	return nil
}

// names returns the names of the kinds for which wanted returns true.
func (k Kinds) names(wanted func(*Kind) bool) []string {
	var out []string
	for i := range k {
		if wanted(&k[i]) {
			out = append(out, k[i].Name)
		}
	}
	return out
}

// Parse parses one query node. For a node that only displays another one, it returns that source. Mistakes are a *diag.Error: a ParseError that
// lists everything wrong with the JSON, or InvalidInput for a kind that cannot be run.
func (k Kinds) Parse(raw []byte) (Node, error) {
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	r := &Reader{kinds: k}
	n := r.node(v, Place{path: "query"})
	if err := r.err(); err != nil {
		return nil, err
	}
	return n, nil
}

// unknownKind notes an unknown kind, with the nearest one. It only lists common kinds: all of them would bury the mistake.
func (r *Reader) unknownKind(at Place, tag any) {
	listed := r.kinds.names(func(k *Kind) bool { return !k.Unlisted })
	words := "Input tag '" + diag.Shown(tag) + "' found using 'kind' does not match any of the expected tags: '" + strings.Join(listed, "', '") + "' and others"
	kind, _ := tag.(string)
	near := slices.Concat(known, r.kinds.names(func(*Kind) bool { return true }))
	if !strings.HasSuffix(kind, "Query") && schema.Nearest(kind, slices.Values(near)) == "" {
		kind += "Query"
	}
	r.Near(at, "union_tag_invalid", words, kind, near)
}

// maxWrapped bounds the wrappers around a query.
const maxWrapped = 4

// Wraps reports whether nodes of a kind only display the answer of their source.
func Wraps(kind string) bool { return wrappers[kind] != nil }

// node reads a node of any kind; nil if it cannot, after noting why.
func (r *Reader) node(v any, at Place) Node {
	m, ok := v.(map[string]any)
	if !ok {
		r.Add(at, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from")
		return nil
	}
	tag, ok := m["kind"]
	if !ok || tag == nil {
		r.Add(at, "union_tag_not_found", "Unable to extract tag using discriminator 'kind'")
		return nil
	}
	kind, ok := tag.(string)
	row := r.kinds.find(kind)
	if !ok || row == nil && !slices.Contains(known, kind) {
		r.unknownKind(at, tag)
		return nil
	}
	r.depth++
	defer func() { r.depth-- }()
	o := r.Object(m, at.Below(kind, false))
	switch {
	case Wraps(kind) && r.depth <= maxWrapped:
		return r.wrapped(o, kind)
	case row == nil:
		r.unsupported(at, "Unsupported query kind: %s", kind)
		return nil
	}
	return row.Read(r, o)
}

// wrapped reads the source of a node that only displays it.
func (r *Reader) wrapped(o *Object, kind string) Node {
	source, ok := o.Take("source")
	if !ok {
		r.Add(o.Field("source"), "missing", "Field required")
		return nil
	}
	o.Ignore(labels...)
	o.Ignore(wrappers[kind]...)
	o.Close()
	return r.node(source, o.Field("source"))
}
