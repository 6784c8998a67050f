package hogql

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

// tagNames are the tags that user interfaces render. Any other tag is a kind of query.
var tagNames = func() map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(`Sparkline RecordingButton ExplainCSPReport a blink marquee redacted em strong span div p pre
		code h1 h2 h3 h4 h5 h6 ul ol li table thead tbody tr th td blockquote hr b i u`) {
		names[name] = true
	}
	return names
}()

// queryTag is the only kind of query allowed as a tag.
const queryTag = "HogQLQuery"

// tag is a tag as written.
type tag struct {
	start    int
	name     Name
	attrs    []attribute
	children []Expr // texts, tags and other expressions
}

// attribute is an attribute of a tag; its value is true if none is written.
type attribute struct {
	name  Name
	value Expr
	text  *token // the value if it is plain text
}

// tagExpr parses a tag used as a value: the tuple that user interfaces read as a tag, or the subquery that it means.
func (p *parser) tagExpr() Expr {
	t, ok := p.tag()
	if !ok {
		return badExpr()
	}
	if q := p.queryOf(t); q != nil {
		return &Subquery{Pos: p.from(t.start), Query: q}
	}
	return p.tagTuple(t)
}

// tagQuery parses a tag that means a query.
func (p *parser) tagQuery() Query {
	t, ok := p.tag()
	if !ok {
		return new(Select)
	}
	q := p.queryOf(t)
	if q == nil {
		p.fail(diag.QueryError, t.name.Pos, "<%s /> is not a query: write <%s query='…' />", clip(t.name.Text), queryTag)
		return new(Select)
	}
	return q
}

// tag parses <name attribute='text' other={expression} /> or <name …>children</name>.
func (p *parser) tag() (*tag, bool) {
	if !p.enter() {
		return nil, false
	}
	defer p.leave()
	t := &tag{start: p.start()}
	p.expect(tokTag, "a tag")
	t.name = p.memberName()
	for p.mistake == nil && p.at(tokName) {
		t.attrs = append(t.attrs, p.attribute())
	}
	if p.accept(tokTagClosed) {
		return t, p.mistake == nil
	}
	p.expect(tokTagEnd, "an attribute, '>' or '/>'")
	for p.mistake == nil && !p.accept(tokTagClosing) {
		p.child(t)
	}
	p.closing(t)
	return t, p.mistake == nil
}

// attribute parses name, name='text' or name={expression}.
func (p *parser) attribute() attribute {
	a := attribute{name: p.memberName()}
	if !p.accept(tokEquals) {
		a.value = &Const{Pos: a.name.Pos, Value: true}
		return a
	}
	if t := p.cur(); p.accept(tokString) {
		a.value, a.text = &Const{Pos: t.span(), Value: p.contentOf(t)}, &t
		return a
	}
	p.expect(tokLBrace, "a string or '{'")
	a.value = tagValue(p.expr(levelAlias))
	p.expect(tokRBrace, "'}'")
	return a
}

// child parses one item between a tag and its closing tag. Whitespace with a line break is not a child.
func (p *parser) child(t *tag) {
	switch c := p.cur(); c.kind {
	case tokTagText:
		p.next()
		text := p.textOf(c)
		if strings.TrimSpace(text) != "" || !strings.ContainsAny(text, "\r\n") {
			t.children = append(t.children, &Const{Pos: c.span(), Value: text})
		}
	case tokTag:
		t.children = append(t.children, p.tagExpr())
	case tokLBrace:
		p.next()
		t.children = append(t.children, tagValue(p.expr(levelAlias)))
		p.expect(tokRBrace, "'}'")
	default:
		p.unexpected("a text, a tag or '{'")
	}
}

