package harness

// Only gives of a JSON value that came the members that are wanted too: nested, and item by item in arrays of one length. It
// takes null for an empty text, as clients do that cannot tell them apart.
func Only(want, came any) any {
	switch w := want.(type) {
	case map[string]any:
		c, ok := came.(map[string]any)
		if !ok {
			return came
		}
		out := map[string]any{}
		for name, value := range w {
			if got, there := c[name]; there {
				out[name] = Only(value, got)
			}
		}
		return out
	case []any:
		c, ok := came.([]any)
		if !ok || len(c) != len(w) {
			return came
		}
		out := make([]any, len(c))
		for i := range c {
			out[i] = Only(w[i], c[i])
		}
		return out
	case string:
		if w == "" && came == nil {
			return ""
		}
	}
	return came
}
