package trends

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// formula computes a number from the numbers of the series (contract: trends.md, section 10).
type formula func(series []float64) float64

func parseFormulas(q *Query) ([]formula, error) {
	out := make([]formula, len(q.Formulas))
	for i, f := range q.Formulas {
		var err error
		if out[i], err = ParseFormula(f.Text, len(q.Series)); err != nil {
			return nil, unsupported(f.At, "The formula '%s' is invalid: %v", diag.Shown(f.Text), err)
		}
	}
	return out, nil
}

// The bounds of a formula.
const (
	maxFormula = 2000 // bytes
	maxNested  = 100
	// maxComputed bounds the bytes of all formulas, each counted at every point that it is computed for: two or three seconds.
	maxComputed = 50_000_000
)

// ParseFormula parses a formula over the given number of series, which it calls A, B and so on.
func ParseFormula(text string, series int) (func([]float64) float64, error) {
	if len(text) > maxFormula {
		return nil, fmt.Errorf("it is longer than %d characters", maxFormula)
	}
	p := &formulaParser{text: text, series: series}
	p.next()
	f := p.sum()
	if p.err == nil && p.token != "" {
		p.fail("unexpected '%s' at position %d", p.token, p.at+1)
	}
	if p.err != nil {
		return nil, p.err
	}
	return f, nil
}

// formulaParser is a recursive descent parser. The precedences are sum, product, sign, power, atom.
type formulaParser struct {
	text   string
	series int
	token  string // "" at the end
	at     int    // start of the token
	end    int
	depth  int
	err    error
}

func (p *formulaParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
	p.token, p.end = "", len(p.text)
}

// next reads a token: a number, a name, an operator or a parenthesis.
func (p *formulaParser) next() {
	for p.end < len(p.text) && strings.ContainsRune(" \t\r\n", rune(p.text[p.end])) {
		p.end++
	}
	p.at = p.end
	rest := p.text[p.at:]
	switch {
	case rest == "":
	case isDigit(rest[0]) || rest[0] == '.':
		p.end += numberLength(rest)
	case isLetter(rest[0]):
		for p.end < len(p.text) && (isLetter(p.text[p.end]) || isDigit(p.text[p.end])) {
			p.end++
		}
	case strings.HasPrefix(rest, "**"):
		p.end += 2
	case strings.ContainsRune("+-*/%()", rune(rest[0])):
		p.end++
	default:
		r := []rune(rest)[0]
		p.fail("unexpected '%c' at position %d", r, p.at+1)
		return
	}
	p.token = p.text[p.at:p.end]
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// numberLength returns the length of the number at the start of a text: digits, a point, an exponent.
func numberLength(s string) int {
	n := 0
	for n < len(s) && (isDigit(s[n]) || s[n] == '.') {
		n++
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		m := n + 1
		if m < len(s) && (s[m] == '+' || s[m] == '-') {
			m++
		}
		if m < len(s) && isDigit(s[m]) {
			for n = m; n < len(s) && isDigit(s[n]); {
				n++
			}
		}
	}
	return n
}

func (p *formulaParser) sum() formula {
	left := p.product()
	for p.token == "+" || p.token == "-" {
		a, minus := left, p.token == "-"
		p.next()
		b := p.product()
		left = func(x []float64) float64 {
			if minus {
				return a(x) - b(x)
			}
			return a(x) + b(x)
		}
	}
	return left
}

func (p *formulaParser) product() formula {
	left := p.sign()
	for p.token == "*" || p.token == "/" || p.token == "%" {
		a, op := left, p.token
		p.next()
		b := p.sign()
		left = func(x []float64) float64 { return multiply(op, a(x), b(x)) }
	}
	return left
}

// multiply computes a product, a quotient, or a remainder with the sign of b. Dividing by 0 gives 0.
func multiply(op string, a, b float64) float64 {
	switch {
	case op == "*":
		return a * b
	case b == 0:
		return 0
	case op == "/":
		return a / b
	}
	return a - b*math.Floor(a/b)
}

func (p *formulaParser) sign() formula {
	if p.token != "-" && p.token != "+" {
		return p.power()
	}
	minus := p.token == "-"
	if !p.enter() {
		return nil
	}
	defer p.leave()
	p.next()
	f := p.sign()
	if !minus {
		return f
	}
	return func(x []float64) float64 { return -f(x) }
}

// power binds tighter than a sign before it, and is right-associative.
func (p *formulaParser) power() formula {
	base := p.atom()
	if p.token != "**" {
		return base
	}
	if !p.enter() {
		return nil
	}
	defer p.leave()
	p.next()
	exponent := p.sign()
	return func(x []float64) float64 {
		b, e := base(x), exponent(x)
		if b == 0 && e < 0 { // a division by zero
			return 0
		}
		return math.Pow(b, e)
	}
}

func (p *formulaParser) enter() bool {
	if p.depth++; p.depth > maxNested {
		p.fail("it is nested too deeply")
		return false
	}
	return true
}

func (p *formulaParser) leave() { p.depth-- }

func (p *formulaParser) atom() formula {
	token, at := p.token, p.at
	switch {
	case token == "":
		p.fail("it ends too early")
	case token == "(":
		if !p.enter() {
			return nil
		}
		defer p.leave()
		p.next()
		f := p.sum()
		if p.token != ")" {
			p.fail("a closing parenthesis is missing")
		}
		p.next()
		return f
	case isLetter(token[0]):
		i := int(strings.ToUpper(token)[0] - 'A')
		if len(token) > 1 || token == "_" || i >= p.series {
			p.fail("there is no series '%s'", diag.Shown(token))
			return nil
		}
		p.next()
		return func(x []float64) float64 { return x[i] }
	case isDigit(token[0]) || token[0] == '.':
		v, err := strconv.ParseFloat(token, 64)
		if err != nil {
			p.fail("'%s' is not a number", diag.Shown(token))
			return nil
		}
		p.next()
		return func([]float64) float64 { return v }
	default:
		p.fail("unexpected '%s' at position %d", token, at+1)
	}
	return nil
}

// lastValues are the breakdown values whose lines come last among those of a formula, and their ranks.
var lastValues = map[string]int{insight.NullValue: 1, insight.OtherValue: 2}
