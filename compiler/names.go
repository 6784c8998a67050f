package compiler

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// maxScanned is how many bytes of texts are searched for names, so that finding them takes a few milliseconds.
const maxScanned = 1 << 20

// names notes what may be the name of a property in a text: the text itself, each run of letters, digits, _ and $, as names without quotes are, and what is
// between two quotes. Names that are written with escapes are left to unescaped.
func (f *useFinder) names(text string) {
	if f.named == nil || f.found.AllProperties {
		return
	}
	if f.scanned += len(text); f.scanned > maxScanned {
		f.found.AllProperties = true
		return
	}
	f.named(text)
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !inName(r) }) {
		f.named(word)
	}
	for _, quote := range [...]string{"'", `"`, "`"} {
		if !strings.Contains(text, quote) {
			continue
		}
		for quoted := range strings.SplitSeq(text, quote) {
			f.named(quoted)
		}
		if doubled := quote + quote; strings.Contains(text, doubled) { // each stands for one in a name
			for quoted := range strings.SplitSeq(strings.ReplaceAll(text, doubled, "\x00"), quote) {
				f.named(strings.ReplaceAll(quoted, "\x00", quote))
			}
		}
	}
}

// inName reports whether a character may be in a name without quotes.
func inName(r rune) bool {
	return r == '_' || r == '$' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// textNames notes the names in a HogQL query, and the constants that take the place of its placeholders.
func (f *useFinder) textNames(q *query.HogQL) {
	if f.named == nil {
		return
	}
	f.names(q.Query)
	for _, value := range q.Values {
		f.constant(value)
	}
	for _, v := range q.Variables {
		f.constant(v.Value)
		f.constant(f.env.Variables[v.CodeName])
	}
}

// constant notes the names in the value of a placeholder.
func (f *useFinder) constant(value any) {
	switch value := value.(type) {
	case string:
		f.names(value)
	case []any:
		for _, element := range value {
			f.constant(element)
		}
	case map[string]any:
		for _, member := range value {
			f.constant(member)
		}
	}
}

// computes reports whether a text may compute a name in braces, as in properties[{concat('a', variables.b)}].
func computes(text string) bool {
	for _, rest := range strings.Split(text, "{")[1:] {
		inside, _, _ := strings.Cut(rest, "}")
		if strings.ContainsFunc(inside, func(r rune) bool { return !inName(r) && r != '.' && r != ' ' }) {
			return true
		}
	}
	return false
}

// unescaped notes names and constants that are written with escapes: see mayUse.
func (f *useFinder) unescaped(e hogql.Expr) {
	if c, ok := e.(*hogql.Const); ok {
		if text, ok := c.Value.(string); ok {
			f.names(text)
		}
	}
	if field, ok := e.(*hogql.Field); ok {
		for _, name := range field.Chain {
			f.names(name.Text)
		}
	}
	if member, ok := e.(*hogql.Member); ok {
		f.names(member.Name.Text)
	}
}

// OwnProperties are the properties that the compiler reads for some queries that do not name them: those behind the fields of sessions and events,
// and those that insights are about.
var OwnProperties = strings.Fields(`
	email name username $process_person_profile
	$current_url $pathname $host $referrer $referring_domain $external_click_url $screen_name $event_type $raw_user_agent
	$browser $browser_language $os $device_type $viewport_width $viewport_height $timezone_offset $session_id $recording_status
	$geoip_country_code $geoip_subdivision_1_code $geoip_subdivision_1_name $geoip_city_name
	$prev_pageview_pathname $prev_pageview_max_scroll_percentage $prev_pageview_max_content_percentage $web_vitals_LCP_value
	utm_source utm_medium utm_campaign utm_term utm_content
	gclid gad_source fbclid gclsrc dclid gbraid wbraid msclkid twclid li_fat_id mc_cid igshid ttclid epik qclid sccid _kx irclid
	$initial_utm_source $initial_utm_medium $initial_utm_campaign $initial_referring_domain $initial_current_url $initial_pathname $initial_host
	$initial_gclid $initial_fbclid $initial_gad_source
	$exception_issue_id $survey_id $survey_submission_id
`)
