package schema

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// ChannelRule is one of the project's own rules: the channel type of visits that satisfy it (modifier customChannelTypeRules).
type ChannelRule struct {
	Channel    string
	Any        bool // one condition is enough; otherwise all must hold
	Conditions []ChannelCondition
}

// ChannelCondition compares one fact of a visit with values, one of which must match.
type ChannelCondition struct {
	Key      string // one of ChannelKeys
	Operator string // one of ChannelOperators
	Values   []string
}

// ChannelKeys are the facts that rules can use, ChannelOperators the ways to compare them.
var (
	ChannelKeys      = []string{"utm_source", "utm_medium", "utm_campaign", "referring_domain", "url", "pathname", "hostname"}
	ChannelOperators = []string{"exact", "is_not", "is_set", "is_not_set", "icontains", "not_icontains", "regex", "not_regex"}
)

// channelInputs are the HogQL texts that a channel type is computed from: one for each of ChannelKeys, and for the marks of ad clicks.
type channelInputs struct {
	facts                    map[string]string
	gclid, fbclid, gadSource string // the first two are conditions
}

// decide returns the expression for the project's rules: the channel type of the first rule that holds, otherwise NULL.
func (in *channelInputs) decide(rules []ChannelRule) hogql.Expr {
	args := make([]hogql.Expr, 0, 2*len(rules)+1)
	for _, rule := range rules {
		conditions := make([]hogql.Expr, 0, len(rule.Conditions))
		for _, c := range rule.Conditions {
			conditions = append(conditions, in.condition(c))
		}
		args = append(args, joined(conditions, rule.Any), &hogql.Const{Value: rule.Channel})
	}
	return &hogql.Call{Name: "multiIf", Args: append(args, &hogql.Const{})}
}

func (in *channelInputs) condition(c ChannelCondition) hogql.Expr {
	fact := mustParse(in.facts[c.Key])
	compare := func(op hogql.CompareOp, value any) hogql.Expr {
		return &hogql.Compare{Op: op, Left: fact, Right: &hogql.Const{Value: value}}
	}
	switch c.Operator {
	case "is_set":
		return compare(hogql.NotEquals, nil)
	case "is_not_set":
		return compare(hogql.Equals, nil)
	}
	op := channelOperators[c.Operator]
	all := make([]hogql.Expr, 0, len(c.Values))
	for _, value := range c.Values {
		if strings.HasSuffix(c.Operator, "icontains") {
			value = "%" + value + "%"
		}
		all = append(all, compare(op, value))
	}
	return joined(all, true)
}

var channelOperators = map[string]hogql.CompareOp{
	"exact": hogql.Equals, "is_not": hogql.NotEquals, "icontains": hogql.ILike, "not_icontains": hogql.NotILike,
	"regex": hogql.Match, "not_regex": hogql.NotMatch,
}

// joined combines conditions: one of them is enough, or all must hold. Without conditions it always holds.
func joined(conditions []hogql.Expr, one bool) hogql.Expr {
	switch len(conditions) {
	case 0:
		return &hogql.Const{Value: true}
	case 1:
		return conditions[0]
	}
	return &hogql.Logic{Or: one, Args: conditions}
}

// channelType returns the formula of the channel type (contract: hogql.md, section 7). Its rules are, in order: signs of a paid visit, a visit without
// any referrer, all other visits. Among the facts, utm_source takes precedence over utm_medium, then come the referring domain and an ad's click
// id.
func channelType(in channelInputs) *Formula {
	word := func(key, name string) string {
		return "(lower(nullIf(nullIf(toString(" + in.facts[key] + "), ''), 'null')) as " + name + ")"
	}
	f := formula(strings.NewReplacer(
		"@campaign", word("utm_campaign", "ch_campaign"),
		"@medium", word("utm_medium", "ch_medium"),
		"@source", word("utm_source", "ch_source"),
		"@domain", "(toString("+in.facts["referring_domain"]+") as ch_domain)",
		"@gad_source", "(nullIf(nullIf(toString("+in.gadSource+"), ''), 'null') as ch_gad_source)",
		"@gclid", in.gclid, "@fbclid", "(("+in.fbclid+") as ch_fbclid)",
	).Replace(`multiIf(
		@campaign like '%cross-network%', 'Cross Network',
		@medium in ('cpc', 'cpm', 'cpv', 'cpa', 'ppc', 'retargeting') or ch_medium like 'paid%' or @gclid or @gad_source is not null,
		coalesce(
			transform(ifNull(lookupDomainType(@source) as ch_source_kind, ''), ` + pairs(PaidKinds) + `, null),
			if(ch_campaign =~ '([^a-df-z]|^)shop|shopping', 'Paid Shopping', null),
			lookupPaidMediumType(ch_medium),
			transform(ifNull(lookupDomainType(@domain) as ch_domain_kind, ''), ` + pairs(PaidKinds) + `, null),
			multiIf(ch_gad_source = '1', 'Paid Search', ch_campaign like '%video%', 'Paid Video', @fbclid, 'Paid Social', 'Paid Unknown')
		),
		ch_domain = '$direct' and ch_medium is null and (ch_source is null or ch_source in ('(direct)', 'direct', '$direct')) and not ch_fbclid,
		'Direct',
		coalesce(
			transform(ifNull(ch_source_kind, ''), ` + pairs(OrganicKinds) + `, null),
			if(ch_campaign =~ '([^a-df-z]|^)shop|shopping', 'Organic Shopping', null),
			lookupOrganicMediumType(ch_medium),
			transform(ifNull(ch_domain_kind, ''), ` + pairs(OrganicKinds) + `, null),
			multiIf(
				ch_campaign like '%video%', 'Organic Video', ch_medium like '%push', 'Push', ch_fbclid, 'Organic Social',
				ch_domain = '$direct', 'Direct', nullIf(ch_domain, '') is not null, 'Referral', 'Unknown'
			)
		)
	)`))
	f.rules = &in
	return f
}

// pairs returns a dictionary as the two middle arguments of transform.
func pairs(d ChannelDictionary) string {
	var names, meanings []string
	for name, meaning := range d.Each() {
		names, meanings = append(names, "'"+name+"'"), append(meanings, "'"+meaning+"'")
	}
	return "[" + strings.Join(names, ", ") + "], [" + strings.Join(meanings, ", ") + "]"
}

// initialInputs are the facts about a person's first visit that the person's properties record. path leads to the properties.
func initialInputs(path string) channelInputs {
	property := func(name string) string { return path + ".$initial_" + name }
	return channelInputs{
		facts: map[string]string{
			"utm_source": property("utm_source"), "utm_medium": property("utm_medium"), "utm_campaign": property("utm_campaign"),
			"referring_domain": property("referring_domain"), "url": property("current_url"), "pathname": property("pathname"),
			"hostname": property("host"),
		},
		gclid:     "nullIf(toString(" + property("gclid") + "), '') is not null",
		fbclid:    "nullIf(toString(" + property("fbclid") + "), '') is not null",
		gadSource: property("gad_source"),
	}
}

// initialFields are the fields computed from a person's first visit.
func initialFields(path string) []Field {
	domain := "toString(" + path + ".$initial_referring_domain)"
	return []Field{
		{Name: "$virt_initial_channel_type", Type: stringType, Hidden: true, Formula: channelType(initialInputs(path))},
		{
			Name: "$virt_initial_referring_domain_type", Type: stringType, Hidden: true,
			Formula: formula("if((" + domain + " as ch_initial_domain) = '$direct', '$direct', lookupDomainType(ch_initial_domain))"),
		},
	}
}
