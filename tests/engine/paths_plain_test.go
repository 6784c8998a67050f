package engine_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// This file answers paths in plain Go, straight from the contract: event by event, session by session.

// plainStep is one event on the way of a person.
type plainStep struct {
	name string
	time time.Time
	uuid string
}

func (q *pathQuery) location() *time.Location {
	zone, err := time.LoadLocation(q.zone)
	if err != nil {
		panic(err)
	}
	return zone
}

// on reports whether a kind of events gives names (contract: paths.md, section 3).
func (q *pathQuery) on(kind string) bool {
	if len(q.include) > 0 {
		return slices.Contains(q.include, kind)
	}
	return !slices.Contains(q.exclude, kind)
}

// counts reports whether an event is one of those that paths are made of.
func (q *pathQuery) counts(e *trendEvent) bool {
	from, err := time.ParseInLocation(time.DateOnly, q.from, q.location())
	if err != nil {
		panic(err)
	}
	last, err := time.ParseInLocation(time.DateOnly, q.to, q.location())
	if err != nil {
		panic(err)
	}
	if e.Timestamp.Before(from) || !e.Timestamp.Before(last.AddDate(0, 0, 1)) {
		return false
	}
	if q.filtered && e.Properties["n"] != "1" {
		return false
	}
	chosen := false
	for _, kind := range q.include {
		switch kind {
		case "hogql":
		case "custom_event":
			chosen = chosen || !strings.HasPrefix(e.Event, "$")
		default:
			chosen = chosen || e.Event == kind
		}
	}
	return chosen || !slices.ContainsFunc(q.include, func(kind string) bool { return kind != "hogql" })
}

// stepName is the final name of an event's step.
func (q *pathQuery) stepName(e *trendEvent) string {
	name := e.Event
	if q.expression && q.on("hogql") {
		name = textOf(e.Properties["n"]) + "!"
	}
	if q.on("$pageview") && e.Event == "$pageview" {
		name = textOf(e.Properties["$current_url"])
		if len(name) > 1 {
			name = strings.TrimSuffix(name, "/")
		}
	}
	if q.on("$screen") && e.Event == "$screen" {
		name = textOf(e.Properties["$screen_name"])
	}
	for _, rule := range q.cleaning {
		alias := regexp.MustCompile(`\\(\d)`).ReplaceAllString(rule[1], "$${$1}")
		name = regexp.MustCompile(rule[0]).ReplaceAllString(name, alias)
	}
	return q.group(name)
}

