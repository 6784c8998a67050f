package lifecycle

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// A piece of a lifecycle is a bucket. Its statuses depend on the actors that were active in it and in the bucket before, and on when these
// were created. They depend on other buckets in one case only: an actor that was created in the bucket, but active long before it, is not
// new. So each piece also reports actors that were active in it and created at least two buckets later, with the first bucket in which one
// of them was created. If that is within the range, the pieces do not contain the answer.
//
//	place, status, actors
//	place, early, the number of the first bucket in which such an actor was created

// early marks the row of actors that were active before they were created; it is not a status.
const early = earliest + 1

// pieceChanges is like changes, but does not look further back than the bucket before.
const pieceChanges = `SELECT arrayJoin(arrayConcat(
		arrayMap((b, before) -> (multiIf(before = b - 1, {returning}, b = born, {new}, {resurrecting}), b, 0),
			active, arrayPushFront(arrayPopBack(active), {nowhere})),
		arrayMap(b -> ({dormant}, b + 1, 0),
			arrayFilter((b, after) -> after != b + 1, active, arrayPushBack(arrayPopFront(active), {nowhere}))),
		arrayMap(b -> ({early}, b, born), arrayFilter(b -> born > b + 1, active))
	)) AS transition
	FROM (
		SELECT {actor} AS actor, arrayMap(b -> {number}, arraySort(groupUniqArray({bucket}))) AS active
		FROM {events} WHERE {condition} GROUP BY actor
	) AS seen LEFT JOIN {made} AS made ON seen.actor = made.actor`

const pieceCount = `SELECT {place} AS place, transition.1 AS status, if(status = {early}, min(transition.3), count()) AS actors FROM {changes}
	WHERE place >= 0 GROUP BY place, status`

// pieceOne is pieceCount for a single piece.
const pieceOne = `SELECT {place} AS place, transition.1 AS status, if(status = {early}, min(transition.3), count()) AS actors FROM {changes}
	WHERE transition.2 = {number} GROUP BY status`

const pieceMade = `SELECT id AS actor, {born} AS born FROM persons WHERE created_at >= {lower}`

// pieces is a lifecycle cut into pieces of time. The first piece is the bucket before the range.
type pieces struct {
	q         *Query
	dates     insight.Range
	parts     *insight.Parts
	numbers   []int64 // the number of each piece's bucket
	condition hogql.Expr
}

// inPieces returns a lifecycle in pieces; nil if it begins with the earliest event, counts groups or depends on its range, or if it cannot be cut.
func inPieces(q *Query, w *insight.World, dates *insight.Range) *insight.Pieces {
	if dates.All || q.Group != nil || q.InRange {
		return nil
	}
	world := *w
	world.Spend = nil // what is built is about as large as the lifecycle itself, which was within the budget
	condition, err := conditions(q, &world)
	if err != nil {
		panic("BUG: what was read of a lifecycle cannot be read again: " + err.Error())
	}
	whole := *dates
	whole.From = dates.Step(dates.Floor(dates.From), -1)
	whole.Lower, whole.To = whole.From, dates.Next(dates.Floor(dates.To)).Add(-time.Microsecond)
	parts, ok := w.CutUp([]insight.Range{whole})
	if !ok || dates.To.Before(dates.From) {
		return nil
	}
	p := &pieces{q: q, dates: *dates, parts: parts, condition: condition}
	for i := range parts.Pieces {
		start := parts.Pieces[i].From
		parts.Pieces[i].Reach = dates.Step(start, -1)
		p.numbers = append(p.numbers, numberOf(dates.Interval, start))
		if i > 0 && (p.numbers[i] != p.numbers[i-1]+1 || !parts.Pieces[i].Reach.Equal(parts.Pieces[i-1].From)) {
			return nil // a clock change
		}
	}
	w.Keep(parts.Pieces)
	return &insight.Pieces{Each: p.ask(nil), Created: true, Pieces: parts.Pieces, Query: p.query, Rows: p.rows}
}

func (p *pieces) query(places []int) hogql.Query { return p.ask(slices.Sorted(slices.Values(places))) }

// ask returns the query for the rows of some pieces; without places, the query for the rows of any piece, without the bounds of its time.
func (p *pieces) ask(places []int) hogql.Query {
	timestamp := insight.Field("timestamp")
	bounds := p.condition
	lower := insight.FirstTime
	template, values := pieceOne, map[string]any{"place": 0, "number": 0}
	if len(places) > 0 {
		lower = p.parts.Pieces[places[0]].From
		bounds = insight.And(p.within(places), bounds)
		values["place"], values["number"] = places[0], p.numbers[places[0]]
	}
	if len(places) > 1 {
		numbers, each := make([]any, len(places)), make([]any, len(places))
		for i, place := range places {
			numbers[i], each[i] = p.numbers[place], int64(place)
		}
		template = pieceCount
		values["place"] = insight.Call("transform", &hogql.Element{X: insight.Field("transition"), N: 2}, insight.Const(numbers), insight.Const(each), insight.Const(int64(-1)))
	}
	actor, named := insight.Actor(nil)
	values["early"] = early
	values["changes"] = insight.From(insight.Template(pieceChanges, map[string]any{
		"new": isNew, "returning": isReturning, "resurrecting": isResurrecting, "dormant": isDormant, "nowhere": noBucket, "early": early,
		"actor": actor, "number": number(p.q.Interval, insight.Field("b")), "bucket": p.dates.Bucket(timestamp),
		"events": insight.Events(&p.q.Common), "condition": insight.And(bounds, named),
		"made": insight.Template(pieceMade, map[string]any{
			"born": number(p.q.Interval, p.dates.Bucket(insight.Field("created_at"))), "lower": lower,
		}),
	}))
	return insight.Template(template, values)
}

// within returns the condition that an event is in one of the pieces or in the bucket before it.
func (p *pieces) within(places []int) hogql.Expr {
	reach := *p.parts
	reach.Pieces = slices.Clone(p.parts.Pieces)
	for i := range reach.Pieces {
		reach.Pieces[i].From = reach.Pieces[i].Reach
	}
	return reach.Within(insight.Field("timestamp"), places)
}

// rows builds the rows of the whole lifecycle.
func (p *pieces) rows(found [][][]byte) (iter.Seq[[]byte], bool, error) {
	last := p.numbers[len(p.numbers)-1]
	var out [][]byte
	for place, rows := range found {
		for _, raw := range rows {
			var cells [2]int64
			if err := json.Unmarshal(raw, &cells); err != nil {
				return nil, false, fmt.Errorf("reading a row of a piece of a lifecycle: %w", err)
			}
			status, n := cells[0], cells[1]
			switch {
			case status == early:
				if n <= last {
					return nil, false, nil
				}
			case place > 0: // the first one is before the range
				out = append(out, fmt.Appendf(nil, "[%d,%d,%d]", status, p.numbers[place], n))
			}
		}
	}
	return slices.Values(out), true, nil
}
