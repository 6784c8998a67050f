package typetext

import (
	"fmt"
	"strconv"
	"strings"
)

// parser reads a type and writes it at the same time. After a mistake it stays at the end of the text.
type parser struct {
	text  string
	zones Zones
	token token
	out   strings.Builder
	types int
	err   *Error
}

// fail records the first mistake, and ends the parsing.
func (p *parser) fail(at token, format string, args ...any) {
	if p.err == nil {
		p.err = &Error{Detail: fmt.Sprintf(format, args...), Start: at.start, End: at.end}
	}
	p.token = token{start: len(p.text), end: len(p.text)}
}

// take reads and writes a sign if it comes next, and reports whether it did.
func (p *parser) take(s string) bool {
	if p.token.kind != sign || p.token.value != s {
		return false
	}
	p.out.WriteString(s)
	p.next()
	return true
}

// want reads a required sign.
func (p *parser) want(s string) {
	if !p.take(s) {
		p.fail(p.token, "Unexpected %s in a type, expected %q", p.shown(p.token), s)
	}
}

// typ reads a type.
func (p *parser) typ(depth int) {
	name := p.token
	switch p.types++; {
	case name.kind != word:
		p.fail(name, "Unexpected %s in a type, expected the name of a type", p.shown(name))
		return
	case depth == maxDepth:
		p.fail(name, "Types are nested at most %d deep", maxDepth)
		return
	case p.types > maxTypes:
		p.fail(name, "A type has at most %d parts", maxTypes)
		return
	}
	f, ok := families[name.value]
	if !ok {
		f, ok = families[aliases[strings.ToLower(name.value)]]
	}
	if !ok {
		p.fail(name, "Unknown type: %s", name.value)
		p.err.Name, p.err.Among = name.value, Names()
		return
	}
	p.out.WriteString(f.name)
	p.next()
	p.params(f, depth)
}

// params reads the parameters of a type.
func (p *parser) params(f family, depth int) {
	optional := f.form == plain || f.form == optionalZone || f.form == precisionZone
	if optional && (p.token.kind != sign || p.token.value != "(") {
		return
	}
	if f.form == plain {
		p.fail(p.token, "The type %s has no parameters", f.name)
		return
	}
	p.want("(")
	switch f.form {
	case plain:
	case optionalZone:
		p.zone()
	case precisionZone:
		p.number(f.name, f.low, f.high)
		if p.take(",") {
			p.zone()
		}
	case oneNumber:
		p.number(f.name, f.low, f.high)
	case twoNumbers:
		n := p.number(f.name, f.low, f.high)
		if p.take(",") {
			p.number(f.name, 0, n)
		}
	case oneType:
		p.typ(depth + 1)
	case twoTypes:
		p.typ(depth + 1)
		p.want(",")
		p.typ(depth + 1)
	case elements:
		p.elements(depth)
	case values:
		p.values(f)
	}
	p.want(")")
}

// number reads a number within bounds.
func (p *parser) number(of string, low, high int) int {
	t := p.token
	n, err := strconv.Atoi(t.value)
	if t.kind != number || err != nil || n < low || n > high {
		p.fail(t, "Unexpected %s in the type %s, expected a number from %d to %d", p.shown(t), of, low, high)
		return 0
	}
	p.out.WriteString(strconv.Itoa(n))
	p.next()
	return n
}

// zone reads the name of a time zone.
func (p *parser) zone() {
	t := p.token
	if t.kind != text {
		p.fail(t, "Unexpected %s in a type, expected the name of a time zone in quotes", p.shown(t))
		return
	}
	target, ok := p.zones.Lookup(t.value)
	if !ok {
		p.fail(token{start: t.start + 1, end: t.end - 1}, "Unknown time zone: %s", t.value)
		p.err.Name, p.err.Among = t.value, p.zones.Names()
		return
	}
	p.write('\'', target)
	p.next()
}

// elements reads the elements of a tuple.
func (p *parser) elements(depth int) {
	p.element(depth)
	for p.take(",") {
		p.element(depth)
	}
}

// element reads a type with an optional name before it.
func (p *parser) element(depth int) {
	name := p.token
	if name.kind == quoted || name.kind == word && p.wordFollows() {
		p.write('`', name.value)
		p.out.WriteByte(' ')
		p.next()
	}
	p.typ(depth + 1)
}

// wordFollows reports whether the token after the current one is a word.
func (p *parser) wordFollows() bool {
	ahead := parser{text: p.text, token: p.token}
	ahead.next()
	return ahead.token.kind == word
}

// values reads the values of an Enum.
func (p *parser) values(f family) {
	for n := 1; ; n++ {
		t := p.token
		switch {
		case t.kind != text:
			p.fail(t, "Unexpected %s in the type %s, expected a text in quotes", p.shown(t), f.name)
			return
		case n > maxValues:
			p.fail(t, "The type %s has at most %d values", f.name, maxValues)
			return
		}
		p.write('\'', t.value)
		p.next()
		if p.take("=") {
			p.number(f.name, f.low, f.high)
		}
		if !p.take(",") {
			return
		}
	}
}
