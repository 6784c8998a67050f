package hogql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// checkMistake fails unless err is a mistake with a place in the text.
func checkMistake(t *testing.T, text string, err error) {
	t.Helper()
	mistake, ok := errors.AsType[*diag.Error](err)
	if !ok {
		t.Fatalf("a %T for %q: %v", err, text, err)
	}
	if mistake.Code != diag.SyntaxError && mistake.Code != diag.QueryError || mistake.Detail == "" {
		t.Fatalf("mistake %+v for %q", mistake, text)
	}
	if s := mistake.Span; s.Start < 0 || s.End < s.Start || s.End > len(text) {
		t.Fatalf("span %v is not in %q", s, text)
	}
}

// checkPrint fails unless printing q and parsing that gives the same tree, and the same text again.
func checkPrint(t *testing.T, text string, q hogql.Query) {
	t.Helper()
	printed := hogql.Print(q)
	again, err := hogql.Parse(printed)
	if err != nil {
		t.Fatalf("Parse(%q), printed for %q: %v", printed, text, err)
	}
	if diff := cmp.Diff(q, again, sameTree); diff != "" {
		t.Fatalf("%q became %q, another tree (-first +again):\n%s", text, printed, diff)
	}
	if second := hogql.Print(again); second != printed {
		t.Fatalf("%q became %q and then %q", text, printed, second)
	}
}

// escapedBytes are texts whose mistakes quote a long text that is not UTF-8.
func escapedBytes() []string {
	name := strings.Repeat(`\x80`, 41) + "%"
	return []string{"select 1 as '" + name + "'", "<HogQLQuery query='select 1 as `" + name + "`' />", `select "` + name + `" from events`}
}

func FuzzParse(f *testing.F) {
	for _, text := range escapedBytes() {
		f.Add(text)
	}
	for _, tt := range statements {
		f.Add(tt.in)
	}
	for _, tt := range mistakes {
		f.Add(tt.in)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := hogql.Parse(text)
		if err != nil {
			checkMistake(t, text, err)
			return
		}
		checkPrint(t, text, q)
	})
}

func FuzzParseExpr(f *testing.F) {
	for _, text := range []string{"1", "-a.b['c']::int", "x -> {y}", "f'{a}'", "a between b and c", "(a, b) -> 1", "<a b='c' d={1}>e{f}<g/></a>", `<HogQLQuery query='select \'a\'' />`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := hogql.ParseExpr(text)
		if err != nil {
			checkMistake(t, text, err)
			return
		}
		printed := hogql.PrintExpr(e)
		again, err := hogql.ParseExpr(printed)
		if err != nil {
			t.Fatalf("ParseExpr(%q), printed for %q: %v", printed, text, err)
		}
		if diff := cmp.Diff(e, again, sameTree); diff != "" {
			t.Fatalf("%q became %q, another tree (-first +again):\n%s", text, printed, diff)
		}
		hogql.FunctionForm(e)
	})
}

// vocabulary is what FuzzPrint builds its queries from.
var vocabulary = strings.Fields(`
	select select from from where and or not in ( ) ( ) ( ) [ ] { } , , , . . ?. ? : :: -> + - * / % || ?? = == != < <= > >=
	~ =~ !~ ~* =~* !~* a b c t.a t.1 x.* f( g( 1 2 0.5 -1 1e3 0x1F 'x' 'it''s' "q" f' ' null true inf nan as as between like
	ilike is distinct null cohort case when then else end cast( int double precision interval day days '2\ days' date
	timestamp trim(both substring( for columns( exclude replace lambda array group by all cube( rollup( grouping sets with
	totals having window w over partition order asc desc nulls first last collate fill to step limit offset ties union
	intersect except name recursive materialized join left right inner full outer cross any asof semi anti using on sample
	prewhere rows range preceding following current row unbounded filter (where values final top settings format ; # % \
	<b> </b> <b <HogQLQuery query='select(1)' /> /> > </ *columns( ignore nulls interpolate natural .-1`)

// FuzzPrint builds queries from words, which reach deeper into the grammar than changes of single letters.
func FuzzPrint(f *testing.F) {
	place := make(map[string]byte)
	for i, w := range vocabulary {
		place[w] = byte(i)
	}
	for _, text := range []string{
		"select a , b as c from t.a where a = 1 and not b limit 1",
		"select f( a , x.* ) over ( partition by a order by b desc rows 2 preceding ) from ( select 1 union all select 2 ) as t.a",
		"with a as ( select 1 ) select case when a then b else c end , interval 1 day , { a } , { a : b } , a ? b : c from a any join b using c",
	} {
		var data []byte
		for w := range strings.FieldsSeq(text) {
			data = append(data, place[w])
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var b strings.Builder
		for i, c := range data {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(vocabulary[int(c)%len(vocabulary)])
		}
		text := b.String()
		q, err := hogql.Parse(text)
		if err != nil {
			checkMistake(t, text, err)
			return
		}
		checkPrint(t, text, q)
	})
}
