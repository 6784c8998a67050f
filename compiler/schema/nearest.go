package schema

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// longestNear is the longest name that Nearest compares, in characters. A longer name has no nearest one: nobody mistypes that much by accident, and
// comparing two names takes time proportional to the product of their lengths.
const longestNear = 64

// Nearest returns the name, among the given ones, that was probably meant by an unknown name, or "" if none is near. Names that only differ in case
// are nearest; then those with the fewest missing, additional, wrong and swapped characters, ignoring case; then the one that begins most like it;
// then the alphabetically first. Longer names may have more mistakes.
func Nearest(name string, among iter.Seq[string]) string {
	if len(name) > longestNear*utf8.UTFMax {
		return ""
	}
	wanted := []rune(strings.ToLower(name))
	if len(wanted) == 0 || len(wanted) > longestNear {
		return ""
	}
	nearest, least := "", maxDistance(len(wanted))+1
	for candidate := range among {
		if len(candidate) > longestNear*utf8.UTFMax {
			continue
		}
		d := distance(wanted, []rune(strings.ToLower(candidate)), least)
		if d < least || d == least && nearest != "" && likelier(name, candidate, nearest) {
			nearest, least = candidate, d
		}
	}
	return nearest
}

// likelier reports whether a is meant by a name rather than b, which is as near: mistakes at the beginning are rare.
func likelier(name, a, b string) bool {
	if first, other := commonPrefix(name, a), commonPrefix(name, b); first != other {
		return first > other
	}
	return a < b
}

// commonPrefix returns how many bytes two names have in common at the beginning, whatever their case.
func commonPrefix(a, b string) (n int) {
	a, b = strings.ToLower(a), strings.ToLower(b)
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// maxDistance returns the number of mistakes up to which a name of n characters is near.
func maxDistance(n int) int {
	switch {
	case n < 3:
		return 0
	case n < 6:
		return 1
	case n < 9:
		return 2
	}
	return 3
}

// distance counts the characters to insert, delete, replace or swap with their neighbor to turn a into b (the optimal string alignment distance). It
// stops counting beyond limit, and then returns limit+1.
func distance(a, b []rune, limit int) int {
	if len(b) > longestNear || max(len(a)-len(b), len(b)-len(a)) > limit {
		return limit + 1
	}
	var rows [3][longestNear + 1]int // the rows before last, last and now
	before, last, now := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		best := i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			now[j] = min(replace, last[j]+1, now[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
			best = min(best, now[j])
		}
		if best > limit {
			return limit + 1
		}
		before, last, now = last, now, before
	}
	return min(last[len(b)], limit+1)
}
