package query

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Insight is a node of one of the insight kinds.
type Insight interface {
	Node
	// Parts returns pointers to the fields that insight kinds have in common.
	Parts() Parts
	// Clone returns a copy. What its Parts point at can be replaced, but not modified, without affecting the original.
	Clone() Insight
}

// Parts points at fields that several insight kinds have; nil for those that a kind does not have.
type Parts struct {
	*Common
	Interval   *Interval
	Breakdowns **Breakdowns
	// Compare is nil too for displays that show no comparison.
	Compare **Compare
	// Compared is the comparison of an insight that is compared even if nothing asks for that; nil for others.
	Compared *Compare
}

// IntervalOf returns the interval of an insight, or its period for kinds with periods instead; empty for other queries.
func IntervalOf(n Node) Interval {
	if n, ok := n.(interface{ Bucket() Interval }); ok {
		return n.Bucket()
	}
	if n, ok := n.(Insight); ok && n.Parts().Interval != nil {
		return *n.Parts().Interval
	}
	return ""
}

// Common are the fields of all insight kinds (contract: api.md, section 2.1).
type Common struct {
	// At is the place of the node in the JSON, such as source; empty for the outermost node.
	At                 string    `json:"-"`
	DateRange          DateRange `json:"dateRange,omitzero"`
	FilterTestAccounts bool      `json:"filterTestAccounts,omitempty"`
	// Properties is the condition on all events; nil if there is none.
	Properties *Condition `json:"properties,omitempty"`
	// Group is the type of group that is counted instead of people; nil for people.
	Group *int `json:"aggregation_group_type_index,omitempty"`
	// Sampling is the share of people to read, 0 to 1; nil for all.
	Sampling  *float64  `json:"samplingFactor,omitempty"`
	Modifiers Modifiers `json:"modifiers,omitzero"`
}

// Field returns the dotted path of a field of the node, for the attr of a mistake.
func (c *Common) Field(name string) string {
	if c.At == "" {
		return name
	}
	return c.At + "." + name
}

// Text returns an empty text: positions cannot point into an insight.
func (*Common) Text() string { return "" }

// FromField returns the dotted path of the start of the date range, for the attr of a mistake.
func (c *Common) FromField() string {
	return cmp.Or(c.DateRange.FromAt, c.Field("dateRange.date_from"))
}

// ToField returns the dotted path of its end.
func (c *Common) ToField() string {
	return cmp.Or(c.DateRange.ToAt, c.Field("dateRange.date_to"))
}

// DateRange is the span of time that an insight covers (contract: api.md, sections 2.1 and 2.2).
type DateRange struct {
	From string `json:"date_from,omitempty"` // empty for the last 7 days
	To   string `json:"date_to,omitempty"`   // empty for now
	// FromAt and ToAt are the places of the ends if they came from elsewhere in the request, such as variables.date_from.
	FromAt string `json:"-"`
	ToAt   string `json:"-"`
	// Explicit keeps both ends as given, unrounded.
	Explicit bool `json:"explicitDate,omitempty"`
	// DaysOfWeek restricts events to these ISO weekdays, 1 to 7, sorted; empty for all.
	DaysOfWeek []int `json:"daysOfWeek,omitempty"`
	// ExcludeIncomplete drops buckets at the ends that the range only partly covers.
	ExcludeIncomplete bool `json:"excludeIncompletePeriods,omitempty"`
}

// Interval is the length of a bucket of time.
type Interval string

// The intervals, shortest first. Day is the default of every kind.
const (
	Second  Interval = "second"
	Minute  Interval = "minute"
	Hour    Interval = "hour"
	Day     Interval = "day"
	Week    Interval = "week"
	Month   Interval = "month"
	Quarter Interval = "quarter"
	Year    Interval = "year"
)

// intervals are the words of all intervals.
var intervals = []string{
	string(Second), string(Minute), string(Hour), string(Day), string(Week), string(Month), string(Quarter), string(Year),
}

// Clock returns the length of an interval of fixed length; 0 for intervals that depend on the calendar.
func (i Interval) Clock() time.Duration {
	switch i {
	case Second:
		return time.Second
	case Minute:
		return time.Minute
	case Hour:
		return time.Hour
	case Day, Week, Month, Quarter, Year:
	}
	return 0
}

