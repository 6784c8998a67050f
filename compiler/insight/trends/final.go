package trends

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// final combines the sources. Without a breakdown a row is
//
//	bucket, number…                  of the only source, without bucket for a total
//	source, bucket, [number…]        of several sources
//
// and with one it is
//
//	source, lane, place, [value…], [bucket…], [number…]
//
// where lane counts within the source, and place is the rank of the values within the lane, from 1; one past the limit is the rest. If the
// range begins with the earliest event, a row of source -1 has the time of that event.
func (b *builder) final() hogql.Query {
	if len(b.sources) == 0 {
		return insight.Template("select 1 where false", nil)
	}
	if !b.several() && !b.split() {
		return b.sources[0].stage
	}
	var members []hogql.Query
	for i, src := range b.sources {
		if b.split() {
			members = append(members, b.ranked(i, src))
		} else {
			members = append(members, b.flat(i, src))
		}
	}
	if b.periods[0].All {
		members = append(members, b.earliest())
	}
	return insight.Union(members...)
}

// flat returns the rows of one source, out of several, without a breakdown.
func (b *builder) flat(i int, src *source) hogql.Query {
	stage := src.stage
	out := *stage
	out.Columns = []hogql.Expr{insight.As(insight.Const(int64(i)), "source")}
	numbers := stage.Columns
	if src.keyed {
		out.Columns = append(out.Columns, stage.Columns[0])
		numbers = numbers[1:]
	} else {
		out.Columns = append(out.Columns, insight.As(insight.Const(int64(0)), bucketName))
	}
	points := &hogql.Array{}
	for _, number := range numbers {
		if named, ok := number.(*hogql.Alias); ok {
			number = named.X
		}
		points.Items = append(points.Items, float(number))
	}
	out.Columns = append(out.Columns, insight.As(points, "points"))
	return &out
}

func float(x hogql.Expr) hogql.Expr {
	return insight.Call("ifNull", insight.Call("toFloat", x), insight.Const(0.0))
}

// earliest returns the time of the first event of any series, and its bucket.
func (b *builder) earliest() hogql.Query {
	var names []plain
	for i := range b.q.Series {
		name, err := b.w.Named(&b.q.Series[i])
		if err != nil {
			panic("BUG: a series that was read cannot be read again: " + err.Error())
		}
		names = append(names, plain{condition: name})
	}
	r := &b.periods[0]
	where := insight.And(anyOf(names), r.Bounds())
	moment := insight.Call("min", insight.Field("timestamp"))
	bucket := insight.Const(int64(0))
	if !b.total() {
		bucket = r.Bucket(moment)
	}
	values := map[string]any{
		"events": insight.Events(&b.q.Common), "condition": insight.OrTrue(where), "bucket": bucket, "moment": float(insight.Call("toUnixTimestamp", moment)),
	}
	if b.split() {
		return insight.Template("select -1 as source, 0 as lane, 0 as place, [''] as breakdown, [{bucket}] as buckets, [{moment}] as points from {events} where {condition}", values)
	}
	return insight.Template("select -1 as source, {bucket} as bucket, [{moment}] as points from {events} where {condition}", values)
}

// ranked returns the rows of a source with a breakdown.
func (b *builder) ranked(i int, src *source) hogql.Query {
	stage := src.stage
	if b.bins() {
		stage = b.binned(src)
	}
	lanes := b.byLane(src, stage)
	return b.cut(i, src, lanes)
}

