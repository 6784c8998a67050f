package sql

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

// ident writes a name chosen by the author or the schema: bare if that is safe, otherwise in backquotes.
func (p *printer) ident(name string) {
	if strings.IndexByte(name, '%') >= 0 {
		panic(mistake{diag.New(diag.QueryError, diag.Span{}, `The HogQL identifier "%s" is not permitted as it contains the "%%" character`, name)})
	}
	if plain(name) {
		p.str(name)
		return
	}
	p.quoted(name)
}

// quoted writes a name in backquotes. That works for every name except the empty one.
func (p *printer) quoted(name string) {
	if name == "" {
		p.bug("an empty identifier")
	}
	p.byte('`')
	for i := range len(name) {
		switch c := name[i]; c {
		case '`', '\\':
			p.buf = append(p.buf, '\\', c)
		case 0:
			p.str(`\0`)
		default:
			p.byte(c)
		}
	}
	p.byte('`')
}

// plain reports whether a name can be written without backquotes: a word that is not a keyword.
func plain(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9' || i == 0) {
			return false
		}
	}
	return name != "" && !keyword(name)
}

const longestKeyword = 16

// keyword reports whether ClickHouse may read the word as something other than a name.
func keyword(word string) bool {
	if len(word) > longestKeyword {
		return false
	}
	var folded [longestKeyword]byte
	for i := range len(word) {
		c := word[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		folded[i] = c
	}
	_, found := keywords[string(folded[:len(word)])]
	return found
}

// keywords are the words that ClickHouse's parser looks for where a name can be, and the names of its constants. An unnecessary word only costs a pair
// of backquotes.
var keywords = makeKeywords(`all alter and anti any array as asc ascending asof between both by case cast check cluster collate create
cross cube current desc descending describe distinct div drop else end escape except exists explain extract
false fill filter final for format from full function global grant group grouping having if ilike in inf
infinity inner intersect interval into is join left like limit local materialized mod nan natural not null
nulls offset on only optimize or order outer outfile over parallel paste prewhere qualify range recursive regexp revoke
right rollup sample select semi set settings system table temporary then ties to top totals trailing trim true truncate
unbounded union update use using values view when where window with within years`)

func makeKeywords(words string) map[string]struct{} {
	set := make(map[string]struct{}, 200)
	for word := range strings.FieldsSeq(words) {
		set[word] = struct{}{}
	}
	return set
}