// Months returns how many months an interval has; 0 for those not made of months.
func (i Interval) Months() int {
	switch i {
	case Month:
		return 1
	case Quarter:
		return 3
	case Year:
		return 12
	case Second, Minute, Hour, Day, Week:
	}
	return 0
}

// Compare asks for the same numbers over an earlier period as well.
type Compare struct {
	// At is the place of To in the request's JSON, for the attr of a mistake.
	At string `json:"-"`
	// To is a relative date at which the other period starts, such as -1w; empty for the period before.
	To string `json:"compare_to,omitempty"`
}

// Condition is a tree of property filters: one filter, or several conditions (contract: api.md, section 2.4).
type Condition struct {
	// At is the place of the filter or group in the JSON, such as series.0.properties.1.
	At string `json:"-"`
	// Filter is the leaf's filter; nil for a group.
	Filter *Property `json:"filter,omitempty"`
	// Or reports whether one member of a group is enough. An empty group is true.
	Or  bool        `json:"or,omitempty"`
	All []Condition `json:"all,omitempty"`
}

// Breakdowns split an insight by values of events (contract: api.md, section 2.5).
type Breakdowns struct {
	// At is the place of the breakdownFilter in the JSON.
	At string `json:"-"`
	// Fields are the properties to split by, in order; never empty.
	Fields []Breakdown `json:"fields"`
	// Multiple reports whether the field breakdowns was used, so that values are lists.
	Multiple bool `json:"multiple,omitempty"`
	// List reports whether the field breakdown held a list.
	List bool `json:"list,omitempty"`
	// Limit is how many values are distinguished; 0 for the default.
	Limit int `json:"limit,omitempty"`
	// HideOther leaves out the values beyond the limit.
	HideOther bool `json:"hide_other,omitempty"`
}

// Breakdown is one property to split by.
type Breakdown struct {
	// At is the place of the property's name in the JSON.
	At string `json:"-"`
	// Type is one of the types of a Property, except element and feature.
	Type string `json:"type"`
	// Property is the name of a property, a column or an expression; empty for cohorts.
	Property string `json:"property"`
	// Cohorts are the cohorts of a breakdown by cohort. Each that has members is one value.
	Cohorts []Cohort `json:"cohorts,omitempty"`
	// Group is the index of the group type; NoGroup if a breakdown by groups has none.
	Group int `json:"group_type_index,omitempty"`
	// Bins is how many equal ranges numbers are grouped into; 0 for none.
	Bins         int  `json:"bins,omitempty"`
	NormalizeURL bool `json:"normalize_url,omitempty"`
	// CleanPath applies the project's path cleaning rules to the values.
	CleanPath bool `json:"clean_path,omitempty"`
}

// Cohort is one cohort of a breakdown.
type Cohort struct {
	// At is its place in the JSON.
	At string `json:"-"`
	// ID is its number, or schema.Everybody for all people.
	ID int64 `json:"id"`
}

// operators are the operators of property filters (contract: api.md, section 2.4).
var operators = strings.Fields(`exact is_not icontains not_icontains regex not_regex gt gte lt lte is_set is_not_set is_date_exact
is_date_before is_date_after between not_between min max in not_in is_cleaned_path_exact flag_evaluates_to semver_eq semver_neq
semver_gt semver_gte semver_lt semver_lte semver_tilde semver_caret semver_wildcard icontains_multi not_icontains_multi starts_with
not_starts_with ends_with not_ends_with`)

// breakdownTypes are the supported types of breakdowns.
var breakdownTypes = []string{"cohort", "person", "event", "event_metadata", "group", "session", "element", "hogql"}

// maxConditions bounds the filters of a node, and maxBreakdowns the properties to split by.
const (
	maxConditions = 500
	maxBreakdowns = 3
)

// Common reads the shared fields of an insight. It does not close the object.
func (r *Reader) Common(o *Object) Common {
	c := Common{
		At:                 o.At.Attr,
		DateRange:          r.dateRange(o),
		FilterTestAccounts: o.Flag("filterTestAccounts"),
		Properties:         r.Properties(o, "properties"),
		Group:              r.GroupType(o, "aggregation_group_type_index"),
		Modifiers:          r.Modifiers(o),
	}
	if f, ok := o.Number("samplingFactor"); ok {
		if f < 0 || f > 1 {
			r.Add(o.Field("samplingFactor"), "value_error", "Input should be from 0 to 1")
		}
		c.Sampling = &f
	}
	o.Number("dataColorTheme")
	r.Tags(o)
	return c
}

