package hogql

import (
	"math"
	"strconv"
	"strings"
)

// number parses a number after its sign.
func (p *parser) number(start int, negative bool) Expr {
	t := p.next()
	at := p.from(start)
	switch t.word {
	case wordInf:
		sign := 1
		if negative {
			sign = -1
		}
		return &Const{Pos: at, Value: math.Inf(sign)}
	case wordNaN:
		return &Const{Pos: at, Value: math.NaN()}
	default: // a number of digits
	}
	value, ok := parseNumber(p.textOf(t), negative)
	if !ok {
		p.refuse(at, "The number %s is too large", clip(p.textAt(at)))
	}
	return &Const{Pos: at, Value: value}
}

// parseNumber returns the value of a number that the lexer accepted: an int64, a uint64 if that is too small, or a float64 for fractions and anything
// larger. It fails if a float64 is too small as well.
func parseNumber(text string, negative bool) (value any, ok bool) {
	base, body, float := 10, text, false
	switch {
	case hasPrefixFold(text, "0x"):
		base, body = 16, text[2:]
		float = strings.ContainsAny(body, ".pP")
	case hasPrefixFold(text, "0b"):
		base, body = 2, text[2:]
	default:
		float = strings.ContainsAny(body, ".eE")
	}
	if !float {
		n, err := strconv.ParseUint(body, base, 64)
		if err == nil {
			return integer(n, negative), true
		}
		if base == 2 {
			return nil, false
		}
	}
	if base == 16 && !strings.ContainsAny(body, "pP") {
		text += "p0"
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, false
	}
	if negative {
		f = -f
	}
	return f, true
}

// integer returns n with its sign, in the smallest type that holds it.
func integer(n uint64, negative bool) any {
	switch {
	case n <= math.MaxInt64 && negative:
		return -int64(n)
	case n <= math.MaxInt64:
		return int64(n)
	case !negative:
		return n
	case n == math.MaxInt64+1:
		return int64(math.MinInt64)
	}
	return -float64(n)
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// template parses a template string: its parts joined by concat, or its only part.
func (p *parser) template(start int) Expr {
	at := p.next().span()
	var parts []Expr
	for p.mistake == nil && !p.at(tokTemplateEnd) {
		t := p.cur()
		switch t.kind {
		case tokTemplateText:
			p.next()
			text := p.textOf(t)
			if t.escaped {
				text = unescape(text, '\'')
			}
			parts = append(parts, &Const{Pos: t.span(), Value: text})
		case tokLBrace:
			p.next()
			parts = append(parts, p.expr(levelAlias))
			p.expect(tokRBrace, "'}'")
		default:
			p.unexpected("the end of the template string")
		}
	}
	p.next()
	switch len(parts) {
	case 0:
		return &Const{Pos: p.from(start), Value: ""}
	case 1:
		return parts[0]
	}
	return &Call{Pos: p.from(start), Name: "concat", NamePos: at, Args: parts}
}

// timeLiteral parses DATE '…' or TIMESTAMP '…'.
func (p *parser) timeLiteral(start int) Expr {
	t, text := p.next(), p.next()
	name := "toDate"
	if t.word == wordTimestamp {
		name = "toDateTime"
	}
	args := []Expr{&Const{Pos: text.span(), Value: p.contentOf(text)}}
	return &Call{Pos: p.from(start), Name: name, NamePos: t.span(), Args: args}
}

// intervalUnits are the units of INTERVAL.
var intervalUnits = [...]string{"second", "minute", "hour", "day", "week", "month", "quarter", "year"}

// intervalUnit returns the unit that a word names in singular or plural.
func intervalUnit(s string) string {
	for _, unit := range intervalUnits {
		if hasPrefixFold(s, unit) && (len(s) == len(unit) || strings.EqualFold(s[len(unit):], "s")) {
			return unit
		}
	}
	return ""
}

func (p *parser) isUnit(t token) bool { return t.kind == tokName && intervalUnit(p.textOf(t)) != "" }

// startsInterval reports whether the next word, INTERVAL, starts a literal rather than being a name.
func (p *parser) startsInterval() bool {
	switch t := p.ahead(1); t.kind {
	case tokNumber, tokString, tokLParen, tokLBrace, tokQuoted:
		return true
	case tokName:
		return keywordUses[t.word] == anyName
	case tokMinus:
		return p.ahead(2).kind == tokNumber && p.isUnit(p.ahead(3))
	default: // anything else continues with a column of this name
	}
	return false
}

// interval parses INTERVAL n unit or INTERVAL 'n unit'.
func (p *parser) interval(start int) Expr {
	p.next()
	if t := p.cur(); t.kind == tokString && !p.isUnit(p.ahead(1)) {
		p.next()
		words := strings.Fields(p.contentOf(t))
		if len(words) == 2 {
			n, err := strconv.ParseInt(words[0], 10, 64)
			if unit := intervalUnit(words[1]); err == nil && unit != "" {
				return &Interval{Pos: p.from(start), N: &Const{Pos: t.span(), Value: n}, Unit: unit}
			}
		}
		p.refuse(t.span(), "Unsupported interval %s, expected a whole number and a unit, such as '2 days'", clip(p.textOf(t)))
		return badExpr()
	}
	n := p.expr(levelTernary)
	if !p.isUnit(p.cur()) {
		p.unexpected("a unit: second, minute, hour, day, week, month, quarter or year")
		return badExpr()
	}
	unit := intervalUnit(p.textOf(p.next()))
	return &Interval{Pos: p.from(start), N: n, Unit: unit}
}

// trimFunction returns the function for the form of TRIM that comes next, such as TRIM(BOTH …); empty for a plain call.
func (p *parser) trimFunction() string {
	if !startsExpr(p.ahead(3)) {
		return "" // a column of that name
	}
	switch p.ahead(2).word {
	case wordBoth:
		return "trim"
	case wordLeading:
		return "trimLeft"
	case wordTrailing:
		return "trimRight"
	default: // no side is named
	}
	return ""
}

// trim parses TRIM(BOTH 'x' FROM s).
func (p *parser) trim(start int) Expr {
	name := p.trimFunction()
	at := p.next().span()
	p.next()
	p.next()
	what := p.expr(levelTernary)
	p.expectWord(wordFrom, "FROM")
	from := p.expr(levelTernary)
	p.expect(tokRParen, "')'")
	return &Call{Pos: p.from(start), Name: name, NamePos: at, Args: []Expr{from, what}}
}
