// Package insighttest is what the tests of the insights share: a time and a project, nodes read from JSON, and answers shaped from literal
// rows.
package insighttest

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Now is the time that relative dates refer to, a Thursday.
var Now = time.Date(2020, time.January, 9, 15, 30, 0, 0, time.UTC)

// World is a project in UTC whose weeks begin on Sunday, with the cohorts 7, paying, and 8, trial.
func World() *insight.World {
	cohorts := schema.NewCohorts([]schema.Cohort{{ID: 7, Name: "paying", Version: 3}, {ID: 8, Name: "trial", Version: 3}}, false)
	return &insight.World{Database: &schema.Database{Project: 7, Cohorts: cohorts}, Now: Now}
}

// Node reads a query of one kind.
func Node[Q query.Node](tb testing.TB, text string) Q {
	tb.Helper()
	n, err := compiler.Parse([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	q, ok := n.(Q)
	if !ok {
		tb.Fatalf("%s gives a %T", text, n)
	}
	return q
}

// Shape turns rows, each a JSON array, into the answer.
func Shape(tb testing.TB, built *insight.Built, rows ...string) *insight.Answer {
	tb.Helper()
	raw := make([][]byte, len(rows))
	for i, row := range rows {
		raw[i] = []byte(row)
	}
	answer, err := built.Shape(slices.Values(raw))
	if err != nil {
		tb.Fatal(err)
	}
	return answer
}

// JSON reads JSON for comparisons.
func JSON(tb testing.TB, text string) any {
	tb.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		tb.Fatalf("%v in %s", err, text)
	}
	return v
}

// Mistake returns the author's mistake in err, led by its field. Any other outcome ends the test.
func Mistake(tb testing.TB, err error) string {
	tb.Helper()
	var mistake *diag.Error
	if !errors.As(err, &mistake) {
		tb.Fatalf("got %v, want a mistake of the author", err)
	}
	return mistake.Error()
}
