// Package sqllayout breaks SQL and HogQL into lines, without losing anything.
package sqllayout

import (
	"slices"
	"strings"
)

// width is the length that lines of a layout should not exceed.
const width = 120

// MaxBytes is the length of the longest statement that Lay breaks into lines.
const MaxBytes = 256 << 10

// Lay breaks a statement into lines, with clauses, nested queries and arguments indented. [Joined] restores the statement. A statement that Joined
// would not restore, or that is longer than MaxBytes, is returned unchanged, and ok is false.
func Lay(sql string) (laid string, ok bool) {
	if len(sql) > MaxBytes {
		return sql, false
	}
	if laid = layOut(sql); Joined(laid) != sql {
		return sql, false
	}
	return laid, true
}

// Joined joins the lines that Lay made. A line end after an opening or before a closing bracket stands for nothing, any other for a space.
func Joined(laid string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(laid, "\n"), "\n") {
		if b.Len() == 0 {
			b.WriteString(line)
			continue
		}
		line = strings.TrimLeft(line, " ")
		if !opens(b.String()) && !closes(line) {
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	return b.String()
}

func opens(line string) bool { return strings.HasSuffix(line, "(") || strings.HasSuffix(line, "[") }

func closes(line string) bool { return strings.HasPrefix(line, ")") || strings.HasPrefix(line, "]") }

func layOut(sql string) string {
	p := &printer{}
	p.block(parse(sql), 0)
	return p.b.String()
}

// word is text without a space at which a line can end. Its brackets contain words again.
type word []piece

// piece is text, or the words between two brackets.
type piece struct {
	text  string
	inner []word // of brackets that can be broken into lines
}

func flat(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.String()
	}
	return strings.Join(texts, " ")
}

// String returns the word on one line.
func (w word) String() string {
	var b strings.Builder
	for _, p := range w {
		b.WriteString(p.text + flat(p.inner))
	}
	return b.String()
}

// parse splits a statement into words.
func parse(sql string) []word {
	words, end := words(sql, 0)
	if end < len(sql) { // a closing bracket without an opening one
		return []word{{{text: sql}}}
	}
	return words
}

// words reads words up to the end, or to a closing bracket without an opening one.
func words(sql string, at int) (list []word, end int) {
	var w word
	from := at
	text := func(end int) {
		if end > from {
			w = append(w, piece{text: sql[from:end]})
		}
		from = end
	}
	for at < len(sql) {
		switch c := sql[at]; c {
		case '`', '\'':
			at = quoteEnd(sql, at)
			continue
		case ' ':
			if separates(sql, at) {
				text(at)
				list, w, from = append(list, w), nil, at+1
			}
		case '(', '[':
			inner, closing := words(sql, at+1)
			if closing < len(sql) && closing > at+1 && sql[at+1] != ' ' && sql[closing-1] != ' ' {
				text(at + 1)
				w = append(w, piece{inner: inner})
				from = closing
			}
			at = closing
		case ')', ']':
			text(at)
			return append(list, w), at
		}
		at++
	}
	text(len(sql))
	return append(list, w), len(sql)
}

// separates reports whether a line can end at a space.
func separates(sql string, at int) bool {
	return at > 0 && at < len(sql)-1 && !strings.ContainsRune(" ([", rune(sql[at-1])) && !strings.ContainsRune(" )]", rune(sql[at+1]))
}

func quoteEnd(sql string, at int) int {
	for i := at + 1; i < len(sql); i++ {
		switch sql[i] {
		case '\\':
			i++
		case sql[at]:
			return i + 1
		}
	}
	return len(sql)
}

type printer struct {
	b      strings.Builder
	column int
}

func (p *printer) write(s string) {
	p.b.WriteString(s)
	p.column += len(s)
}

func (p *printer) newline(indent int) {
	p.b.WriteString("\n" + strings.Repeat(" ", indent))
	p.column = indent
}

func (p *printer) fits(text string) bool { return p.column+len(text) <= width }

// block writes words that begin a line.
func (p *printer) block(words []word, indent int) {
	if p.fits(flat(words)) {
		p.write(flat(words))
		return
	}
	if parts := cut(words, clauses); len(parts) > 1 || clauseWords[words[0].String()] {
		p.lines(parts, indent, p.clause)
		return
	}
	p.items(words, indent)
}

// lines writes each part on lines of its own.
func (p *printer) lines(parts [][]word, indent int, write func([]word, int)) {
	for i, part := range parts {
		if i > 0 {
			p.newline(indent)
		}
		write(part, indent)
	}
}

// clause writes a clause. If its items do not fit on its line, they are on lines below it.
func (p *printer) clause(words []word, indent int) {
	head := 1
	if len(words) > 1 && words[1].String() == "BY" {
		head = 2
	}
	if p.fits(flat(words)) || len(words) <= head || len(cut(words[head:], commas)) == 1 {
		p.items(words, indent)
		return
	}
	p.write(flat(words[:head]))
	p.newline(indent + 2)
	p.items(words[head:], indent+2)
}

// items writes each item of a list, or each side of AND and OR, on a line of its own.
func (p *printer) items(words []word, indent int) {
	switch {
	case p.fits(flat(words)):
		p.write(flat(words))
	case len(cut(words, commas)) > 1:
		p.lines(cut(words, commas), indent, p.items)
	case len(cut(words, conditions)) > 1:
		p.lines(cut(words, conditions), indent+2, p.words)
	default:
		p.words(words, indent)
	}
}

// words fills lines with words, and breaks brackets that do not fit.
func (p *printer) words(words []word, indent int) {
	for i, w := range words {
		text := w.String()
		switch {
		case i == 0:
		case p.fits(" "+text) || slices.ContainsFunc(w, func(p piece) bool { return p.inner != nil }) && p.column < width/2:
			p.write(" ")
		default:
			p.newline(indent + 2)
		}
		if p.fits(text) {
			p.write(text)
			continue
		}
		for _, piece := range w {
			if inner := flat(piece.inner); piece.inner == nil || p.fits(inner+")") {
				p.write(piece.text + inner)
				continue
			}
			p.newline(indent + 2)
			p.block(piece.inner, indent+2)
			p.newline(indent)
		}
	}
}

// cut splits a list before each word for which before is true.
func cut(words []word, before func(words []word, i int) bool) (parts [][]word) {
	from := 0
	for i := 1; i < len(words); i++ {
		if before(words, i) {
			parts = append(parts, words[from:i])
			from = i
		}
	}
	return append(parts, words[from:])
}

func commas(words []word, i int) bool { return strings.HasSuffix(words[i-1].String(), ",") }

func conditions(words []word, i int) bool {
	text := words[i].String()
	return text == "AND" || text == "OR"
}

// The words that begin clauses, and those that may precede JOIN.
var (
	clauseWords = set("WITH SELECT FROM PREWHERE WHERE GROUP HAVING WINDOW QUALIFY ORDER LIMIT OFFSET UNION EXCEPT INTERSECT SETTINGS")
	joinWords   = set("GLOBAL ANY ALL ASOF SEMI ANTI LEFT RIGHT FULL INNER OUTER CROSS ARRAY JOIN")
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

func clauses(words []word, i int) bool {
	text := words[i].String()
	if joinWords[text] {
		return !joinWords[words[i-1].String()] && words[i-1].String() != "UNION"
	}
	return clauseWords[text]
}
