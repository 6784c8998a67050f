// Package eventcode writes the events of a project as code, with the types of their properties, in TypeScript, Go and Python: a wrapper of PostHog's
// SDK for the language. Its output depends on the events alone. Names appear as ASCII literals, also in comments, and everything else is fixed or
// consists of letters and digits, so that no name can end a literal or a comment.
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

// Type is the type of a property's values.
type Type int

// The types. Any is the type of properties for which nothing is known, or several types are.
const (
	Any Type = iota
	String
	Numeric
	Boolean
	DateTime
	Array
	Object
)

// Property is a property of an event. Any property may be missing from an event.
type Property struct {
	Name string
	Type Type
}

// Event is an event with its known properties. If it has none, any are allowed.
type Event struct {
	Name       string
	Properties []Property
}

// Language writes events in a programming language.
type Language struct {
	Name string // in a path
	// Write writes code for events with distinct names, each with properties that have distinct names.
	Write func(events []Event) (string, error)
}

// Languages are the supported languages.
var Languages = []Language{{"typescript", writeTypeScript}, {"golang", writeGo}, {"python", writePython}}

// Hash returns a short hash of code.
func Hash(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:16])
}

// Sorted returns the events sorted by name, with their properties sorted too.
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

// quote returns a text as an ASCII literal that is valid in both Go and Python.
func quote(text string) string { return strconv.QuoteToASCII(strings.ToValidUTF8(text, "\uFFFD")) }

// longest is how many characters of a name an identifier uses at most.
const longest = 80

// words turns a name into part of an identifier: its letters and digits, with a capital after anything else. It is empty if the name has none.
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

// exported turns a name into part of an identifier that begins with a capital.
func exported(name string, isLetter func(rune) bool) string {
	out := words(name, isLetter)
	if out == "" || !unicode.IsUpper([]rune(out)[0]) {
		return "Event" + out
	}
	return out
}

// names are the identifiers in use.
type names map[string]bool

// take reserves an identifier with each of the endings, and returns the part before them: base, with a number if needed.
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