// byLane returns one row for each lane and each of its values, with arrays of buckets and points.
func (b *builder) byLane(src *source, stage *hogql.Select) *hogql.Select {
	values, shown := make([]hogql.Expr, len(b.values)), make([]hogql.Expr, len(b.values))
	for k := range b.values {
		values[k] = insight.Field(valueName(k))
		shown[k] = values[k]
		if src.uncut {
			shown[k] = insight.As(insight.CutBreakdown(insight.Field(wholeName(k))), valueName(k))
		}
	}
	inner := &hogql.Select{From: insight.From(stage), GroupBy: insight.GroupBy(values...)}
	arrays := func(c column) (buckets, points hogql.Expr) {
		bucket := insight.Const(int64(0))
		if src.keyed {
			bucket = insight.Field(bucketName)
		}
		number := float(insight.Field(numberName(c.index)))
		condition := b.counts(src, c)
		if condition == nil {
			return insight.Call("groupArray", bucket), insight.Call("groupArray", number)
		}
		return insight.Call("groupArrayIf", bucket, condition), insight.Call("groupArrayIf", number, condition)
	}
	if len(src.lanes) == 1 {
		buckets, points := arrays(src.lanes[0])
		inner.Columns = append(inner.Columns, insight.As(insight.Const(int64(0)), "lane"), insight.As(buckets, "buckets"), insight.As(points, "points"))
		inner.Columns = append(inner.Columns, shown...)
		return inner
	}
	all := &hogql.Array{}
	for i, c := range src.lanes {
		buckets, points := arrays(c)
		all.Items = append(all.Items, insight.Call("tuple", insight.Const(int64(i)), buckets, points))
	}
	inner.Columns = append(inner.Columns, insight.As(insight.Call("arrayJoin", all), "part"))
	inner.Columns = append(inner.Columns, shown...)
	part := func(n int) hogql.Expr { return &hogql.Element{X: insight.Field("part"), N: n} }
	outer := &hogql.Select{
		From: insight.From(inner), Where: insight.Call("notEmpty", part(2)),
		Columns: []hogql.Expr{insight.As(part(1), "lane"), insight.As(part(2), "buckets"), insight.As(part(3), "points")},
	}
	outer.Columns = append(outer.Columns, values...)
	return outer
}

// counts returns the condition that a row of a source belongs to a lane; nil if all do.
func (b *builder) counts(src *source, c column) hogql.Expr {
	if len(src.lanes) == 1 {
		return nil
	}
	name := numberName(c.index)
	if c.seen {
		name = seenName(c.index)
	}
	present := insight.Compare(insight.Field(name), hogql.Greater, insight.Const(int64(0)))
	if !src.keyed {
		return present
	}
	shared := false
	for _, other := range src.lanes {
		shared = shared || other.lane != c.lane && other.index == c.index
	}
	if !shared {
		return present
	}
	r := &b.periods[c.lane.period]
	return insight.And(present, &hogql.Between{
		X: insight.Field(bucketName), Low: r.KeyExpr(r.Floor(r.From)), High: r.KeyExpr(r.Floor(r.To)),
	})
}

// cut ranks the values of each lane and merges those past the limit.
func (b *builder) cut(i int, src *source, lanes *hogql.Select) hogql.Query {
	missing := make([]hogql.Expr, len(b.values))
	order := []*hogql.Order{{X: insight.Call("arraySum", insight.Field("points")), Desc: true}}
	shown := &hogql.Array{}
	for k := range b.values {
		name := valueName(k)
		missing[k] = insight.Eq(insight.Field(name), insight.Const(""))
		order = append(order, &hogql.Order{X: insight.Field(name)})
		shown.Items = append(shown.Items, insight.Call("any", insight.Field(name)))
	}
	if !b.total() {
		order = append([]*hogql.Order{{X: insight.Or(missing...)}}, order...)
	}
	ranking := *lanes
	if len(src.lanes) == 1 { // lanes groups by the values, so ranking them takes another SELECT
		ranking = hogql.Select{From: insight.From(lanes), Columns: []hogql.Expr{insight.Field("lane"), insight.Field("buckets"), insight.Field("points")}}
		for k := range b.values {
			ranking.Columns = append(ranking.Columns, insight.Field(valueName(k)))
		}
	} else {
		ranking.Columns = append([]hogql.Expr{}, lanes.Columns...)
	}
	ranking.Columns = append(ranking.Columns, insight.As(&hogql.Call{
		Name: "row_number", Over: &hogql.Window{PartitionBy: []hogql.Expr{insight.Field("lane")}, OrderBy: order},
	}, "position"))
	merged := insight.As(merge(src.merge), "merged")
	together := &hogql.Select{
		From: insight.From(&ranking),
		Columns: []hogql.Expr{
			insight.Field("lane"), insight.As(insight.Call("least", insight.Field("position"), insight.Const(int64(b.limit+1))), "place"),
			insight.As(shown, "breakdown"), merged,
		},
		GroupBy: insight.GroupBy(insight.Field("lane"), insight.Field("place")),
	}
	keys, points := parts(src.merge)
	return &hogql.Select{
		From: insight.From(together),
		Columns: []hogql.Expr{
			insight.As(insight.Const(int64(i)), "source"), insight.Field("lane"), insight.Field("place"), insight.Field("breakdown"),
			insight.As(keys, "buckets"), insight.As(points, "points"),
		},
	}
}

