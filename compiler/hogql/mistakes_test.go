package hogql_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// mistakes are texts that are not queries, with the mistake from Parse.
var mistakes = []struct{ in, want string }{
	// Whole texts.
	{"", "The query is empty"},
	{" \n", "The query is empty"},
	{"-- nothing", "The query is empty"},
	{"insert into events values (1)", "0:6: Unexpected 'insert', expected SELECT: there are no other statements"},
	{"DROP TABLE events", "0:4: Unexpected 'DROP', expected SELECT: there are no other statements"},
	{"explain select 1", "0:7: Unexpected 'explain', expected SELECT: there are no other statements"},
	{"values (1, 2)", "0:6: VALUES is not supported: write SELECT … UNION ALL SELECT …"},
	{"select 1; select 2", "10:16: Unexpected 'select', expected the end of the query"},
	{"select 1;;", "9:10: Unexpected ';', expected the end of the query"},
	{"select 1)", "8:9: Unexpected ')', expected the end of the query"},
	{"<a />", "1:2: <a /> is not a query: write <HogQLQuery query='…' />"},
	{"{a", "2:2: Unexpected end of the query, expected '}'"},
	{"{a} {b}", "4:5: Unexpected '{', expected the end of the query"},

	// Clauses.
	{"select", "6:6: Unexpected end of the query, expected an expression"},
	{"select from events", "7:11: Unexpected 'from', expected an expression"},
	{"select a from", "13:13: Unexpected end of the query, expected a table"},
	{"select a from where b", "14:19: Unexpected 'where', expected a table"},
	{"select a, , b", "10:11: Unexpected ',', expected an expression"},
	{"select a b c", "11:12: Unexpected 'c', expected the end of the query"},
	{"select a from t where", "21:21: Unexpected end of the query, expected an expression"},
	{"select a from t group a", "22:23: Unexpected 'a', expected BY"},
	{"select a from t order a", "22:23: Unexpected 'a', expected BY"},
	{"select a from t order by", "24:24: Unexpected end of the query, expected an expression"},
	{"select a from t limit", "21:21: Unexpected end of the query, expected an expression"},
	{"select a limit 1 where b", "17:22: Misplaced 'where': clauses come once each, in the order FROM with its joins, ARRAY JOIN, PREWHERE, WHERE, GROUP BY, HAVING, WINDOW, ORDER BY, LIMIT"},
	{"select a from t where b join c on d", "24:28: Misplaced 'join': clauses come once each, in the order FROM with its joins, ARRAY JOIN, PREWHERE, WHERE, GROUP BY, HAVING, WINDOW, ORDER BY, LIMIT"},
	{"select a from t where b where c", "24:29: Misplaced 'where': clauses come once each, in the order FROM with its joins, ARRAY JOIN, PREWHERE, WHERE, GROUP BY, HAVING, WINDOW, ORDER BY, LIMIT"},
	{"select 1 order by a nulls", "25:25: Unexpected end of the query, expected FIRST or LAST"},
	{"select 1 order by a collate x", "28:29: Unexpected 'x', expected a collation in quotes"},
	{"select 1 from t limit 1 by", "26:26: Unexpected end of the query, expected an expression"},
	{"select 1 from t sample a", "23:24: Unexpected 'a', expected a number"},
	{"select 1 from t sample 1/", "25:25: Unexpected end of the query, expected a number"},
	{"select 1 from t sample {a: 1}", "25:26: Unexpected ':', expected '}'"},
	{"select 1 from t group by grouping sets (a", "41:41: Unexpected end of the query, expected ',' or ')'"},
	{"select 1 from t group by cube(a) with cube", "38:42: WITH cube needs plain keys before it"},
	{"select 1 from t window w as a", "28:29: Unexpected 'a', expected '('"},

	// ClickHouse syntax that HogQL does not have.
	{"select a from t final", "16:21: The FINAL keyword is not supported in HogQL as it causes slow queries"},
	{"select a from t as e final", "21:26: The FINAL keyword is not supported in HogQL as it causes slow queries"},
	{"select a from t e final where 1", "18:23: The FINAL keyword is not supported in HogQL as it causes slow queries"},
	{"select a from t settings max_threads = 1", "16:24: SETTINGS is not supported"},
	{"select a from t where b settings max_threads = 1", "24:32: SETTINGS is not supported"},
	{"select a from t format JSON", "16:22: FORMAT is not supported: the answer's format is a matter of the request"},
	{"select a into outfile 'x'", "9:13: INTO OUTFILE is not supported"},
	{"select 1 union all select 2 format JSON", "28:34: FORMAT is not supported: the answer's format is a matter of the request"},
	{"(select 1) settings a = 1", "11:19: SETTINGS is not supported"},
	{"select a from t qualify b", "16:23: QUALIFY is not supported: put the window function into a subquery and filter outside"},
	{"select top 10 a from t", "7:10: TOP is not supported: write LIMIT at the end of the query"},
	{"select try_cast(a as int)", "7:15: TRY_CAST is not supported: toInt, toFloat and toDateTime give NULL for what they cannot read"},
	{"select a from (values (1)) as t", "15:21: VALUES is not supported: write SELECT … UNION ALL SELECT …"},
	{"select a from values (1, 2)", "14:20: VALUES is not supported: write (SELECT … UNION ALL SELECT …)"},
	{"select quantile(0.5) within group (order by a)", "21:27: WITHIN GROUP is not supported: write quantile(0.5)(x)"},
	{"select 1 intersect all select 2", "9:22: INTERSECT ALL is not supported"},
	{"select 1 except all select 2", "9:19: EXCEPT ALL is not supported"},
	{"select 1 from a inner semi join b on 1", "27:31: SEMI and ANTI JOIN are LEFT or RIGHT"},
	{"select 1 from a positional join b", "16:26: POSITIONAL JOIN is not supported"},
	{"select 1 from a pivot (x)", "16:21: PIVOT and UNPIVOT are not supported"},
	{"select #1", "7:8: Positional references such as #1 are not supported: name the column"},

	// WITH and set operators.
	{"with a select 1", "7:13: Unexpected 'select', expected AS and a name"},
	{"with a as select 1 select 2", "10:16: Unexpected 'select', expected a name"},
	{"with a as (select 1)", "20:20: Unexpected end of the query, expected ',' or SELECT"},
	{"select 1 union all", "18:18: Unexpected end of the query, expected SELECT"},
	{"select 1 union all 2", "19:20: Unexpected '2', expected SELECT"},
	{"select 1 union by name", "22:22: Unexpected end of the query, expected SELECT"},

	// Tables.
	{"select 1 array join a as b", "9:19: Using ARRAY JOIN without a FROM clause is not permitted"},
	{"select 1 from t array join a", "27:28: ARRAY JOIN arrays must have an alias"},
	{"select 1 from t array join a + 1 as b, c", "39:40: ARRAY JOIN arrays must have an alias"},
	{"select 1 from a join b", "22:22: Unexpected end of the query, expected ON or USING"},
	{"select 1 from a left b", "21:22: Unexpected 'b', expected JOIN"},
	{"select 1 from a left right join b on 1", "21:26: Unexpected 'right', expected JOIN after 'left'"},
	{"select 1 from a any cross join b", "20:25: Unexpected 'cross', expected JOIN after 'any'"},
	{"select 1 from a outer join b on 1", "16:21: Unexpected 'outer', expected JOIN"},
	{"select 1 from a join b on", "25:25: Unexpected end of the query, expected an expression"},
	{"select 1 from (select 1) (c)", "25:26: Only a table or subquery with an alias can be given names for its columns"},
	{"select 1 from a.b(1)", "14:17: Only a plain name can be called as a table function"},
	{"select 1 from (a join b on 1) c", "30:31: Tables in parentheses cannot be given a name together: put the name after a table, inside the parentheses"},
	{"select 1 from (a) as b", "18:20: Tables in parentheses cannot be given a name together: put the name after a table, inside the parentheses"},
	{"select 1 from (a join b on 1 union select 2)", "29:34: Unexpected 'union', expected JOIN or ')'"},
	{"select 1 from (a join b)", "23:24: Unexpected ')', expected ON or USING"},
	{"select 1 from (a where b)", "17:22: Unexpected 'where', expected JOIN or ')'"},
	{"select 1 from ()", "15:16: Unexpected ')', expected SELECT"},
	{"select a from (select 1", "23:23: Unexpected end of the query, expected ')'"},

	// Names and aliases.
	{"select a as team_id", `12:19: "team_id" cannot be an alias or identifier, as it's a reserved keyword`},
	{"select a as Team_ID", `12:19: "Team_ID" cannot be an alias or identifier, as it's a reserved keyword`},
	{"select a as 'team_id'", `12:21: "team_id" cannot be an alias or identifier, as it's a reserved keyword`},
	{`select a as "team_id"`, `12:21: "team_id" cannot be an alias or identifier, as it's a reserved keyword`},
	{"select a team_id", `9:16: "team_id" cannot be an alias or identifier, as it's a reserved keyword`},
	{"team_id: select 1", "0:7: Unexpected 'team_id', expected SELECT: there are no other statements"},
	{"select team_id: 1", `7:14: "team_id" cannot be an alias or identifier, as it's a reserved keyword`},
	{"select a as null", `12:16: "null" cannot be an alias or identifier, as it's a reserved keyword`},
	{"select 1 from t as TEAM_ID", `19:26: "TEAM_ID" cannot be an alias or identifier, as it's a reserved keyword`},
	{"with 1 as team_id select 1", `10:17: "team_id" cannot be an alias or identifier, as it's a reserved keyword`},
	{"select 1 from t as u (team_id)", `22:29: "team_id" cannot be an alias or identifier, as it's a reserved keyword`},
	{"with t (a, team_id) as (select 1, 2) select 1", `11:18: "team_id" cannot be an alias or identifier, as it's a reserved keyword`},
	{"with team_id as (select 1) select 1", `5:12: "team_id" cannot be an alias or identifier, as it's a reserved keyword`},
	{"select a as ''", "12:14: An identifier must not be empty"},
	{"select a as 'x%'", `12:16: The HogQL identifier "x%" is not permitted as it contains the "%" character`},
	{"select a as inf", "12:15: 'inf' is a reserved word: put it in backquotes to use it as a name for the column"},
	{"select a as from from t", "12:16: Unexpected 'from', expected a name for the column"},
	{"select a as 1", "12:13: Unexpected '1', expected a name for the column"},
	{"select let", "7:10: 'let' is a reserved word: put it in backquotes to use it as a name"},
	{"select fn(1)", "7:9: 'fn' is a reserved word: put it in backquotes to use it as a name"},
	{"select a null", "9:13: Unexpected 'null', expected the end of the query"},
	{`select "a%b"`, `7:12: The HogQL identifier "a%b" is not permitted as it contains the "%" character`},
	{"select 1 as '" + strings.Repeat(`\x80`, 41) + "%'", `12:179: The HogQL identifier "…" is not permitted as it contains the "%" character`},
	{"select `a\\x25b`", `7:15: The HogQL identifier "a\x25b" is not permitted as it contains the "%" character`},
	{"select ``", "7:9: An identifier must not be empty"},
	{"select é from t", "7:9: Unexpected character 'é': a name with other letters than A to Z needs backquotes around it"},

	// Tokens.
	{"select 'abc", "7:8: Unterminated string: expected '"},
	{"select `abc", "7:8: Unterminated quoted identifier: expected `"},
	{`select 'a\q'`, `9:11: Unknown escape '\q' in a string: write \\ for a backslash`},
	{`select 'a\xZZ'`, `9:11: Unknown escape '\x' in a string: write \\ for a backslash`},
	{`select '\`, "8:9: Unterminated string: it ends with a backslash"},
	{"select f'a {b", "13:13: Unterminated template string: expected '}'"},
	{"select f'a {b} c", "16:16: Unterminated template string: expected '"},
	{`select f'a \q'`, `11:13: Unknown escape '\q' in a template string: write \\ for a backslash`},
	{"select f'a { 'b } c'", "20:20: Unterminated template string: expected '}'"},
	{"select /* abc", "7:9: Unterminated comment: expected '*/'"},
	{"select a ! b", "9:10: Unexpected character '!'"},
	{"select a & b", "9:10: Unexpected character '&'"},
	{"select a ☃ b", "9:12: Unexpected character '☃'"},
	{"select 1abc", "7:11: Malformed number '1abc'"},
	{"select 0o17", "7:11: Malformed number '0o17'"},
	{"select 1e", "7:9: Malformed number '1e'"},
	{"select 0x", "7:9: Malformed number '0x'"},
	{"select 0b2", "7:10: Malformed number '0b2'"},
	{"select 1e999", "7:12: The number 1e999 is too large"},
	{"select 0b11111111111111111111111111111111111111111111111111111111111111111", "7:74: The number 0b11111111111111111111111111111111111111… is too large"},
	{"select t.99999999999", "9:20: The index 99999999999 is too large"},
	{"select t.1a", "9:11: Malformed number '1a'"},

	// Expressions.
	{"select (1", "9:9: Unexpected end of the query, expected ',' or ')'"},
	{"select (", "8:8: Unexpected end of the query, expected an expression"},
	{"select ()", "8:9: Unexpected ')', expected an expression"},
	{"select [1, 2", "12:12: Unexpected end of the query, expected ',' or ']'"},
	{"select f(1, 2", "13:13: Unexpected end of the query, expected ',' or ')'"},
	{"select f(1 2)", "11:12: Unexpected '2', expected ',' or ')'"},
	{"select f(a order b)", "17:18: Unexpected 'b', expected BY"},
	{"select {a", "9:9: Unexpected end of the query, expected '}' or ':'"},
	{"select {a: 1, b}", "15:16: Unexpected '}', expected ':'"},
	{"select case end", "15:15: Unexpected end of the query, expected WHEN"},
	{"select case when 1 end", "19:22: Unexpected 'end', expected THEN"},
	{"select case when 1 then 2", "25:25: Unexpected end of the query, expected WHEN, ELSE or END"},
	{"select (select 1", "16:16: Unexpected end of the query, expected ')'"},
	{"select a between 1 or 2", "19:21: Unexpected 'or', expected AND and the upper bound of BETWEEN"},
	{"select a is b", "12:13: Unexpected 'b', expected NULL or DISTINCT FROM"},
	{"select a is not", "15:15: Unexpected end of the query, expected NULL or DISTINCT FROM"},
	{"select a not b", "9:12: Unexpected 'not', expected the end of the query"},
	{"select a ? b", "12:12: Unexpected end of the query, expected ':' of the ternary operator"},
	{"select +a", "7:8: Unexpected '+', expected an expression"},
	{"select a[1", "10:10: Unexpected end of the query, expected ']' or ':'"},
	{"select a[1:2:3]", "12:13: Unexpected ':', expected ']'"},
	{"select a.", "9:9: Unexpected end of the query, expected a name"},
	{"select a?.", "10:10: Unexpected end of the query, expected a name"},
	{"select a::", "10:10: Unexpected end of the query, expected the name of a type"},
	{"select a::nullable(int", "22:22: Unexpected end of the query, expected ')' of the type"},
	{"select a::b(;)", "12:13: Unexpected ';', expected ')' of the type"},
	{"select cast(a)", "13:14: Unexpected ')', expected AS and a type"},
	{"select cast(a as)", "16:17: Unexpected ')', expected the name of a type"},
	{"select interval 1", "17:17: Unexpected end of the query, expected a unit: second, minute, hour, day, week, month, quarter or year"},
	{"select interval 1 fortnight", "18:27: Unexpected 'fortnight', expected a unit: second, minute, hour, day, week, month, quarter or year"},
	{"select interval '1 fortnight'", "16:29: Unsupported interval '1 fortnight', expected a whole number and a unit, such as '2 days'"},
	{"select interval '1.5 days'", "16:26: Unsupported interval '1.5 days', expected a whole number and a unit, such as '2 days'"},
	{"select trim(both 'x' a)", "21:22: Unexpected 'a', expected FROM"},
	{"select substring(a from 1 by 2)", "26:28: Unexpected 'by', expected ',' or ')'"},
	{"select columns()", "7:16: COLUMNS() needs columns: write COLUMNS(a, b), COLUMNS('regex') or COLUMNS(* EXCLUDE (a))"},
	{"select 1 + columns(a)", "11:18: COLUMNS(a, b) can only be in the list of SELECT, and *COLUMNS(a, b) among the arguments of a function"},
	{"select *columns('a')", "7:15: *COLUMNS(...) is only valid among the arguments of a function. Use COLUMNS(...) instead."},
	{"select f(1 + *columns('a'))", "13:21: *COLUMNS(...) is only valid among the arguments of a function. Use COLUMNS(...) instead."},
	{"select a respect nulls", "9:22: RESPECT NULLS is not supported: aggregates leave NULLs out. To keep them, aggregate tuples, as in any(tuple(x)).1"},
	{"select 1 from a natural left join b", "16:23: NATURAL JOIN is not supported: name the columns, as in JOIN … USING (a, b)"},
	{"select a from t order by a interpolate ()", "40:41: Unexpected ')', expected a column"},
	{"select * exclude ()", "18:19: Unexpected ')', expected a column to leave out"},
	{"select lambda x y", "16:17: Unexpected 'y', expected the end of the query"},
	{"select x ->", "11:11: Unexpected end of the query, expected an expression"},
	{"select a.b(1)", "7:10: You can only call simple functions in HogQL, not expressions"},
	{"select (x -> x)(1)", "7:15: You can only call simple functions in HogQL, not expressions"},
	{"select f(1)(2)(3)", "7:14: You can only call simple functions in HogQL, not expressions"},
	{"select f(distinct a)(b)", "7:20: DISTINCT and ORDER BY belong in the second list of f(…)(…)"},
	{"select f() over", "15:15: Unexpected end of the query, expected a window's name or '('"},
	{"select f() over (partition a)", "27:28: Unexpected 'a', expected BY"},
	{"select f() over (rows 1)", "23:24: Unexpected ')', expected PRECEDING or FOLLOWING"},
	{"select f() over (rows between 1 preceding)", "41:42: Unexpected ')', expected AND"},
	{"select f() filter (a)", "19:20: Unexpected 'a', expected WHERE"},
	{"select <a b=1 />", "12:13: Unexpected character '1' in a tag: a value is a text in single quotes or an expression in braces"},
	{`select <a b="c" />`, "12:13: A text in a tag is written in single quotes"},
	{"select <a", "7:8: Unterminated tag: it has no closing tag, and does not end with '/>'"},
	{"select <a>b", "7:8: Unterminated tag: it has no closing tag, and does not end with '/>'"},
	{"select <a>{b</a>", "13:14: Unexpected '/', expected an expression"},
	{"select <a>b</i>", "13:14: Opening and closing HogQLX tags must match. Got a and i"},
	{"select <a>b</a c='d'>", "15:16: Unexpected 'c', expected '>'"},
	{"select <a children='b'>c</a>", "10:18: Can't have a HogQLX tag with both children and a 'children' attribute"},
	{"select <a>1 < 2</a>", "12:13: Unexpected '<' in the text of a tag: write {'<'}"},
	{"select <Foo />", "8:11: Unknown tag <Foo />."},
	{"select <TrendsQuery />", "8:19: <TrendsQuery /> cannot be part of a query: only <HogQLQuery query='…' /> can"},
	{"select <HogQLQuery />", "8:18: <HogQLQuery /> needs the attribute query='…'"},
	{"select <HogQLQuery query />", "19:24: <HogQLQuery /> takes its query once, as a text in single quotes"},
	{"select <HogQLQuery query={'select 1'} />", "19:24: <HogQLQuery /> takes its query once, as a text in single quotes"},
	{"select <HogQLQuery query='select 1' query='select 2' />", "36:41: <HogQLQuery /> takes its query once, as a text in single quotes"},
	{"select <HogQLQuery query='select 1' limit={1} />", "36:41: <HogQLQuery /> takes the attribute query alone, not limit"},
	{"select <HogQLQuery>select 1</HogQLQuery>", "8:18: <HogQLQuery /> has no children: its query is the attribute query='…'"},
	{"select <HogQLQuery query='select from' />", "33:37: Unexpected 'from', expected an expression"},
	{"select <HogQLQuery query='' />", "26:26: Unexpected end of the query of the tag, expected SELECT"},
	{"select <HogQLQuery query='select #1' />", "33:34: Positional references such as #1 are not supported: name the column"},
	{"select 1 from <b />", "15:16: <b /> is not a query: write <HogQLQuery query='…' />"},

	// Long ones are cut.
	{`select a "some very long identifier that goes on and on" "and another one"`, `57:74: Unexpected "and another one", expected the end of the query`},
}

func TestMistakes(t *testing.T) {
	for _, tt := range mistakes {
		t.Run(tt.in, func(t *testing.T) {
			q, err := hogql.Parse(tt.in)
			if err == nil {
				t.Fatalf("Parse gives %s", hogql.Print(q))
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
			checkMistake(t, tt.in, err)
		})
	}
}

func TestMistakesHaveCodes(t *testing.T) {
	tests := []struct {
		in   string
		want diag.Code
	}{
		{"", diag.SyntaxError},
		{"select", diag.SyntaxError},
		{"select 'a", diag.SyntaxError},
		{"select 1 as team_id", diag.SyntaxError},
		{"select 1 from a array join b", diag.SyntaxError},
		{"select a from t final", diag.QueryError},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			_, err := hogql.Parse(tt.in)
			mistake, ok := err.(*diag.Error) //nolint:errorlint // Parse promises this exact type.
			if !ok {
				t.Fatalf("Parse gives %T, want *diag.Error", err)
			}
			if mistake.Code != tt.want {
				t.Errorf("code %q, want %q", mistake.Code, tt.want)
			}
		})
	}
}

func TestParseExprMistakes(t *testing.T) {
	tests := []struct{ in, want string }{
		{" ", "The expression is empty"},
		{"a +", "3:3: Unexpected end of the expression, expected an expression"},
		{"a, b", "1:2: Unexpected ',', expected the end of the expression"},
		{"select 1", "0:6: Unexpected 'select', expected an expression"},
		{"a;", "1:2: Unexpected ';', expected the end of the expression"},
		{"a \xff", "2:3: The expression is not valid UTF-8"},
		{"'\ufffd' + \xff", "8:9: The expression is not valid UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			_, err := hogql.ParseExpr(tt.in)
			if diff := cmp.Diff(tt.want, errText(err)); diff != "" {
				t.Errorf("ParseExpr(%q) (-want +got):\n%s", tt.in, diff)
			}
		})
	}
}
