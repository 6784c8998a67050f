package query

import (
	"cmp"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
)

// Overrides are filters that a request applies to a stored or given insight (contract: api.md, section 2.4, DashboardFilter).
type Overrides struct {
	DateFrom, DateTo   string
	ExplicitDate       *bool
	Properties         *Condition
	Breakdowns         *Breakdowns
	NoBreakdown        bool     // an empty breakdown filter removes the insight's own
	Interval           Interval // empty for the insight's own
	FilterTestAccounts *bool
	Compare            *Compare // what to compare with; nil for the insight's own comparison
	Compared           bool     // whether to compare, if Compare is not nil
}

// ParseOverrides parses a filters_override. Mistakes are a *diag.Error, a ParseError that lists all of them.
func ParseOverrides(raw []byte) (*Overrides, error) {
	r := &Reader{}
	out, err := r.overrides(raw)
	return out, cmp.Or(err, r.err())
}

// HogQL reports whether the overrides contain an expression: a property filter or a breakdown of type hogql.
func (ov *Overrides) HogQL() bool {
	if ov.Breakdowns != nil && slices.ContainsFunc(ov.Breakdowns.Fields, func(b Breakdown) bool { return b.Type == "hogql" }) {
		return true
	}
	return ov.Properties.HogQL()
}

// HogQL reports whether a filter of the condition is an expression, or filters events by one. It is false for nil.
func (c *Condition) HogQL() bool {
	if c == nil {
		return false
	}
	isHogQL := func(p filter.Property) bool { return p.Type == "hogql" }
	if c.Filter != nil {
		return isHogQL(*c.Filter) || c.Filter.Behavior != nil && slices.ContainsFunc(c.Filter.Behavior.Filters, isHogQL)
	}
	return slices.ContainsFunc(c.All, func(member Condition) bool { return member.HogQL() })
}

// ParseRunOverrides is ParseOverrides for the run of an endpoint, which reports the first mistake with its field (contract: api.md, section 5.7).
func ParseRunOverrides(raw []byte) (*Overrides, error) {
	r := &Reader{}
	out, err := r.overrides(raw)
	return out, cmp.Or(err, r.firstErr())
}

func (r *Reader) overrides(raw []byte) (*Overrides, error) {
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	const name = "filters_override"
	o := r.Object(v, Place{path: name, Attr: name})
	out := &Overrides{DateFrom: o.Text("date_from"), DateTo: o.Text("date_to"), Properties: r.Properties(o, "properties")}
	out.ExplicitDate, out.FilterTestAccounts = o.FlagOrNil("explicitDate"), o.FlagOrNil("filterTestAccounts")
	if given, ok := o.Take("breakdown_filter"); ok {
		out.Breakdowns = r.breakdownFilter(given, o.Field("breakdown_filter"))
		out.NoBreakdown = out.Breakdowns == nil
	}
	if _, ok := o.Take("interval"); ok {
		out.Interval = r.Interval(o)
	}
	if _, ok := o.Take("compareFilter"); ok {
		compare, on := r.CompareFilter(o)
		out.Compare, out.Compared = &compare, on
	}
	o.Close()
	return out, nil
}

func (o *Object) FlagOrNil(name string) *bool {
	if _, ok := o.Take(name); !ok {
		return nil
	}
	b := o.Flag(name)
	return &b
}

// Apply returns the insight with the overrides applied: properties are added to its own, either date replaces both, a breakdown replaces its own. n
// is not modified. A breakdown or interval has no effect on kinds without one.
func (ov *Overrides) Apply(n Insight) Insight {
	out := n.Clone()
	parts := out.Parts()
	if ov.DateFrom != "" || ov.DateTo != "" {
		parts.DateRange.From, parts.DateRange.To = ov.DateFrom, ov.DateTo
		parts.DateRange.FromAt, parts.DateRange.ToAt = "filters_override.date_from", "filters_override.date_to"
		parts.DateRange.Explicit = false
	}
	if ov.ExplicitDate != nil {
		parts.DateRange.Explicit = *ov.ExplicitDate
	}
	parts.Properties = Both(parts.Properties, ov.Properties)
	if (ov.Breakdowns != nil || ov.NoBreakdown) && parts.Breakdowns != nil {
		*parts.Breakdowns = ov.Breakdowns
	}
	if ov.Interval != "" && parts.Interval != nil {
		*parts.Interval = ov.Interval
	}
	if ov.FilterTestAccounts != nil {
		parts.FilterTestAccounts = *ov.FilterTestAccounts
	}
	if parts = out.Parts(); parts.Compare != nil { // they may depend on the dates
		ov.compare(parts)
	}
	return out
}

// compare applies the comparison. There is nothing before all of time to compare with.
func (ov *Overrides) compare(parts Parts) {
	switch {
	case parts.DateRange.From == "all" && (ov.DateFrom == "all" || ov.Compare != nil):
		*parts.Compare = nil
	case ov.Compare != nil && (ov.Compared || parts.Compared != nil):
		*parts.Compare = ov.Compare
	case ov.Compare != nil:
		*parts.Compare = nil
	case parts.Compared != nil:
		*parts.Compare = parts.Compared
	}
}

// Overridable is a node, neither an insight nor SQL, that overrides can be applied to: one about an insight, or a list of events.
type Overridable interface {
	Node
	// Overridden returns the node with overrides applied to it, or to what it is about; nil if there is nothing to apply them to. It does not
	// modify the node. The error is a *diag.Error.
	Overridden(ov *Overrides) (Node, error)
}

// EventLister is an Overridable that lists events.
type EventLister interface {
	Overridable
	// Filters returns the condition that properties are added to; nil for none.
	Filters() *Condition
}

// ApplyTo applies the overrides to a node of any kind: to an insight or SQL, or to the one whose actors the node asks for. It returns nil
// for a node that takes none, and does not modify n. The error is a *diag.Error.
func (ov *Overrides) ApplyTo(n Node) (Node, error) {
	switch n := n.(type) {
	case Insight:
		return ov.Apply(n), nil
	case *HogQL:
		q, err := ov.ApplyHogQL(n)
		if err != nil {
			return nil, err // not a nil *HogQL
		}
		return q, nil
	case Overridable:
		return n.Overridden(ov)
	}
	return nil, nil
}

// TakesOverrides reports whether overrides can be applied to a node.
func TakesOverrides(n Node) bool {
	over, err := new(Overrides).ApplyTo(n)
	return over != nil || err != nil
}

// Both joins two conditions by AND; either may be nil.
func Both(a, b *Condition) *Condition {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return &Condition{At: a.At, All: []Condition{*a, *b}}
}

// Echo returns the property filters of a condition in the API's form.
func (c *Condition) Echo() any {
	switch {
	case c == nil:
		return []any{}
	case c.Filter != nil && c.Filter.Behavior != nil:
		return echoBehavior(c.Filter)
	case c.Filter != nil:
		out := map[string]any{"type": c.Filter.Type, "key": c.Filter.Key}
		if c.Filter.Operator != "" {
			out["operator"] = c.Filter.Operator
		}
		if c.Filter.Value != nil {
			out["value"] = c.Filter.Value
		}
		if c.Filter.Type == "group" && c.Filter.Group != NoGroup {
			out["group_type_index"] = c.Filter.Group
		}
		return out
	}
	members := make([]any, len(c.All))
	for i := range c.All {
		members[i] = c.All[i].Echo()
	}
	word := "AND"
	if c.Or {
		word = "OR"
	}
	return map[string]any{"type": word, "values": members}
}
