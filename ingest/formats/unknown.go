package formats

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/internal/shorten"
)

// Unknown is a field that became nothing.
type Unknown struct {
	Name  string
	Lines int
	Meant string // a known field with nearly this name; empty for none
}

const (
	maxUnknown   = 100 // names that are counted
	listUnknown  = 20  // names that are listed
	maxNameBytes = 100
)

// unknownFields counts fields that are not known.
type unknownFields struct {
	counts map[string]*Unknown
	more   bool
}

// add counts a field. known lists the fields that it may be a misspelling of.
func (u *unknownFields) add(name string, known func() []string) {
	short := shortened(name) // a name may be as long as its line
	if one := u.counts[short]; one != nil {
		one.Lines++
		return
	}
	if len(u.counts) >= maxUnknown {
		u.more = true
		return
	}
	if u.counts == nil {
		u.counts = map[string]*Unknown{}
	}
	short = strings.Clone(short)
	u.counts[short] = &Unknown{Name: short, Lines: 1, Meant: nearest(name, known())}
}

func shortened(name string) string { return shorten.Text(name, maxNameBytes) }

// list returns the fields with the most lines, and the number of the others. That is a lower bound if there were too many to count.
func (u *unknownFields) list() (fields []Unknown, more int) {
	for _, one := range u.counts {
		fields = append(fields, *one)
	}
	slices.SortFunc(fields, func(a, b Unknown) int { return cmp.Or(cmp.Compare(b.Lines, a.Lines), strings.Compare(a.Name, b.Name)) })
	if len(fields) > listUnknown {
		fields, more = fields[:listUnknown], len(fields)-listUnknown
	}
	if u.more {
		more++
	}
	return fields, more
}

// nearest returns the known name that a name may be a misspelling of, or nothing.
func nearest(name string, known []string) string {
	if len(name) > 2*maxNameBytes {
		return ""
	}
	plain := func(s string) string { return strings.ReplaceAll(strings.ToLower(strings.Trim(s, "$_ ")), "_", "") }
	best, distance := "", max(1, len(name)/4)+1
	for _, k := range known {
		d := edits(plain(name), plain(k))
		if d < distance {
			best, distance = k, d
		}
	}
	return best
}

// edits counts the bytes that must be changed, added or removed to turn one text into the other.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j], row[j+1]) + 1
			if a[i] == b[j] {
				next = min(next, diagonal)
			} else {
				next = min(next, diagonal+1)
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
