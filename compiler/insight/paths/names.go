package paths

import (
	"math"
	"regexp"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// cleaned applies all cleaning rules to a name, the project's first, each to the result of the one before; nil if there are none (contract:
// paths.md, section 3).
func (b *builder) cleaned(name hogql.Expr) hogql.Expr {
	var rules []query.PathCleaning
	if b.query.Replacements {
		rules = append(rules, b.world.PathCleaning...)
	}
	rules = append(rules, b.query.Cleaning...)
	if clean := insight.Cleaner(rules); clean != nil {
		return clean(name)
	}
	return nil
}

// grouped returns a name, or the pattern that matches it. If several match, the one whose match ends first wins; the order of the list only
// decides between matches that end at the same place (contract: paths.md, section 3).
func grouped(name hogql.Expr, patterns []string) hogql.Expr {
	if len(patterns) == 1 {
		matches := insight.Call("match", name, insight.Const(`(?s)`+expression(patterns[0], `.*`)))
		return insight.Call("if", matches, insight.Const(patterns[0]), name)
	}
	const among = 1000 // more than there are patterns
	places, all := &hogql.Array{}, &hogql.Array{}
	for i, pattern := range patterns {
		all.Items = append(all.Items, insight.Const(pattern))
		place := insight.Const(int64(i + 1)) // a pattern of nothing but stars matches at once
		if strings.Trim(pattern, "*") != "" {
			match := insight.Call("extract", name, insight.Const(`^(?s:.*?`+expression(pattern, `.*?`)+`)`))
			place = insight.TemplateExpr("if(empty({match}), {never}, length({match}) * {among} + {i})", map[string]any{
				"match": match, "never": int64(math.MaxInt32)*among + int64(len(patterns)+1), "among": int64(among), "i": int64(i + 1),
			})
		}
		places.Items = append(places.Items, place)
	}
	return insight.TemplateExpr("arrayElement(arrayPushBack({patterns}, {name}), arrayMin({places}) % {among})", map[string]any{
		"patterns": all, "name": name, "places": places, "among": int64(among),
	})
}

// expression converts a pattern to a regular expression, with star in place of its stars.
func expression(pattern, star string) string {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return strings.Join(parts, star)
}