func (r *Reader) dateRange(o *Object) DateRange {
	given, ok := o.Take("dateRange")
	if !ok {
		return DateRange{}
	}
	d := r.Object(given, o.Field("dateRange"))
	out := DateRange{
		From: d.Text("date_from"), To: d.Text("date_to"), Explicit: d.Flag("explicitDate"),
		ExcludeIncomplete: d.Flag("excludeIncompletePeriods"),
	}
	for i, item := range d.List("daysOfWeek") {
		at := d.Field("daysOfWeek").Below(strconv.Itoa(i), true)
		n, _ := item.(json.Number)
		day, ok := Whole(n)
		if !ok || day < 1 || day > 7 {
			r.Add(at, "value_error", "Input should be an integer from 1 to 7")
			continue
		}
		out.DaysOfWeek = append(out.DaysOfWeek, int(day))
	}
	slices.Sort(out.DaysOfWeek)
	out.DaysOfWeek = slices.Compact(out.DaysOfWeek)
	d.Close()
	return out
}

// Interval reads an interval; Day if none is given.
func (r *Reader) Interval(o *Object) Interval {
	return Interval(o.Choice("interval", string(Day), intervals...))
}

// Compare reads a compareFilter. It returns nil if it asks for no comparison.
func (r *Reader) Compare(o *Object) *Compare {
	out, on := r.CompareFilter(o)
	if !on {
		return nil
	}
	return &out
}

// CompareFilter reads a compareFilter: what to compare with, and whether it asks for that.
func (r *Reader) CompareFilter(o *Object) (out Compare, on bool) {
	given, ok := o.Take("compareFilter")
	if !ok {
		return out, false
	}
	c := r.Object(given, o.Field("compareFilter"))
	on, out.To, out.At = c.Flag("compare"), c.Text("compare_to"), c.Field("compare_to").Attr
	c.Close()
	return out, on
}

// BySession reads a calendarHeatmapFilter: whether people count only in the hours in which their sessions began; nil if it does not say.
func (r *Reader) BySession(o *Object) *bool {
	given, ok := o.Take("calendarHeatmapFilter")
	if !ok {
		return nil
	}
	f := r.Object(given, o.Field("calendarHeatmapFilter"))
	out := f.FlagOrNil("bucketBySessionStart")
	f.Display("dummy")
	f.Close()
	return out
}

// GroupType reads the index of a group type.
func (r *Reader) GroupType(o *Object, name string) *int {
	i, ok := o.Integer(name)
	if !ok {
		return nil
	}
	if i < 0 || i >= physical.GroupTypes {
		r.Add(o.Field(name), "value_error", groupTypeRange)
	}
	return &i
}

// Properties reads a list of property filters or a group of them; nil if it contains no filter.
func (r *Reader) Properties(o *Object, name string) *Condition {
	given, ok := o.Take(name)
	if !ok {
		return nil
	}
	count := 0
	out := r.condition(given, o.Field(name), &count)
	if len(out.All) == 0 && out.Filter == nil {
		return nil
	}
	return &out
}

// condition reads a list of filters, which is an AND, or a group, or one filter. count is how many filters have been read so far.
func (r *Reader) condition(v any, at Place, count *int) Condition {
	out := Condition{At: at.Attr}
	if *count++; *count > maxConditions {
		if *count == maxConditions+1 {
			r.Add(at, "value_error", fmt.Sprintf("There are more than %d property filters", maxConditions))
		}
		return out
	}
	switch v := v.(type) {
	case []any:
		out.All = r.conditions(v, at, count)
		return out
	case map[string]any:
		if _, group := v["values"]; group {
			g := r.Object(v, at)
			out.Or = g.Choice("type", "AND", "AND", "OR") == "OR"
			members := g.List("values")
			out.All = r.conditions(members, g.Field("values"), count)
			if out.Or && len(out.All) < len(members) { // an empty one is true
				out.All = nil
			}
			g.Close()
			return out
		}
	}
	p, ok := r.property(v, at)
	if !ok {
		return out
	}
	r.checkOperator(&p, at)
	out.Filter = &p
	return out
}

