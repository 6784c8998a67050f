package compiler

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

// Metadata is the answer with what can be said about a HogQL text without running it (contract: api.md, section 1.6).
type Metadata struct {
	IsValid bool   `json:"isValid"`
	Query   string `json:"query"`
	// Errors are all mistakes, in text order. In a query with mistakes, the other fields hold what was found despite them.
	Errors   []Notice `json:"errors"`
	Warnings []Notice `json:"warnings"`
	Notices  []Notice `json:"notices"`
	// Tables are the table names in the query, Physical those in ClickHouse, null for a query with mistakes. Both are sorted and without
	// duplicates.
	Tables   []string `json:"table_names"`
	Physical []string `json:"ch_table_names"`
	// Indices reports whether ClickHouse can skip rows by its indices. Only ClickHouse could tell.
	Indices string `json:"isUsingIndices"`
}

// Notice is a remark about part of a text. Start and End count the characters (code points) before its ends; they are nil if it is about no
// part. Fix is what to write there instead, nil if unknown.
type Notice struct {
	Message string  `json:"message"`
	Start   *int    `json:"start"`
	End     *int    `json:"end"`
	Fix     *string `json:"fix"`
}

// undecided is PostHog's word for an index that may or may not be used.
const undecided = "undecisive"

// Describe reports what is right and wrong with a text. Mistakes in the text are not an error of Describe.
func Describe(q *query.Metadata, env Env) (*Metadata, error) {
	env.spend = budget.New(env.Expired)
	m, err := describe(q, env)
	if err != nil {
		return newMetadata(q).refuse(err, q)
	}
	return m, nil
}

func newMetadata(q *query.Metadata) *Metadata {
	return &Metadata{Query: q.Query, Errors: []Notice{}, Warnings: []Notice{}, Notices: []Notice{}, Tables: []string{}, Indices: undecided}
}

// describe is Describe, but its error may be the end of the budget.
func describe(q *query.Metadata, env Env) (m *Metadata, err error) {
	defer RecoverBug(&err)
	m = newMetadata(q)
	env.Database = modified(env.Database, q.Modifiers)
	env.globals = q.Globals
	node := q.HogQL()
	parsed, err := parseAsked(q, env)
	if err != nil {
		return m.refuse(err, q)
	}
	found, err := analyze(tree{query: parsed, text: node}, env, true)
	if found != nil && found.bound != nil {
		m.Tables = tableNames(found.bound)
		m.note(found, q, env)
	}
	if err != nil {
		return m.refuse(err, q)
	}
	if m.Physical, err = sql.Tables(found.resolved, env.Database, env.spend); err != nil {
		return m.refuse(err, q)
	}
	m.IsValid = true
	return m, nil
}

// Refusal is how an error answer describes a query that does not compile (contract: hogql.md, section 16).
type Refusal struct {
	IsValid bool     `json:"isValid"`
	Errors  []Notice `json:"errors"`
	Tables  []string `json:"table_names"`
}

// DescribeMistakes describes the mistakes of a text that Compile refused.
func DescribeMistakes(text string, mistakes diag.Errors) *Refusal {
	m := &Refusal{Errors: notices(text, mistakes), Tables: []string{}}
	if parsed, err := hogql.Parse(text); err == nil {
		m.Tables = tableNames(parsed)
	}
	return m
}

// parseAsked makes one query of the text that is asked about. Positions in an expression are those in its text; the query around it has
// positions behind the end of the text.
func parseAsked(q *query.Metadata, env Env) (hogql.Query, error) {
	if q.Language == query.LanguageHogQL {
		return hogql.ParseWithin(q.Query, env.spend)
	}
	e, err := hogql.ParseExprWithin(q.Query, env.spend)
	if err != nil {
		return nil, err
	}
	source := q.Source
	if source == nil {
		source = &query.HogQL{Query: "select event from events"}
	}
	around, err := hogql.ParseWithin(strings.Repeat(" ", len(q.Query)+1)+source.Query, env.spend)
	if err != nil {
		return nil, err
	}
	values, err := valuesOf(source, env)
	if err != nil {
		return nil, err
	}
	bound, err := bind.Placeholders(around, values)
	if err != nil {
		return nil, err
	}
	if sel, ok := bound.(*hogql.Select); ok {
		with := *sel
		with.Columns = append(slices.Clip(with.Columns), e)
		return &with, nil
	}
	return &hogql.Select{Columns: []hogql.Expr{e}, From: &hogql.Derived{Query: bound}}, nil
}

