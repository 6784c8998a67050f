package execution

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// maxExplained is how many bytes of ClickHouse's plan an answer shows at most.
const maxExplained = 1 << 20

// Explain asks ClickHouse for the plan of the query, line by line. It takes its turn like the query itself.
func (e *Executor) Explain(ctx context.Context, c *Caller, q *Query) (lines []string, shown Quotas, err error) {
	x := e.NewComputation(c, q)
	lines, err = x.explain(ctx)
	return lines, x.ShownQuotas(0, err), err
}

func (x *Computation) explain(ctx context.Context) ([]string, error) {
	compiled, err := x.compile(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	place, err := x.Admit(ctx, admission.Awaited, time.Now())
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	rows := cache.NewBuilder(cache.Limits{MaxBytes: maxExplained})
	q := x.compiledQuery(compiled, uuid.NewString(), nil)
	q.SQL, q.MaxBytes = "EXPLAIN "+q.SQL, maxExplained
	if _, err := x.warehouse().Query(ctx, place, q, sink{rows: rows}); err != nil {
		return nil, fmt.Errorf("asking for the plan of a query: %w", err)
	}
	lines := []string{}
	for row := range rows.Result().Rows() {
		var line [1]string
		if err := json.Unmarshal(row, &line); err != nil {
			return nil, fmt.Errorf("reading the plan of a query: %w", err)
		}
		lines = append(lines, line[0])
	}
	return lines, nil
}