// closing parses the name and the end of a closing tag, and checks the tag.
func (p *parser) closing(t *tag) {
	if p.mistake != nil {
		return
	}
	name := p.memberName()
	p.expect(tokTagEnd, "'>'")
	if p.mistake == nil && name.Text != t.name.Text {
		p.refuse(name.Pos, "Opening and closing HogQLX tags must match. Got %s and %s", clip(t.name.Text), clip(name.Text))
	}
	for _, a := range t.attrs {
		if a.name.Text == "children" && len(t.children) > 0 {
			p.refuse(a.name.Pos, "Can't have a HogQLX tag with both children and a 'children' attribute")
		}
	}
}

// tagTuple returns a tag as a tuple: its name, then each attribute's name and value, the children last.
func (p *parser) tagTuple(t *tag) Expr {
	args := []Expr{&Const{Pos: t.name.Pos, Value: "__hx_tag"}, &Const{Pos: t.name.Pos, Value: t.name.Text}}
	for _, a := range t.attrs {
		args = append(args, &Const{Pos: a.name.Pos, Value: a.name.Text}, a.value)
	}
	if len(t.children) > 0 {
		at := t.children[0].At().To(t.children[len(t.children)-1].At())
		args = append(args, &Const{Pos: at, Value: "children"}, tupleOf(at, t.children))
	}
	return &Call{Pos: p.from(t.start), Name: "tuple", NamePos: t.name.Pos, Args: args}
}

// tagValue returns the value of an attribute or a child. A list may hold values of several types there, so it becomes a tuple.
func tagValue(e Expr) Expr {
	var items []Expr
	switch n := e.(type) { //nolint:gochecksumtype // Only lists change.
	case *Array:
		items = n.Items
	case *Tuple:
		items = n.Items
	default:
		return e
	}
	out := make([]Expr, len(items))
	for i, item := range items {
		out[i] = tagValue(item)
	}
	return tupleOf(e.At(), out)
}

func tupleOf(at Span, items []Expr) Expr {
	return &Call{Pos: at, Name: "tuple", NamePos: at, Args: items}
}

// queryOf returns the query that a tag means; nil for a tag that user interfaces render, and after a mistake.
func (p *parser) queryOf(t *tag) Query {
	name := t.name.Text
	switch {
	case tagNames[name]:
		return nil
	case name != queryTag && strings.HasSuffix(name, "Query"):
		p.fail(diag.QueryError, t.name.Pos, "<%s /> cannot be part of a query: only <%s query='…' /> can", clip(name), queryTag)
		return nil
	case name != queryTag:
		p.fail(diag.QueryError, t.name.Pos, "Unknown tag <%s />.", clip(name))
		return nil
	case len(t.children) > 0:
		p.fail(diag.QueryError, t.name.Pos, "<%s /> has no children: its query is the attribute query='…'", queryTag)
		return nil
	}
	var text *token
	for _, a := range t.attrs {
		switch {
		case a.name.Text != "query":
			p.fail(diag.QueryError, a.name.Pos, "<%s /> takes the attribute query alone, not %s", queryTag, clip(a.name.Text))
			return nil
		case a.text == nil || text != nil:
			p.fail(diag.QueryError, a.name.Pos, "<%s /> takes its query once, as a text in single quotes", queryTag)
			return nil
		}
		text = a.text
	}
	if text == nil {
		p.fail(diag.QueryError, t.name.Pos, "<%s /> needs the attribute query='…'", queryTag)
		return nil
	}
	return p.inner(*text)
}

// inner parses the query in a string of this text. Its places refer to the whole text; if the string has escapes, they are approximate.
func (p *parser) inner(t token) Query {
	text := p.contentOf(t)
	p.spend.Bytes(len(text))
	in := &parser{text: text, base: int(t.start) + 1, whole: "query of the tag", spend: p.spend, depth: p.depth, deepest: p.deepest, links: p.links}
	in.tokens, in.lexical = lexAt(text, in.base)
	q := in.setQuery()
	in.accept(tokSemicolon)
	in.end()
	p.deepest, p.links = max(p.deepest, in.deepest), in.links
	if in.mistake != nil {
		if p.mistake == nil {
			p.mistake = in.mistake
		}
		p.pos = len(p.tokens) - 1
		return nil
	}
	return q
}