// merge returns the aggregate that merges the points of several values, bucket by bucket.
func merge(m merging) hogql.Expr {
	buckets, points := insight.Field("buckets"), insight.Field("points")
	if m == mergeAvg {
		return insight.Call("avgMap", insight.Call("mapFromArrays", buckets, points))
	}
	return insight.Call(string(m)+"Map", buckets, points)
}

// parts returns the buckets and points in the result of merge.
func parts(m merging) (buckets, points hogql.Expr) {
	merged := insight.Field("merged")
	if m == mergeAvg {
		return insight.Call("mapKeys", merged), insight.Call("mapValues", merged)
	}
	return &hogql.Element{X: merged, N: 1}, &hogql.Element{X: merged, N: 2}
}

// binned groups the numbers of histogram breakdowns into equal ranges between the least and the greatest number of the source.
func (b *builder) binned(src *source) *hogql.Select {
	ends := &hogql.Select{From: insight.From(src.stage)}
	cut := &hogql.Select{}
	out := &hogql.Select{}
	var keys []hogql.Expr
	keep := func(name string, key bool) {
		for _, s := range []*hogql.Select{ends, cut} {
			s.Columns = append(s.Columns, insight.Field(name))
		}
		if key {
			out.Columns = append(out.Columns, insight.Field(name))
			keys = append(keys, insight.Field(name))
		}
	}
	if src.keyed {
		keep(bucketName, true)
	}
	for k := range b.values {
		bins := b.q.Breakdowns.Fields[k].Bins
		if bins == 0 {
			keep(valueName(k), true)
			continue
		}
		x := insight.Field(valueName(k))
		low, high, text := "low_"+valueName(k), "high_"+valueName(k), "text_"+valueName(k)
		over := func(name string) hogql.Expr {
			return &hogql.Call{Name: name, Args: []hogql.Expr{x}, Over: &hogql.Window{}}
		}
		ends.Columns = append(ends.Columns, x, insight.As(over("min"), low), insight.As(over("max"), high))
		cut.Columns = append(cut.Columns, insight.As(bin(x, insight.Field(low), insight.Field(high), bins), text))
		out.Columns = append(out.Columns, insight.As(insight.Field(text), valueName(k)))
		keys = append(keys, insight.Field(text))
	}
	for _, c := range src.lanes {
		keep(numberName(c.index), false)
		out.Columns = append(out.Columns, insight.As(insight.Call(string(src.merge), insight.Field(numberName(c.index))), numberName(c.index)))
		if c.seen {
			keep(seenName(c.index), false)
			out.Columns = append(out.Columns, insight.As(insight.Call("sum", insight.Field(seenName(c.index))), seenName(c.index)))
		}
	}
	cut.From = insight.From(ends)
	out.From, out.GroupBy = insight.From(cut), insight.GroupBy(keys...)
	return out
}

// bin formats the range that contains x, such as [10,17.5], out of bins equal ranges between low and high. The last one ends a hundredth
// above high, so that it contains high. A missing x is in none.
func bin(x, low, high hogql.Expr, bins int) hogql.Expr {
	values := map[string]any{"x": x, "low": low, "high": high, "bins": int64(bins), "last": int64(bins - 1), "digits": int64(binDigits)}
	values["n"] = insight.TemplateExpr(
		"arrayCount(edge -> edge <= assumeNotNull({x}), arrayMap(i -> assumeNotNull({low}) + i * (assumeNotNull({high}) - assumeNotNull({low})) / {bins}, range({bins})))", values)
	return insight.TemplateExpr("if({x} is null, '', concat("+
		"'[', toString(round({low} + ({n} - 1) * ({high} - {low}) / {bins}, {digits})), ',', "+
		"toString(round(if({n} > {last}, {high} + 0.01, {low} + {n} * ({high} - {low}) / {bins}), {digits})), ']'))", values)
}

// binDigits is the number of decimals in the ends of ranges: enough for money and shares, and too few to show rounding errors.
const binDigits = 9
