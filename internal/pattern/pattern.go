// Package pattern bounds regular expressions that clients send. It never compiles one: a few bytes can take gigabytes.
package pattern

import (
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/internal/shorten"
)

// The bounds of a regular expression: its length in bytes, and the number of states of its automaton. The engine refuses larger ones, but only when it
// runs a query.
const (
	MaxBytes  = 4096
	MaxStates = 20_000
)

// The mistakes of Parse besides those of the syntax.
var (
	ErrTooLong  = fmt.Errorf("it is longer than %d bytes", MaxBytes)
	ErrTooLarge = fmt.Errorf("it has more than %d states", MaxStates)
)

// Parse parses a regular expression in the syntax of RE2, which Go and the engine share. Its error is ErrTooLong, ErrTooLarge or a *syntax.Error.
func Parse(text string) (*syntax.Regexp, error) {
	if len(text) > MaxBytes {
		return nil, ErrTooLong
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if States(parsed, MaxStates) > MaxStates {
		return nil, ErrTooLarge
	}
	return parsed, nil
}

// Mistake says what is wrong with a regular expression; it is empty if nothing is.
func Mistake(text string) string {
	_, err := Parse(text)
	if err == nil {
		return ""
	}
	const shown = 200
	words := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	return fmt.Sprintf("%q is not a valid regular expression: %s.", shorten.Text(text, shown), shorten.Text(words, shown))
}

// States returns the number of states that a regular expression compiles to, and one more for each end of a range of characters. It stops counting beyond
// most.
func States(re *syntax.Regexp, most int) int {
	subs := 0
	for _, sub := range re.Sub {
		subs = min(subs+States(sub, most), most+1)
	}
	var n int
	switch re.Op {
	case syntax.OpLiteral:
		n = 2 * len(re.Rune)
	case syntax.OpCharClass:
		n = 1 + len(re.Rune)
	case syntax.OpAnyChar: // one range
		n = 3
	case syntax.OpAnyCharNotNL: // two ranges
		n = 5
	case syntax.OpConcat:
		n = subs
	case syntax.OpAlternate:
		n = subs + len(re.Sub) - 1
	case syntax.OpCapture:
		n = subs + 2
	case syntax.OpRepeat: // x{2,4} is xx(x(x)?)?, and x{2,} is xx+
		n = subs*max(re.Min, 1) + 1
		if re.Max >= 0 {
			n = subs*re.Min + (subs+1)*(re.Max-re.Min)
		}
	default: // a state of its own, and those of its part
		n = subs + 1
	}
	return min(n, most+1)
}
