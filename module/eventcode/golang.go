package eventcode

import (
	"fmt"
	"go/format"
	"slices"
	"strings"
	"unicode"
)

var goTypes = map[Type]string{
	String: "string", Numeric: "float64", Boolean: "bool", DateTime: "time.Time", Array: "[]any", Object: "map[string]any", Any: "any",
}

const goHead = `// ` + header + `

// Package typed captures the events of a project with posthog-go. Each event has a function that makes a capture, and options that set the
// properties which are known of it:
//
//	client.Enqueue(typed.OrderedCapture("ann", typed.OrderedWithAmount(12.5)))
package typed

import (
	"maps"
%s
	"github.com/posthog/posthog-go"
)

// set sets a property.
func set(name string, value any) func(*posthog.Capture) {
	return func(c *posthog.Capture) { c.Properties[name] = value }
}

// setAll sets properties.
func setAll(properties posthog.Properties) func(*posthog.Capture) {
	return func(c *posthog.Capture) { maps.Copy(c.Properties, properties) }
}

// captureOf makes a capture of an event. The one that it is made from stays as it is.
func captureOf[Option ~func(*posthog.Capture)](base posthog.Capture, event string, options []Option) posthog.Capture {
	base.Event, base.Properties = event, maps.Clone(base.Properties)
	if base.Properties == nil {
		base.Properties = posthog.NewProperties()
	}
	for _, option := range options {
		option(&base)
	}
	return base
}
`

// An event has an option type, an option for other properties, and two functions.
const goEvent = `
// %[1]sOption sets properties of the event %[2]s.
type %[1]sOption func(*posthog.Capture)

// %[1]sCapture captures the event %[2]s of somebody.
func %[1]sCapture(distinctID string, options ...%[1]sOption) posthog.Capture {
	return captureOf(posthog.Capture{DistinctId: distinctID}, %[2]s, options)
}

// %[1]sCaptureFromBase captures the event %[2]s with what else is in a capture.
func %[1]sCaptureFromBase(base posthog.Capture, options ...%[1]sOption) posthog.Capture {
	return captureOf(base, %[2]s, options)
}

// %[1]sWithExtraProps sets any properties of the event %[2]s.
func %[1]sWithExtraProps(properties posthog.Properties) %[1]sOption {
	return setAll(properties)
}
`

var goEndings = []string{"Option", "Capture", "CaptureFromBase", "WithExtraProps"}

const goProperty = `
// %[1]s sets the property %[2]s of the event %[3]s.
func %[1]s(value %[4]s) %[5]sOption {
	return set(%[2]s, value)
}
`

func writeGo(events []Event) (string, error) {
	var b strings.Builder
	imports := ""
	if slices.ContainsFunc(events, func(e Event) bool {
		return slices.ContainsFunc(e.Properties, func(p Property) bool { return p.Type == DateTime })
	}) {
		imports = "\t\"time\"\n"
	}
	fmt.Fprintf(&b, goHead, imports)
	taken := names{}
	bases := make([]string, len(events))
	for i, e := range events { // before the properties, so that these change no event's name
		bases[i] = taken.take(exported(e.Name, unicode.IsLetter), goEndings...)
	}
	for i, e := range events {
		fmt.Fprintf(&b, goEvent, bases[i], quote(e.Name))
		for _, p := range e.Properties {
			option := taken.take(bases[i]+"With"+propertyWords(p.Name), "")
			fmt.Fprintf(&b, goProperty, option, quote(p.Name), quote(e.Name), goTypes[p.Type], bases[i])
		}
	}
	code, err := format.Source([]byte(b.String()))
	if err != nil {
		return "", fmt.Errorf("formatting what was written: %w", err)
	}
	return string(code), nil
}

// propertyWords turns a property's name into part of an identifier.
func propertyWords(name string) string {
	if out := words(name, unicode.IsLetter); out != "" {
		return out
	}
	return "Property"
}