func textOf(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// group gives the pattern whose match in a name ends first, or the name.
func (q *pathQuery) group(name string) string {
	for end := range len(name) + 1 {
		for _, pattern := range q.groupings {
			for start := range end + 1 {
				if glob(pattern, name[start:end]) {
					return pattern
				}
			}
		}
	}
	return name
}

func glob(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	if pattern[0] == '*' {
		return glob(pattern[1:], text) || text != "" && glob(pattern, text[1:])
	}
	return text != "" && text[0] == pattern[0] && glob(pattern[1:], text[1:])
}

// sessions are the steps of each session of each person, by person.
func (q *pathQuery) sessions(events []trendEvent) map[string][][]plainStep {
	byPerson := map[string][]plainStep{}
	for i := range events {
		e := &events[i]
		if !q.counts(e) {
			continue
		}
		name := q.stepName(e)
		if len(q.include) > 0 && slices.Contains(q.exclude, name) {
			continue
		}
		byPerson[e.person] = append(byPerson[e.person], plainStep{name: name, time: e.Timestamp, uuid: e.UUID})
	}
	out := map[string][][]plainStep{}
	for person, steps := range byPerson {
		slices.SortFunc(steps, func(a, b plainStep) int { return a.time.Compare(b.time) })
		for i, s := range steps {
			if i == 0 || s.time.Sub(steps[i-1].time) >= 1800*time.Second {
				out[person] = append(out[person], nil)
			}
			last := len(out[person]) - 1
			out[person][last] = append(out[person][last], s)
		}
	}
	return out
}

// path is what is kept of a session; nil for nothing.
func (q *pathQuery) path(session []plainStep) []plainStep {
	var steps []plainStep
	for _, s := range session {
		if n := len(steps); n > 0 && steps[n-1].name == s.name {
			steps[n-1] = s
			continue
		}
		steps = append(steps, s)
	}
	if n := len(steps); n > 0 && steps[n-1].name == "" {
		steps = steps[:n-1]
	}
	start, end := q.start, q.end
	if start != "" && end == "" && len(start) > 1 {
		start = strings.TrimSuffix(start, "/")
	}
	if end != "" && start == "" && len(end) > 1 {
		end = strings.TrimSuffix(end, "/")
	}
	if start != "" {
		at := slices.IndexFunc(steps, func(s plainStep) bool { return s.name == start })
		if at < 0 {
			return nil
		}
		steps = steps[at:]
	}
	if end != "" {
		at := slices.IndexFunc(steps, func(s plainStep) bool { return s.name == end })
		if at < 0 {
			return nil
		}
		steps = steps[:at+1]
	}
	switch n, half := len(steps), q.steps/2; {
	case n <= q.steps:
		return steps
	case start != "" && end != "":
		out := slices.Clone(steps[:half])
		middle := steps[half]
		middle.name = "..."
		return append(append(out, middle), steps[n-half:]...)
	case end != "":
		return steps[n-q.steps:]
	default:
		return steps[:q.steps]
	}
}

func stepKey(path []plainStep, i int) string { return fmt.Sprintf("%d_%s", i+1, path[i].name) }

// evaluate answers the query.
func (q *pathQuery) evaluate(events []trendEvent) []pathEdge {
	total := map[[2]string]time.Duration{}
	count := map[[2]string]int{}
	for _, sessions := range q.sessions(events) {
		for _, session := range sessions {
			path := q.path(session)
			for i := 1; i < len(path); i++ {
				key := [2]string{stepKey(path, i-1), stepKey(path, i)}
				count[key]++
				total[key] += path[i].time.Sub(path[i-1].time)
			}
		}
	}
	all := []pathEdge{}
	for key, n := range count {
		if n < q.minWeight || q.maxWeight > 0 && n > q.maxWeight {
			continue
		}
		all = append(all, pathEdge{Source: key[0], Target: key[1], Value: n, Average: float64(total[key].Microseconds()) / 1000 / float64(n)})
	}
	slices.SortFunc(all, func(a, b pathEdge) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Target, b.Target))
	})
	all = all[:min(q.edges, len(all))]
	reached := map[string]bool{}
	for range all { // once around reaches one node more at least, or all
		for _, e := range all {
			if strings.HasPrefix(e.Source, "1_") || reached[e.Source] {
				reached[e.Target] = true
			}
		}
	}
	return slices.DeleteFunc(all, func(e pathEdge) bool { return !strings.HasPrefix(e.Source, "1_") && !reached[e.Source] })
}

// actors are the ids of the events that take steps which keys name, by person.
func (q *pathQuery) actors(events []trendEvent) map[string][]string {
	out := map[string][]string{}
	for person, sessions := range q.sessions(events) {
		for _, session := range sessions {
			path := q.path(session)
			for i, s := range path {
				matches := true
				switch {
				case q.dropoffKey != "":
					matches = i == len(path)-1 && stepKey(path, i) == q.dropoffKey
				default:
					if q.startKey != "" {
						matches = i > 0 && stepKey(path, i-1) == q.startKey
					}
					if q.endKey != "" {
						matches = matches && stepKey(path, i) == q.endKey
					}
				}
				if matches {
					out[person] = append(out[person], s.uuid)
				}
			}
		}
		slices.Sort(out[person])
	}
	return out
}
