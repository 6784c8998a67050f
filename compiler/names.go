package compiler

import (
	"strings"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// FirstWord returns the first word of a property's name, which is among the words of each text that names the property; empty if it has none.
func FirstWord(name string) string {
	word, _ := nextWord(name)
	return word
}

// nextWord splits a text after its first word: the longest run of letters, digits, _ and $. All other characters separate words, as do the ends of
// names and constants in HogQL.
func nextWord(text string) (word, rest string) {
	start := 0
	for start < len(text) && !inWord[text[start]] {
		start++
	}
	end := start
	for end < len(text) && inWord[text[end]] {
		end++
	}
	return text[start:end], text[end:]
}

var inWord = func() (in [256]bool) {
	for c := range in {
		in[c] = c >= utf8.RuneSelf || c == '_' || c == '$' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
	}
	return in
}()

// maxScanned is how many bytes of texts are searched for words, so that finding them takes a few milliseconds.
const maxScanned = 1 << 20

// words notes the words of a text.
func (f *useFinder) words(text string) {
	if f.named == nil || f.found.AllProperties {
		return
	}
	if f.scanned += len(text); f.scanned > maxScanned {
		f.found.AllProperties = true
		return
	}
	for word, rest := nextWord(text); word != ""; word, rest = nextWord(rest) {
		f.named(word)
	}
}

// textWords notes the words of a HogQL query, and those of the constants that take the place of its placeholders.
func (f *useFinder) textWords(q *query.HogQL) {
	if f.named == nil {
		return
	}
	f.words(q.Query)
	constant := func(value any) {
		if text, ok := value.(string); ok {
			f.words(text)
		}
	}
	for _, value := range q.Values {
		constant(value)
	}
	for _, v := range q.Variables {
		constant(v.Value)
		constant(f.env.Variables[v.CodeName])
	}
}

// unescaped notes the words of names and constants that are written with escapes. A text without a backslash has none.
func (f *useFinder) unescaped(e hogql.Expr) {
	switch e := e.(type) {
	case *hogql.Const:
		if text, ok := e.Value.(string); ok {
			f.words(text)
		}
	case *hogql.Field:
		for _, name := range e.Chain {
			f.words(name.Text)
		}
	case *hogql.Member:
		f.words(e.Name.Text)
	default: // has no name of a property, apart from those below it
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