// refuse puts the mistakes into the answer. It returns an error that is not a mistake.
func (m *Metadata) refuse(err error, q *query.Metadata) (*Metadata, error) {
	mistakes := Mistakes(err)
	if mistakes == nil {
		return nil, err
	}
	own := make(diag.Errors, 0, len(mistakes))
	for _, e := range mistakes {
		if q.Language == query.LanguageExpr && e.Span.Start > len(q.Query) {
			e = &diag.Error{Code: e.Code, Detail: "In the query around the expression: " + e.Detail}
		}
		own = append(own, e)
	}
	m.Errors = notices(q.Query, own)
	return m, nil
}

// notices converts mistakes to notices, whose places count characters.
func notices(text string, mistakes diag.Errors) []Notice {
	out := make([]Notice, len(mistakes))
	start, end := counter{text: text}, counter{text: text}
	for i, e := range mistakes {
		out[i] = Notice{Message: e.Detail}
		if !e.Span.IsZero() {
			from, to := start.to(e.Span.Start), end.to(e.Span.End)
			out[i].Start, out[i].End = &from, &to
		}
		if fix, ok := fixOf(text, e); ok {
			out[i].Fix = &fix
		}
	}
	return out
}

// counter counts the characters before places in a text; places in ascending order take one pass.
type counter struct {
	text     string
	at, seen int
}

func (c *counter) to(offset int) int {
	offset = min(max(offset, 0), len(c.text))
	if offset < c.at {
		c.at, c.seen = 0, 0
	}
	c.seen += utf8.RuneCountInString(c.text[c.at:offset])
	c.at = offset
	return c.seen
}

// fixOf returns what to write at the place of a mistake to mend it: the name in its hint, quoted like the text there.
func fixOf(text string, e *diag.Error) (string, bool) {
	at := e.Span
	if at.IsZero() || at.End > len(text) || e.Fix == "" && e.Hint == "" {
		return "", false
	}
	written := text[at.Start:at.End]
	switch {
	case e.Fix != "":
		return e.Fix, true
	case strings.HasPrefix(written, "'"):
		return hogql.PrintExpr(&hogql.Const{Value: e.Hint}), true
	case strings.HasPrefix(written, "`"), strings.HasPrefix(written, `"`), !strings.ContainsAny(written, " .,()[]{}\t\r\n"):
		return hogql.Identifier(e.Hint), true
	}
	return "", false // more than the name
}

// tableNames returns the sorted names of the tables that a query reads, each once, without common table expressions.
func tableNames(q hogql.Query) []string {
	names := []string{}
	ctes := map[string]bool{}
	v := hogql.Visitor{
		Query: func(q hogql.Query) bool {
			switch q := q.(type) {
			case *hogql.Select:
				noteNames(ctes, q.With)
			case *hogql.SetQuery:
				noteNames(ctes, q.With)
			case *hogql.QueryPlaceholder:
			}
			return true
		},
		Table: func(t hogql.Table) bool {
			switch t := t.(type) {
			case *hogql.TableName:
				names = append(names, chainText(t.Chain))
			case *hogql.TableFunc:
				names = append(names, t.Name.Text)
			case *hogql.Derived, *hogql.TablePlaceholder, *hogql.Join:
			}
			return true
		},
	}
	v.WalkQuery(q)
	names = slices.DeleteFunc(names, func(name string) bool { return ctes[name] })
	slices.Sort(names)
	return slices.Compact(names)
}

func noteNames(names map[string]bool, ctes []*hogql.CTE) {
	for _, cte := range ctes {
		names[cte.Name.Text] = true
	}
}

