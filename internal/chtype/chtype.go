// Package chtype takes the texts of ClickHouse types apart.
package chtype

import "strings"

// Parts splits Name(arg, arg) into its parts. A type that lacks an argument that its kind requires is returned as the unknown name "?": the first one of
// Nullable, LowCardinality, SimpleAggregateFunction, Array and Map, and the second one of Map.
func Parts(typ string) (name string, args []string) {
	name, inner, _ := strings.Cut(strings.TrimSpace(typ), "(")
	args = split(strings.TrimSuffix(inner, ")"))
	if len(args) < required(name) {
		return "?", nil
	}
	return name, args
}

// required returns the number of arguments that a type at least has.
func required(name string) int {
	switch name {
	case "Nullable", "LowCardinality", "SimpleAggregateFunction", "Array":
		return 1
	case "Map":
		return 2
	}
	return 0
}

// split splits at the commas outside brackets and quotes.
func split(list string) []string {
	var args []string
	depth, start := 0, 0
	for i := 0; i < len(list); i++ {
		switch list[i] {
		case '\'', '`', '"':
			if end := quoteEnd(list[i:]); end > 0 {
				i += end
			} else {
				i = len(list)
			}
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				args, start = append(args, strings.TrimSpace(list[start:i])), i+1
			}
		}
	}
	if last := strings.TrimSpace(list[start:]); last != "" {
		args = append(args, last)
	}
	return args
}

// quoteEnd returns where the quotation that text begins with ends, or -1.
func quoteEnd(text string) int {
	if text == "" || !strings.ContainsRune("'`\"", rune(text[0])) {
		return -1
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i
		}
	}
	return -1
}

// Fields removes the names from the arguments of Tuple(name T, …) or Nested(name T, …).
func Fields(args []string) []string {
	types := make([]string, len(args))
	for i, arg := range args {
		types[i] = arg
		if end := quoteEnd(arg); end > 0 {
			types[i] = strings.TrimSpace(arg[end+1:])
		} else if name, typ, ok := strings.Cut(arg, " "); ok && !strings.ContainsAny(name, "('") {
			types[i] = strings.TrimSpace(typ)
		}
	}
	return types
}

// Words returns the names in the arguments 'a' = 1, 'b' = 2 of an Enum8 or Enum16.
func Words(args []string) []string {
	var names []string
	for _, arg := range args {
		if end := quoteEnd(arg); end > 0 {
			names = append(names, strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(arg[1:end]))
		}
	}
	return names
}
