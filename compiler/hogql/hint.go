package hogql

import (
	"slices"
	"strings"
)

// inSingleQuotes is a hint for text that was written in double quotes, which are those of names, and what to write instead.
func inSingleQuotes(content string) (hint, fix string) {
	fix = PrintExpr(&Const{Value: content})
	return "Double quotes are for names. Write text in single quotes: " + fix, fix
}

// SingleQuotes returns the hint for a name in double quotes that is probably meant to be text, and what to write instead of it.
// Both are empty for a name that was written in another way.
func (n Name) SingleQuotes() (hint, fix string) {
	if !n.Double {
		return "", ""
	}
	return inSingleQuotes(n.Text)
}

// strayAdvice says what is probably wrong where a query goes on after what could have been its end: people forget to double a quote
// in a text, mistype FROM so that it becomes an alias, and write intervals as other databases have them.
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
