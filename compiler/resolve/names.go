package resolve

import (
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// names are the names that are taken in one place of the core form, each with the number of names made of it. The zero
// value is ready.
type names struct{ taken map[string]int }

// unique makes a printable name that is not taken, and takes it.
func (n *names) unique(name string) string {
	if n.taken == nil {
		n.taken = map[string]int{}
	}
	base := printable(name)
	out := base
	for n.taken[out] > 0 {
		n.taken[base]++
		out = base + "_" + strconv.Itoa(n.taken[base])
	}
	n.taken[out]++
	return out
}

// longestName bounds printed names, in bytes.
const longestName = 60

// printable makes a plain word of a name: dots would lead below a column, and long expressions help nobody.
func printable(name string) string {
	if len(name) > longestName {
		name = name[:longestName]
	}
	out := make([]byte, 0, len(name))
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '$':
			out = append(out, c)
		case len(out) > 0 && out[len(out)-1] != '_':
			out = append(out, '_')
		}
	}
	for len(out) > 1 && out[len(out)-1] == '_' && name[len(name)-1] != '_' {
		out = out[:len(out)-1]
	}
	if len(out) == 0 || strings.EqualFold(string(out), schema.ProjectColumn) {
		return string(out) + "_"
	}
	return string(out)
}
