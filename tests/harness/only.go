package harness

// Only returns the members of the JSON value came that are in want too: nested, and item by item in arrays of equal length. It treats null as an empty
// string, like clients that cannot distinguish them.
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