// defines reports whether one of the common table expressions has the name.
func defines(ctes []*hogql.CTE, name string) bool {
	return slices.ContainsFunc(ctes, func(cte *hogql.CTE) bool { return cte.Name.Text == name })
}

func chainText(chain []hogql.Name) string {
	parts := make([]string, len(chain))
	for i, name := range chain {
		parts[i] = name.Text
	}
	return strings.Join(parts, ".")
}

// note adds the warnings and notices. They are worded like mistakes, and are only about what is in the text itself.
func (m *Metadata) note(found *analysis, q *query.Metadata, env Env) {
	var warnings, remarks diag.List
	beside := siblingNames(env.Database)
	if q.Language == query.LanguageHogQL {
		warnLimit(&warnings, found.bound, cmp.Or(env.MaxRows, bind.MaxRows))
		warnScan(&warnings, found.bound)
	}
	for _, use := range found.uses {
		if use.At.Start > len(q.Query) {
			continue
		}
		typ, defined := env.Database.Properties[use.Key]
		if defined {
			remarks.Addf(diag.HogQLError, use.At, "%s", remark(use, typ, q.Debug))
			continue
		}
		if warnings.Full() {
			continue
		}
		if near := schema.Nearest(use.Key.Name, env.spend.Hints(slices.Values(beside(use.Key)))); near != "" {
			e := diag.New(diag.HogQLError, use.At, "%s property '%s' has no definition in this project. Did you mean '%s'?",
				scopeNames[use.Key.Scope], use.Key.Name, near)
			e.Hint = near
			warnings.Add(e)
		}
	}
	noteActions(&remarks, found.bound, q.Query, env.Actions)
	noteCohorts(&remarks, found.bound, q.Query, env.Database.Cohorts)
	m.Warnings, m.Notices = notices(q.Query, Mistakes(warnings.Err())), notices(q.Query, Mistakes(remarks.Err()))
}

// noteActions notes other ways to name an action, for constants of matchesAction that are written in the text.
func noteActions(remarks *diag.List, bound hogql.Query, text string, actions *query.Actions) {
	hogql.WalkQuery(bound, func(e hogql.Expr) bool {
		call, ok := e.(*hogql.Call)
		if !ok || call.Name != schema.MatchesAction || len(call.Args) != 1 {
			return true
		}
		named, ok := call.Args[0].(*hogql.Const)
		if !ok || !written(named, text) {
			return true
		}
		switch value := named.Value.(type) {
		case int64:
			if a := actions.Get(value); a != nil && !a.Deleted && a.Name != "" {
				name := hogql.PrintExpr(&hogql.Const{Value: a.Name})
				remarks.Add(&diag.Error{Span: named.Pos, Detail: fmt.Sprintf("Action #%d can also be specified as %s", a.ID, name), Fix: name})
			}
		case string:
			if found := actions.Named(value); len(found) == 1 {
				id := strconv.FormatInt(found[0].ID, 10)
				remarks.Add(&diag.Error{
					Span: named.Pos, Detail: "Searching for action by name. Replace with numeric ID " + id + " to protect against renaming.", Fix: id,
				})
			}
		}
		return true
	})
}

// noteCohorts notes other ways to name a cohort, for constants of IN COHORT that are written in the text.
func noteCohorts(remarks *diag.List, bound hogql.Query, text string, cohorts schema.Cohorts) {
	hogql.WalkQuery(bound, func(e hogql.Expr) bool {
		in, ok := e.(*hogql.Compare)
		if !ok || in.Op != hogql.InCohort && in.Op != hogql.NotInCohort {
			return true
		}
		named, ok := in.Right.(*hogql.Const)
		if !ok || !written(named, text) {
			return true
		}
		switch value := named.Value.(type) {
		case int64:
			if name := cohorts.NameOf(value); name != "" && cohorts.Has(value) {
				fix := hogql.PrintExpr(&hogql.Const{Value: name})
				remarks.Add(&diag.Error{Span: named.Pos, Detail: fmt.Sprintf("Cohort #%d can also be specified as %s", value, fix), Fix: fix})
			}
		case string:
			if found := cohorts.ByName(value); len(found) == 1 {
				id := strconv.FormatInt(found[0], 10)
				remarks.Add(&diag.Error{
					Span: named.Pos, Detail: "Searching for cohort by name. Replace with numeric ID " + id + " to protect against renaming.", Fix: id,
				})
			}
		}
		return true
	})
}

