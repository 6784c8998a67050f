// Package eventcode writes the events of a project as code, with the types of their properties: in TypeScript, Go and Python, as a wrapper of
// PostHog's SDK for the language. What it writes depends on the events alone. Names are shown as literals of ASCII characters, also in
// comments, and everything else is fixed or made of letters and digits, so that no name ends a literal or a comment.
package eventcode

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Type is what values a property has.
type Type int

// The types. Any is that of properties of which nothing or several things are known.
const (
	Any Type = iota
	String
	Numeric
	Boolean
	DateTime
	Array
	Object
)

// Property is a property of an event. None is known to be in all of an event's, so that all can be left out.
type Property struct {
	Name string
	Type Type
}

// Event is an event with the properties that are known. Without any it can have each.
type Event struct {
	Name       string
	Properties []Property
}

// Language writes events in a language.
type Language struct {
	Name string // in a path
	// Write writes code for events of different names, each with properties of different names.
	Write func(events []Event) (string, error)
}

// Languages are the languages that there are.
var Languages = []Language{{"typescript", writeTypeScript}, {"golang", writeGo}, {"python", writePython}}

// Hash is a short name for code, which changes whenever that does.
func Hash(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:16])
}

// Sorted returns the events in the order of their names, and their properties too.
func Sorted(events []Event) []Event {
	events = slices.Clone(events)
	slices.SortFunc(events, func(a, b Event) int { return cmp.Compare(a.Name, b.Name) })
	for i := range events {
		events[i].Properties = slices.Clone(events[i].Properties)
		slices.SortFunc(events[i].Properties, func(a, b Property) int { return cmp.Compare(a.Name, b.Name) })
	}
	return events
}

const header = "Code generated from the events of a project. DO NOT EDIT."

// quote writes a text as a literal that is the same in Go and in Python, of ASCII characters.
func quote(text string) string { return strconv.QuoteToASCII(strings.ToValidUTF8(text, "\uFFFD")) }

// longest is how many characters of a name an identifier has at most.
const longest = 80

// words makes an identifier's part of a name: its letters and digits, with a capital after everything else. It is empty if the name has none.
func words(name string, isLetter func(rune) bool) string {
	var out []rune
	start := true
	for _, r := range name {
		switch {
		case !isLetter(r) && !unicode.IsDigit(r), r > unicode.MaxASCII && !isLetter(r):
			start = true
			continue
		case start:
			r = unicode.ToUpper(r)
		}
		if out, start = append(out, r), false; len(out) == longest {
			break
		}
	}
	return string(out)
}

// isASCIILetter reports whether a rune is a letter in every language.
func isASCIILetter(r rune) bool { return r <= unicode.MaxASCII && unicode.IsLetter(r) }

// exported makes a part of an identifier that begins with a capital, whatever the name.
func exported(name string, isLetter func(rune) bool) string {
	out := words(name, isLetter)
	if out == "" || !unicode.IsUpper([]rune(out)[0]) {
		return "Event" + out
	}
	return out
}

// names are the identifiers that are taken.
type names map[string]bool

// take takes an identifier with each of the endings, and returns what comes before these: the base, with a number if it is needed.
func (n names) take(base string, endings ...string) string {
	free := base
	for i := 2; slices.ContainsFunc(endings, func(ending string) bool { return n[free+ending] }); i++ {
		free = base + strconv.Itoa(i)
	}
	for _, ending := range endings {
		n[free+ending] = true
	}
	return free
}
