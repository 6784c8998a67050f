// Package conformance runs cases of the PostHog API against the built server. A case is a JSON file: data to import,
// requests to send, and a partial description of each answer.
package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// operators are the single-key objects that describe a value.
var operators = []string{"$any", "$unordered", "$length", "$contains", "$regex"}

// Differ compares an answer with its description. It returns "" if they match, else one line with the first difference.
//
// An object describes the keys that it has; a list describes each element in order; numbers match within a millionth;
// null also matches a missing key. {"$any": true} matches any value, {"$unordered": […]} and {"$contains": […]} ignore
// the order, {"$length": n} matches the number of elements, {"$regex": "…"} searches a string.
func Differ(want, got any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		if len(want) == 1 {
			for op, arg := range want {
				if slices.Contains(operators, op) {
					return differBy(op, arg, got, path)
				}
			}
		}
		return differObject(want, got, path)
	case []any:
		list, ok := got.([]any)
		if !ok {
			return fmt.Sprintf("%s: want a list, got %s", path, short(got))
		}
		if len(list) != len(want) {
			return fmt.Sprintf("%s: want %d elements, got %d: %s", path, len(want), len(list), short(got))
		}
		for i := range want {
			if d := Differ(want[i], list[i], fmt.Sprintf("%s[%d]", path, i)); d != "" {
				return d
			}
		}
		return ""
	case float64:
		if n, ok := got.(float64); ok && close(want, n) {
			return ""
		}
	case int64: // a project's number
		if got == float64(want) {
			return ""
		}
	default:
		if want == got {
			return ""
		}
	}
	return fmt.Sprintf("%s: want %s, got %s", path, short(want), short(got))
}

func differObject(want map[string]any, got any, path string) string {
	object, ok := got.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s: want an object, got %s", path, short(got))
	}
	for key, w := range want {
		g, there := object[key]
		if !there && w != nil {
			return fmt.Sprintf("%s.%s: missing", path, key)
		}
		if d := Differ(w, g, path+"."+key); d != "" {
			return d
		}
	}
	return ""
}

func differBy(op string, arg, got any, path string) string {
	switch op {
	case "$any":
		return ""
	case "$regex":
		pattern, _ := arg.(string)
		text, ok := got.(string)
		if ok && search(pattern, text) {
			return ""
		}
		return fmt.Sprintf("%s: %s does not match %s", path, short(got), pattern)
	}
	list, ok := got.([]any)
	if !ok {
		return fmt.Sprintf("%s: want a list, got %s", path, short(got))
	}
	if op == "$length" {
		if n, _ := arg.(float64); int(n) != len(list) {
			return fmt.Sprintf("%s: want %v elements, got %d", path, arg, len(list))
		}
		return ""
	}
	wanted, _ := arg.([]any)
	if op == "$unordered" && len(wanted) != len(list) {
		return fmt.Sprintf("%s: want %d elements, got %d: %s", path, len(wanted), len(list), short(got))
	}
	rest := slices.Clone(list)
	for _, w := range wanted {
		i := slices.IndexFunc(rest, func(g any) bool { return Differ(w, g, "") == "" })
		if i < 0 {
			return fmt.Sprintf("%s: no element matches %s in %s", path, short(w), short(got))
		}
		rest = slices.Delete(rest, i, i+1)
	}
	return ""
}

// negativeLookahead matches the only form of patterns in cases that Go does not support: "anything but exactly this".
var negativeLookahead = regexp.MustCompile(`^\^\(\?!(.*)\$\)$`)

func search(pattern, text string) bool {
	if m := negativeLookahead.FindStringSubmatch(pattern); m != nil {
		return text != m[1]
	}
	return regexp.MustCompile(pattern).MatchString(text)
}

func close(a, b float64) bool {
	return math.Abs(a-b) <= max(1e-6*max(math.Abs(a), math.Abs(b)), 1e-9)
}

func short(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(raw) > 300 {
		return string(raw[:300]) + "…"
	}
	return string(raw)
}

// placeholder matches a reference to a saved value in a text.
var placeholder = regexp.MustCompile(`<(\w+)>`)

// Fill replaces placeholders with saved values. A text that is a single placeholder becomes the value itself.
func Fill(v any, names map[string]any) any {
	switch v := v.(type) {
	case string:
		if m := placeholder.FindStringSubmatch(v); m != nil && m[0] == v {
			if value, ok := names[m[1]]; ok {
				return value
			}
		}
		return placeholder.ReplaceAllStringFunc(v, func(name string) string {
			if value, ok := names[strings.Trim(name, "<>")]; ok {
				return fmt.Sprint(value)
			}
			return name
		})
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = Fill(v[i], names)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			name, _ := Fill(key, names).(string)
			out[name] = Fill(value, names)
		}
		return out
	}
	return v
}
