package query

import (
	"slices"
	"strings"
	"unicode"
)

// Display takes the fields of an insight's filter that only affect how its chart is drawn, and returns their values by name; nil for none. known are
// the fields that the kind has. Since clients keep adding new ones, others are recognized by name: a field whose name begins or ends with a
// drawing word changes no number. Call Display after the other fields of the filter have been read.
func (o *Object) Display(known ...string) map[string]any {
	var drawn map[string]any
	for name, value := range o.Given {
		if slices.Contains(o.seen, name) || !slices.Contains(known, name) && !drawing(name) {
			continue
		}
		o.seen = append(o.seen, name)
		if value == nil {
			continue
		}
		if drawn == nil {
			drawn = make(map[string]any)
		}
		drawn[name] = value
	}
	o.seen = append(o.seen, known...) // for hints about similar names
	return drawn
}

// The words that begin or end the name of a field that only affects how a chart is drawn.
var (
	drawingFirst = []string{"axis", "chart", "color", "goal", "hidden", "layout", "legend", "metric", "show", "stack", "tooltip", "x", "y"}
	drawingLast  = []string{"color", "colors", "format", "label", "labels", "layout", "legend", "palette", "position", "postfix", "prefix", "style", "theme"}
)

// drawing reports whether a name, in camel case, is that of a field that only affects how a chart is drawn.
func drawing(name string) bool {
	first := name
	if i := strings.IndexFunc(name, unicode.IsUpper); i >= 0 {
		first = name[:i]
	}
	last := name[strings.LastIndexFunc(name, unicode.IsUpper)+1:]
	if i := len(name) - len(last); i > 0 {
		last = strings.ToLower(name[i-1:i]) + last
	}
	return slices.Contains(drawingFirst, first) || slices.Contains(drawingLast, last)
}
