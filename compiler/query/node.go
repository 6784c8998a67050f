// Package query reads the JSON query nodes of the API: bytes ─▶ [query] ─▶ typed nodes. Models are closed: a field that a
// kind does not have is a mistake, and every mistake names its place (contract: api.md, sections 1.2, 3 and 7).
package query

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Node is a query that can be run.
//
//sumtype:decl
type Node interface {
	// Kind is the node's name on the wire, such as HogQLQuery.
	Kind() string
	// Text is the HogQL text that the positions of mistakes point into; empty for kinds that have none.
	Text() string
	// Canonical is JSON that two nodes share when they always have the same answer: keys are in order, and what only
	// labels a query is left out.
	Canonical() []byte
	node()
}

// wrappers are the kinds that show the answer of their source, with the fields that say how.
var wrappers = map[string][]string{
	"DataVisualizationNode": {"display", "chartSettings", "tableSettings"},
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

// labels are fields that every node may have and that change nothing in its answer.
var labels = []string{"kind", "version", "response"}

// known are the kinds of the peer's discriminator in its order (contract: api.md, section 1.6). Those that Parse does not
// run are refused by name.
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
	"VectorSearchQuery", "UsageMetricsQuery",
}

// Parse reads one query node, and gives the source of a node that only shows another one. Mistakes are *diag.Error: a
// ParseError that lists all that is wrong with the JSON, or InvalidInput for a kind that cannot be run.
func Parse(raw []byte) (Node, error) {
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	r := &reader{}
	n, err := r.node(v, place{path: "query"}, 0)
	if err != nil {
		return nil, err
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return n, nil
}

// common are the kinds that a mistake in the kind lists. All kinds would bury what is wrong.
var common = []string{
	"HogQLQuery", "TrendsQuery", "FunnelsQuery", "RetentionQuery", "PathsQuery", "StickinessQuery", "LifecycleQuery", "EventsQuery", "ActorsQuery",
}

// unknownKind notes a kind that there is not, with the nearest one.
func (r *reader) unknownKind(at place, tag any) {
	words := "Input tag '" + shown(tag) + "' found using 'kind' does not match any of the expected tags: '" + strings.Join(common, "', '") + "' and others"
	kind, _ := tag.(string)
	if !strings.HasSuffix(kind, "Query") && schema.Nearest(kind, slices.Values(known)) == "" {
		kind += "Query"
	}
	r.near(at, "union_tag_invalid", words, kind, known)
}

// maxWrapped bounds the wrappers around a query.
const maxWrapped = 4

func (r *reader) node(v any, at place, depth int) (Node, error) {
	m, ok := v.(map[string]any)
	if !ok {
		r.add(at, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from")
		return nil, nil
	}
	tag, ok := m["kind"]
	if !ok || tag == nil {
		r.add(at, "union_tag_not_found", "Unable to extract tag using discriminator 'kind'")
		return nil, nil
	}
	kind, ok := tag.(string)
	if !ok || !slices.Contains(known, kind) {
		r.unknownKind(at, tag)
		return nil, nil
	}
	here := at.below(kind, false)
	if fields, wraps := wrappers[kind]; wraps && depth < maxWrapped {
		o := r.object(m, here)
		source, ok := o.take("source")
		if !ok {
			r.add(here.below("source", true), "missing", "Field required")
			return nil, nil
		}
		o.ignore(labels...)
		o.ignore(fields...)
		o.close()
		return r.node(source, here.below("source", true), depth+1)
	}
	switch kind {
	case "HogQLQuery":
		return r.hogql(m, here), nil
	case "HogQLMetadata":
		return r.metadata(m, here, depth)
	case "DatabaseSchemaQuery":
		return r.databaseSchema(m, here), nil
	case "EventsQuery":
		return r.events(m, here), nil
	case "ActorsQuery":
		return r.actors(m, here), nil
	case "InsightActorsQuery", "StickinessActorsQuery", "FunnelsActorsQuery":
		return r.insightActors(kind, m, here), nil
	}
	if read, ok := insights[kind]; ok {
		return read(r, m, here), nil
	}
	return nil, diag.Field(diag.InvalidInput, at.attr, "Unsupported query kind: %s", kind)
}