// written reports whether a constant is in the text itself, and is not the value of a placeholder.
func written(c *hogql.Const, text string) bool {
	return !c.Pos.IsZero() && c.Pos.End <= len(text) && text[c.Pos.Start] != '{'
}

var scopeNames = map[schema.PropertyScope]string{
	schema.EventProperty: "Event", schema.PersonProperty: "Person", schema.GroupProperty: "Group",
}

// remark describes the type of a property and, with debug, how it is stored.
func remark(use resolve.PropertyUse, typ schema.PropertyType, debug bool) string {
	shown := string(typ)
	if typ == schema.NumericProperty {
		shown = "Float"
	}
	text := fmt.Sprintf("%s property '%s' is of type '%s'.", scopeNames[use.Key.Scope], use.Key.Name, shown)
	if !debug {
		return text
	}
	switch use.Storage.Kind {
	case schema.Materialized:
		text += " This property is materialized ⚡️."
	case schema.NativeJSON:
		text += " This property is read from its own part of a JSON column ⚡️."
	case schema.StringColumn:
		text += " This property is not materialized 🐢."
	}
	return text
}

// siblingNames returns a function that lists the names of the defined properties of the same scope. It collects them once.
func siblingNames(db *schema.Database) func(schema.PropertyKey) []string {
	var names map[schema.PropertyKey][]string // by a key without a name
	return func(key schema.PropertyKey) []string {
		if names == nil {
			names = map[schema.PropertyKey][]string{}
			for other := range db.Properties {
				scope := schema.PropertyKey{Scope: other.Scope, Group: other.Group}
				names[scope] = append(names[scope], other.Name)
			}
		}
		return names[schema.PropertyKey{Scope: key.Scope, Group: key.Group}]
	}
}

// warnLimit warns of limits of the outermost level that are lowered.
func warnLimit(warnings *diag.List, q hogql.Query, most int) {
	var limit *hogql.Limit
	switch q := q.(type) {
	case *hogql.Select:
		limit = q.Limit
	case *hogql.SetQuery:
		limit = q.Limit
		for _, member := range q.Members {
			warnLimit(warnings, member, most)
		}
	case *hogql.QueryPlaceholder:
	}
	if limit == nil || limit.Percent {
		return
	}
	if n, ok := limit.N.(*hogql.Const); ok {
		if rows, ok := n.Value.(int64); ok && rows > int64(most) {
			e := diag.New(diag.HogQLError, n.Pos, "A query returns at most %d rows", most)
			e.Fix = strconv.Itoa(most)
			warnings.Add(e)
		}
	}
}

// warnScan warns of a query that reads events without a condition on their time.
func warnScan(warnings *diag.List, q hogql.Query) {
	var scans []diag.Span
	timed := false
	v := hogql.Visitor{
		Expr: func(e hogql.Expr) bool {
			if f, ok := e.(*hogql.Field); ok {
				timed = timed || f.Chain[len(f.Chain)-1].Text == "timestamp"
			}
			return !timed
		},
		Table: func(t hogql.Table) bool {
			if name, ok := t.(*hogql.TableName); ok && schema.Root(chainText(name.Chain)) == "events" {
				scans = append(scans, name.Chain[0].Pos)
			}
			return !timed
		},
		Query: func(q hogql.Query) bool {
			sel, ok := q.(*hogql.Select)
			timed = timed || ok && defines(sel.With, "events") // then it need not be the table
			return !timed
		},
	}
	v.WalkQuery(q)
	if timed {
		return
	}
	for _, at := range scans {
		warnings.Addf(diag.HogQLError, at, "There is no condition on the timestamp of events, so this reads all events of the project")
	}
}
