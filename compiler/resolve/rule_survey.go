package resolve

import (
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// maxQuestion is the highest index of a survey question.
const maxQuestion = 10_000

// surveyResponse resolves getSurveyResponse(index[, id[, multiple]]): the response to a survey question, which events have under the question's id,
// or under its index if they come from older SDKs.
func (s *scope) surveyResponse(c *calling) resolved.Expr {
	index, ok := writtenNumber(c.args[0])
	if !ok || index < 0 || index > maxQuestion {
		s.r.mistake(c.args[0].At(), "The first argument of '%s' must be the constant index of a question, from 0", c.f.Name)
		return &resolved.Const{Pos: c.Pos}
	}
	t := tree{c.Pos}
	byIndex := "$survey_response"
	if index > 0 {
		byIndex += "_" + strconv.FormatInt(index, 10)
	}
	questions := t.call("JSONExtractArrayRaw", t.field("properties"), t.constant("$survey_questions"))
	id := t.call("JSONExtractString", t.call("arrayElement", questions, t.constant(index+1)), t.constant("id"))
	byID := t.call("concat", t.constant("$survey_response_"), id)
	if len(c.args) > 1 {
		given, ok := writtenText(c.args[1])
		if !ok && !writtenNull(c.args[1]) {
			s.r.mistake(c.args[1].At(), "The second argument of '%s' must be the constant id of a question", c.f.Name)
			return &resolved.Const{Pos: c.Pos}
		}
		if given != "" {
			byID = t.constant("$survey_response_" + given)
		}
	}
	multiple := false
	if len(c.args) > 2 {
		if multiple, ok = truth(s.expr(c.args[2])); !ok {
			s.r.mistake(c.args[2].At(), "The third argument of '%s' must be true or false", c.f.Name)
			return &resolved.Const{Pos: c.Pos}
		}
	}
	if !multiple {
		one := func(key hogql.Expr) hogql.Expr {
			return t.call("nullIf", t.call("JSONExtractString", t.field("properties"), key), t.constant(""))
		}
		return s.expr(t.call("coalesce", one(byID), one(t.constant(byIndex))))
	}
	list := func(key hogql.Expr) hogql.Expr { return t.call("JSONExtractArrayRaw", t.field("properties"), key) }
	return s.expr(t.call("if", t.call("notEmpty", list(byID)), list(byID), list(t.constant(byIndex))))
}

// surveySubmissions resolves uniqueSurveySubmissionsFilter(survey[, from[, to]]): whether an event is the last one of its submission.
func (s *scope) surveySubmissions(c *calling) resolved.Expr {
	for _, arg := range c.args {
		if _, ok := arg.(*hogql.Const); !ok {
			s.r.mistake(arg.At(), "The arguments of '%s' must be constants", c.f.Name)
			return &resolved.Const{Pos: c.Pos}
		}
	}
	t := tree{c.Pos}
	submission := t.call("coalesce", t.field("properties", "$survey_submission_id"), t.constant(""))
	where := []hogql.Expr{
		t.compare(hogql.Equals, t.field("event"), t.constant("survey sent")),
		t.compare(hogql.Equals, t.field("properties", "$survey_id"), c.args[0]),
	}
	for i, op := range []hogql.CompareOp{hogql.GreaterOrEquals, hogql.LessOrEquals} {
		if len(c.args) > i+1 {
			where = append(where, t.compare(op, t.field("timestamp"), c.args[i+1]))
		}
	}
	last := &hogql.Select{
		Pos:     c.Pos,
		Columns: []hogql.Expr{t.call("argMax", t.field("uuid"), t.field("timestamp"))},
		From:    &hogql.TableName{Pos: c.Pos, Chain: t.names("events")},
		Where:   &hogql.Logic{Pos: c.Pos, Args: where},
		GroupBy: &hogql.GroupBy{Pos: c.Pos, Keys: []hogql.Expr{
			t.call("if", t.compare(hogql.Equals, submission, t.constant("")), t.call("toString", t.field("uuid")), submission),
		}},
	}
	return s.expr(t.compare(hogql.In, t.field("uuid"), &hogql.Subquery{Pos: c.Pos, Query: last}))
}

// tree builds nodes that all have the place of the call that they replace.
type tree struct{ at hogql.Span }

func (t tree) call(name string, args ...hogql.Expr) hogql.Expr {
	return &hogql.Call{Pos: t.at, NamePos: t.at, Name: name, Args: args}
}

func (t tree) constant(v any) hogql.Expr { return &hogql.Const{Pos: t.at, Value: v} }

func (t tree) compare(op hogql.CompareOp, left, right hogql.Expr) hogql.Expr {
	return &hogql.Compare{Pos: t.at, Op: op, Left: left, Right: right}
}

func (t tree) field(chain ...string) hogql.Expr {
	return &hogql.Field{Pos: t.at, Chain: t.names(chain...)}
}

func (t tree) names(chain ...string) []hogql.Name {
	out := make([]hogql.Name, len(chain))
	for i, name := range chain {
		out[i] = hogql.Name{Pos: t.at, Text: name, Quoted: true}
	}
	return out
}

func writtenNumber(e hogql.Expr) (int64, bool) {
	c, ok := e.(*hogql.Const)
	if !ok {
		return 0, false
	}
	return whole((*resolved.Const)(c))
}

func writtenNull(e hogql.Expr) bool {
	c, ok := e.(*hogql.Const)
	return ok && c.Value == nil
}