// checkOperator refuses an unknown operator.
func (r *Reader) checkOperator(p *Property, at Place) {
	if p.Operator != "" && !slices.Contains(operators, p.Operator) {
		r.Near(at.Below("operator", true), "enum", "Input should be "+oneOf(operators), p.Operator, operators)
	}
}

// conditions reads the members of a list or group, and leaves out empty ones.
func (r *Reader) conditions(list []any, at Place, count *int) []Condition {
	var out []Condition
	for i, item := range list {
		if c := r.condition(item, at.Below(strconv.Itoa(i), true), count); c.Filter != nil || len(c.All) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// Breakdowns reads a breakdownFilter. It returns nil if it asks for no breakdown.
func (r *Reader) Breakdowns(o *Object) *Breakdowns {
	given, ok := o.Take("breakdownFilter")
	if !ok {
		return nil
	}
	return r.breakdownFilter(given, o.Field("breakdownFilter"))
}

func (r *Reader) breakdownFilter(v any, at Place) *Breakdowns {
	b := r.Object(v, at)
	out := &Breakdowns{At: at.Attr, HideOther: b.Flag("breakdown_hide_other_aggregation")}
	if limit, ok := b.Integer("breakdown_limit"); ok {
		if limit < 1 {
			r.Add(b.Field("breakdown_limit"), "greater_than", "Input should be greater than 0")
		}
		out.Limit = limit
	}
	single := Breakdown{
		Type:         b.Choice("breakdown_type", "event", breakdownTypes...),
		NormalizeURL: b.Flag("breakdown_normalize_url"),
		Bins:         r.Bins(b, "breakdown_histogram_bin_count"),
	}
	single.Group = r.groupOf(b, single.Type, "breakdown_group_type_index")
	clean := b.Flag("breakdown_path_cleaning")
	if value, ok := b.Take("breakdown"); ok {
		items, list := value.([]any)
		if !list {
			items = []any{value}
		}
		out.List = list
		for i, item := range items {
			field := b.Field("breakdown")
			if list {
				field = field.Below(strconv.Itoa(i), true)
			}
			one := single
			one.At = field.Attr
			switch {
			case one.Type != CohortType:
				one.Property = r.breakdownName(item, field)
			case i == 0:
				one.At, one.Cohorts = b.Field("breakdown").Attr, r.cohorts(items, b.Field("breakdown"), list)
			default:
				continue // all cohorts of a list are values of one field
			}
			out.Fields = append(out.Fields, one)
		}
	}
	if several := b.List("breakdowns"); len(several) > 0 {
		if len(several) > maxBreakdowns {
			r.Add(b.Field("breakdowns"), "too_long", fmt.Sprintf("List should have at most %d items after validation, not %d", maxBreakdowns, len(several)))
		}
		out.Fields, out.Multiple, out.List = nil, true, false
		for i, item := range several {
			out.Fields = append(out.Fields, r.breakdown(item, b.Field("breakdowns").Below(strconv.Itoa(i), true)))
		}
	}
	b.Close()
	if len(out.Fields) == 0 {
		return nil
	}
	for i := range out.Fields {
		field := &out.Fields[i]
		field.CleanPath = clean
		if field.Type == CohortType {
			field.Bins = 0 // ids are not numbers to group into ranges
		}
	}
	return out
}

// NoGroup stands for the group type of a breakdown or filter that needs one but names none. Such an insight can be saved.
const NoGroup = -1

// groupOf reads the index of the group type of a breakdown.
func (r *Reader) groupOf(o *Object, breakdownType, name string) int {
	index := r.GroupType(o, name)
	switch {
	case index != nil:
		return *index
	case breakdownType == "group":
		return NoGroup
	}
	return 0
}

// breakdown reads one item of the field breakdowns.
func (r *Reader) breakdown(v any, at Place) Breakdown {
	o := r.Object(v, at)
	out := Breakdown{
		At:           o.Field("property").Attr,
		Type:         o.Choice("type", "event", breakdownTypes...),
		Bins:         r.Bins(o, "histogram_bin_count"),
		NormalizeURL: o.Flag("normalize_url"),
	}
	out.Group = r.groupOf(o, out.Type, "group_type_index")
	if property, ok := o.Take("property"); ok {
		if out.Type == CohortType {
			out.Cohorts = r.cohorts([]any{property}, o.Field("property"), false)
		} else {
			out.Property = r.breakdownName(property, o.Field("property"))
		}
	} else if o.Given != nil {
		r.Add(o.Field("property"), "missing", "Field required")
	}
	o.Close()
	return out
}

// Echo returns the breakdownFilter in the API's form.
func (b *Breakdowns) Echo() map[string]any {
	out := map[string]any{}
	if b.Limit > 0 {
		out["breakdown_limit"] = b.Limit
	}
	if b.HideOther {
		out["breakdown_hide_other_aggregation"] = true
	}
	if b.Fields[0].CleanPath { // of all fields
		out["breakdown_path_cleaning"] = true
	}
	if b.Multiple {
		items := make([]map[string]any, len(b.Fields))
		for i := range b.Fields {
			items[i] = b.Fields[i].echo("")
			items[i]["property"] = b.Fields[i].names()[0]
		}
		out["breakdowns"] = items
		return out
	}
	var names []any
	for i := range b.Fields {
		names = append(names, b.Fields[i].names()...)
	}
	out["breakdown"] = names
	if !b.List {
		out["breakdown"] = names[0]
	}
	maps.Copy(out, b.Fields[0].echo("breakdown_")) // all fields are alike
	return out
}

// echo returns what the API says about a property besides its name, in fields with a prefix.
func (b *Breakdown) echo(prefix string) map[string]any {
	out := map[string]any{prefix + "type": b.Type}
	if b.Type == "group" && b.Group != NoGroup {
		out[prefix+"group_type_index"] = b.Group
	}
	if b.Bins > 0 {
		out[prefix+"histogram_bin_count"] = b.Bins
	}
	if b.NormalizeURL {
		out[prefix+"normalize_url"] = true
	}
	return out
}

// names returns the name of the property, or the cohorts by number, all people as "all".
func (b *Breakdown) names() []any {
	if len(b.Cohorts) == 0 {
		return []any{b.Property}
	}
	out := make([]any, len(b.Cohorts))
	for i, c := range b.Cohorts {
		out[i] = c.ID
		if c.ID == schema.Everybody {
			out[i] = "all"
		}
	}
	return out
}

// breakdownName reads the name of a property.
func (r *Reader) breakdownName(v any, at Place) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	r.Add(at, "string_type", "Input should be a valid string")
	return ""
}

// maxBins bounds the ranges of a histogram.
const maxBins = 1000

func (r *Reader) Bins(o *Object, name string) int {
	n, ok := o.Integer(name)
	if ok && (n < 1 || n > maxBins) {
		r.Add(o.Field(name), "value_error", fmt.Sprintf("Input should be from 1 to %d", maxBins))
	}
	return n
}

// Canonical returns a node's fields as JSON, starting with its kind.
func Canonical(kind string, node any) []byte {
	out, err := json.Marshal(node)
	if err != nil {
		panic(fmt.Sprintf("BUG: a parsed query cannot be written as JSON: %v", err))
	}
	return append([]byte(`{"kind":"`+kind+`","node":`), append(out, '}')...)
}

// NoTarget refuses a PostHog field that counts something other than people or groups.
func (r *Reader) NoTarget(o *Object) {
	if target := o.Flag("customAggregationTarget"); target {
		r.Add(o.Field("customAggregationTarget"), "value_error", "Custom aggregation targets are not supported")
	}
}

// maxExpressions bounds the lists of expressions of a node.
const maxExpressions = 100

// Texts reads a list of strings; nil if there is none.
func (r *Reader) Texts(o *Object, name string) []string {
	list := o.List(name)
	if len(list) > maxExpressions {
		r.Add(o.Field(name), "too_long", fmt.Sprintf("List should have at most %d items after validation, not %d", maxExpressions, len(list)))
		return nil
	}
	var out []string
	for i, item := range list {
		text, ok := item.(string)
		if !ok {
			r.Add(o.Field(name).Below(strconv.Itoa(i), true), "string_type", "Input should be a valid string")
		}
		out = append(out, text)
	}
	return out
}

// Displays are the chart types, as the API names them.
var Displays = strings.Fields(`Auto ActionsLineGraph ActionsBar ActionsUnstackedBar ActionsStackedBar ActionsAreaGraph
ActionsLineGraphCumulative BoldNumber Metric ActionsPie ActionsDonut ActionsProportionBar ActionsBarValue ActionsTable WorldMap
CalendarHeatmap TwoDimensionalHeatmap BoxPlot SlopeGraph ScatterPlot`)
