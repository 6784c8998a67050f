package execution

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/querylog"
)

func TestQueryLog(t *testing.T) {
	t.Parallel()
	var l queryLog
	add := func(project int64, id, text string, age time.Duration) {
		l.add(&querylog.Query{Project: project, Name: id, Text: text, Start: noon.Add(-age)})
	}
	texts := func(project int64, id string) []string {
		var out []string
		for _, q := range l.Find(project, id, noon) {
			out = append(out, q.Text)
		}
		return out
	}
	add(1, "a", "first", time.Hour)
	add(1, "b", "other", time.Hour)
	add(1, "a", "second", 0)
	add(1, "old", "of yesterday", queryLogged)
	add(2, "a", "another project's", 0)
	for _, tt := range []struct {
		project int64
		id      string
		want    []string
	}{{1, "a", []string{"first", "second"}}, {2, "a", []string{"another project's"}}, {1, "old", nil}, {3, "a", nil}} {
		if diff := cmp.Diff(tt.want, texts(tt.project, tt.id)); diff != "" {
			t.Errorf("find(%d, %s) (-want +got):\n%s", tt.project, tt.id, diff)
		}
	}
	for i := range queriesOfProject - 3 {
		add(1, fmt.Sprint(i), "", 0)
	}
	if got := texts(1, "a"); !slices.Equal(got, []string{"second"}) {
		t.Errorf("of a full project's first query there is %q", got)
	}
}

// TestQueryLogIsBounded: if there are too many queries, the project with the most loses one.
func TestQueryLogIsBounded(t *testing.T) {
	t.Parallel()
	var l queryLog
	l.add(&querylog.Query{Project: 1, Name: "only", Start: noon})
	for i := range 2 * queriesOfAll {
		l.add(&querylog.Query{Project: int64(2 + i%100), Name: "x", Start: noon})
	}
	held := 0
	for _, queries := range l.byProject {
		held += len(queries)
	}
	if held != queriesOfAll || l.count != held {
		t.Errorf("%d queries are held and %d counted, want %d", held, l.count, queriesOfAll)
	}
	if len(l.Find(1, "only", noon)) != 1 {
		t.Error("the project with one query has lost it")
	}
}

// TestLoggedQueries: of more queries with a name than are shown, the newest are.
func TestLoggedQueries(t *testing.T) {
	t.Parallel()
	e := &Executor{Runs: NewRuns()}
	for i := range QueryLogRows + 2 {
		e.Runs.Queries.add(&querylog.Query{Project: 1, Name: "x", Text: fmt.Sprint(i), Start: noon.Add(time.Duration(i) * time.Second)})
	}
	found, more, err := e.LoggedQueries(t.Context(), 1, "x", noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != QueryLogRows || !more || found[0].Text != "2" || found[len(found)-1].Text != fmt.Sprint(QueryLogRows+1) {
		t.Errorf("there are %d queries, from %s to %s, and more: %t", len(found), found[0].Text, found[len(found)-1].Text, more)
	}
}
