package hogql

import (
	"slices"
	"strings"
)

// inSingleQuotes returns a hint for text written in double quotes, which are for names, and what to write instead.
func inSingleQuotes(content string) (hint, fix string) {
	fix = PrintExpr(&Const{Value: content})
	return "Double quotes are for names. Write text in single quotes: " + fix, fix
}

// SingleQuotes returns the hint for a name in double quotes that was probably meant as text, and what to write instead. Both are empty for a name
// written without double quotes.
func (n Name) SingleQuotes() (hint, fix string) {
	if !n.Double {
		return "", ""
	}
	return inSingleQuotes(n.Text)
}

// strayAdvice guesses what is wrong when a query continues after a possible end: people forget to double a quote in a text, mistype FROM so that it
// becomes an alias, and write intervals as in other databases.
func (p *parser) strayAdvice() string {
	if p.pos == 0 {
		return ""
	}
	t, before := p.cur(), p.tokens[p.pos-1]
	word, last := strings.ToLower(p.textOf(t)), strings.ToLower(p.textOf(before))
	switch {
	case before.kind == tokString && int(before.end) == int(t.start):
		return "Write a quote inside of a text twice: 'it''s'"
	case before.kind == tokName && slices.Contains(mistypedFrom, last):
		return "Did you mean FROM by '" + p.textOf(before) + "'?"
	case before.kind == tokNumber && t.kind == tokName && slices.Contains(unitsOfTime, strings.TrimSuffix(word, "s")):
		return "Write a length of time as an interval: interval " + p.textOf(before) + " " + strings.TrimSuffix(word, "s")
	}
	return ""
}

var (
	mistypedFrom = []string{"form", "fom", "frm", "fro", "fron", "rfom", "fromm", "forn"}
	unitsOfTime  = []string{"second", "minute", "hour", "day", "week", "month", "quarter", "year"}
)
