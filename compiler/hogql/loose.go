package hogql

import "slices"

// Loose is what the tokens alone tell about a place in a text that need not be HogQL, such as a program in Hog.
type Loose struct {
	// Chain is the names up to the place, the last being the one at it.
	Chain []Name
	// Variables are the variables in scope at the place, in order of declaration.
	Variables []string
}

// LooseAt examines the name that covers the byte at a place; false if no name does, as inside a text or a comment. It reads the text before the
// place as a program in Hog: let, fun and the parameters of functions, loops and catch declare variables, which are in scope until the
// enclosing brace closes.
func LooseAt(text string, at int) (Loose, bool) {
	if _, bad := invalidUTF8(text); bad || len(text) > maxText {
		return Loose{}, false
	}
	p := &parser{text: text}
	p.tokens, p.lexical = lex(text)
	here := slices.IndexFunc(p.tokens, func(t token) bool { return int(t.start) <= at && at < int(t.end) })
	if here < 0 || !p.tokens[here].isAnyName() {
		return Loose{}, false
	}
	return Loose{Chain: p.chainTo(here), Variables: p.declared(p.tokens[:here])}, true
}

func (t token) isAnyName() bool { return t.kind == tokName || t.kind == tokQuoted }

// chainTo returns the name at a place, preceded by the names that dots join to it.
func (p *parser) chainTo(here int) []Name {
	first := here
	for first > 1 && p.tokens[first-1].kind == tokDot && p.tokens[first-2].isAnyName() {
		first -= 2
	}
	if first > 0 && (p.tokens[first-1].kind == tokDot || p.tokens[first-1].kind == tokNullDot) {
		return []Name{{}, p.nameOf(p.tokens[here])} // a member of something that is not a name
	}
	var chain []Name
	for i := first; i <= here; i += 2 {
		chain = append(chain, p.nameOf(p.tokens[i]))
	}
	return chain
}

// declared returns the variables that tokens declare and that are still in scope after the last token.
func (p *parser) declared(tokens []token) []string {
	var (
		known   []string
		blocks  []int    // how many variables were known at each opening brace
		ahead   []string // what the parentheses of a function or loop declare for the block after them
		heading int      // how many parentheses of such a head are open
	)
	for i, t := range tokens {
		before := token{}
		if i > 0 {
			before = tokens[i-1]
		}
		switch {
		case t.kind == tokLBrace && heading == 0:
			blocks = append(blocks, len(known))
			known, ahead = append(known, ahead...), nil
		case t.kind == tokRBrace && len(blocks) > 0 && heading == 0:
			known, blocks = known[:blocks[len(blocks)-1]], blocks[:len(blocks)-1]
		case t.kind == tokLParen && (heading > 0 || p.headsBlock(tokens[:i])):
			heading++
		case t.kind == tokRParen && heading > 0:
			heading--
		case t.kind != tokName:
		case before.word == wordLet:
			if heading > 0 {
				ahead = append(ahead, p.textOf(t))
			} else {
				known = append(known, p.textOf(t))
			}
		case before.word == wordFun && heading == 0:
			known = append(known, p.textOf(t))
		case heading == 1 && (before.kind == tokLParen || before.kind == tokComma) && t.word != wordLet:
			ahead = append(ahead, p.textOf(t))
		}
	}
	return known
}

// headsBlock reports whether a parenthesis after the tokens opens the head of a block: for (, catch (, fn ( or fun name (.
func (p *parser) headsBlock(tokens []token) bool {
	n := len(tokens)
	if n == 0 {
		return false
	}
	switch tokens[n-1].word {
	case wordFor, wordCatch, wordFn:
		return true
	default: // a call, unless it is the name in a function declaration
	}
	return n > 1 && tokens[n-2].word == wordFun
}
