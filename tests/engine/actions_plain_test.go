package engine_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clickedElement is one element of a chain.
type clickedElement struct {
	tag     string
	classes []string
	id      string // empty for none
	data    string // attribute data-id; empty for none
	href    string // empty for none
	text    string // empty for none
	nth     int
}

// String writes the element as elements_chain does.
func (e *clickedElement) String() string {
	out := e.tag
	for _, class := range e.classes {
		out += "." + class
	}
	var attributes []string
	for _, a := range [][2]string{{"attr__data-id", e.data}, {"attr_id", e.id}, {"href", e.href}, {"nth-child", strconv.Itoa(e.nth)}, {"text", e.text}} {
		if a[1] != "" {
			attributes = append(attributes, fmt.Sprintf("%s=%q", a[0], a[1]))
		}
	}
	return out + ":" + strings.Join(attributes, "")
}

// actionEvent is one random event that actions are asked of.
type actionEvent struct {
	Event      string         `json:"event"`
	DistinctID string         `json:"distinct_id"`
	Timestamp  time.Time      `json:"timestamp"`
	Properties map[string]any `json:"properties"`
	Chain      string         `json:"elements_chain,omitempty"`
	UUID       string         `json:"uuid"`

	elements []clickedElement
	plan     string // of the person; empty for none
	member   bool   // of the cohort
}

// plainAction is a random action in plain words.
type plainAction struct {
	id    int64
	steps []actionStep
}

// actionStep has nil for what it does not ask for.
type actionStep struct {
	event, url, text, href, tag *string
	urlHow, textHow, hrefHow    string // "" for the default
	selector                    []selectorWord
	filters                     []plainFilter
}

// selectorWord is one element of a selector, from the outside to the inside.
type selectorWord struct {
	tag, class, id, data string
	nth                  int
	child                bool // directly inside the word before
}

func (s *selectorWord) String() string {
	out := s.tag
	if s.class != "" {
		out += "." + s.class
	}
	if s.id != "" {
		out += "#" + s.id
	}
	if s.data != "" {
		out += fmt.Sprintf("[data-id=%q]", s.data)
	}
	if s.nth > 0 {
		out += fmt.Sprintf(":nth-child(%d)", s.nth)
	}
	if out == "" {
		return "*"
	}
	return out
}

// plainFilter is a filter of a step, as the API has it, and what it means.
type plainFilter struct {
	wire  map[string]any
	holds func(*actionEvent) bool
}

var plainFilters = []plainFilter{
	{map[string]any{"type": "event", "key": "n", "operator": "gte", "value": 5}, func(e *actionEvent) bool { n, ok := e.Properties["n"].(int); return ok && n >= 5 }},
	{map[string]any{"key": "n", "value": []any{"1", 2}}, func(e *actionEvent) bool { return e.Properties["n"] == 1 || e.Properties["n"] == 2 }},
	{map[string]any{"type": "event", "key": "n", "operator": "is_not", "value": "3"}, func(e *actionEvent) bool { return e.Properties["n"] != 3 }},
	{map[string]any{"type": "event", "key": "n", "operator": "is_not_set"}, func(e *actionEvent) bool { return e.Properties["n"] == nil }},
	{map[string]any{"type": "person", "key": "plan", "operator": "icontains", "value": "PR"}, func(e *actionEvent) bool { return strings.Contains(strings.ToLower(e.plan), "pr") }},
	{map[string]any{"type": "person", "key": "plan", "operator": "is_not", "value": "pro"}, func(e *actionEvent) bool { return e.plan != "pro" }},
	{map[string]any{"type": "cohort", "key": "id", "value": actionCohort}, func(e *actionEvent) bool { return e.member }},
	{map[string]any{"type": "cohort", "key": "id", "value": actionCohort, "operator": "not_in"}, func(e *actionEvent) bool { return !e.member }},
	{map[string]any{"type": "hogql", "key": "properties.n = '4' or event = 'a'"}, func(e *actionEvent) bool { return e.Properties["n"] == 4 || e.Event == "a" }},
	{map[string]any{"type": "hogql", "key": "not matchesAction('base')"}, func(e *actionEvent) bool { return e.Event != "a" }},
	{map[string]any{"type": "hogql", "key": "(properties.n as event) != '1'"}, func(e *actionEvent) bool { return e.Properties["n"] != 1 }},
	{map[string]any{"type": "element", "key": "tag_name", "operator": "is_not", "value": "button"}, func(e *actionEvent) bool { return !e.has(func(x *clickedElement) bool { return x.tag == "button" }) }},
	{map[string]any{"type": "element", "key": "text", "operator": "icontains", "value": "buy"}, func(e *actionEvent) bool {
		return e.has(func(x *clickedElement) bool { return strings.Contains(strings.ToLower(x.text), "buy") })
	}},
}

func (e *actionEvent) has(holds func(*clickedElement) bool) bool {
	return slices.ContainsFunc(e.elements, func(x clickedElement) bool { return holds(&x) })
}

// matches reports whether an event matches an action.
func (a *plainAction) matches(e *actionEvent) bool {
	return len(a.steps) == 0 || slices.ContainsFunc(a.steps, func(s actionStep) bool { return s.matches(e) })
}

func (s *actionStep) matches(e *actionEvent) bool {
	if s.event != nil && *s.event != "" && e.Event != *s.event {
		return false
	}
	if s.event != nil && *s.event == "$autocapture" && !s.clicked(e) {
		return false
	}
	if s.url != nil && *s.url != "" {
		url, given := e.Properties["$current_url"]
		if !given || !textMatches(fmt.Sprint(url), *s.url, s.urlHow, "contains", false) {
			return false
		}
	}
	return !slices.ContainsFunc(s.filters, func(f plainFilter) bool { return !f.holds(e) })
}

// clicked reports whether the elements are those that the step asks for.
func (s *actionStep) clicked(e *actionEvent) bool {
	if s.href != nil {
		href := ""
		if i := slices.IndexFunc(e.elements, func(x clickedElement) bool { return x.href != "" }); i >= 0 {
			href = e.elements[i].href
		}
		if !textMatches(href, *s.href, s.hrefHow, "exact", true) {
			return false
		}
	}
	if s.text != nil && !e.has(func(x *clickedElement) bool {
		return x.text != "" && textMatches(x.text, *s.text, s.textHow, "exact", true)
	}) {
		return false
	}
	if s.tag != nil && !e.has(func(x *clickedElement) bool { return x.tag == *s.tag }) {
		return false
	}
	return s.selector == nil || slices.ContainsFunc(e.chainStarts(), func(i int) bool { return describes(s.selector, e.elements, i) })
}

func (e *actionEvent) chainStarts() []int {
	out := make([]int, len(e.elements))
	for i := range out {
		out[i] = i
	}
	return out
}

// describes reports whether the last word describes the element at i, and those before it the elements around that.
func describes(words []selectorWord, chain []clickedElement, i int) bool {
	last := words[len(words)-1]
	e := &chain[i]
	if last.tag != "" && last.tag != e.tag || last.class != "" && !slices.Contains(e.classes, last.class) ||
		last.id != "" && last.id != e.id || last.data != "" && last.data != e.data || last.nth > 0 && last.nth != e.nth {
		return false
	}
	if len(words) == 1 {
		return true
	}
	for outer := i + 1; outer < len(chain); outer++ {
		if describes(words[:len(words)-1], chain, outer) {
			return true
		}
		if last.child {
			break
		}
	}
	return false
}

// textMatches compares a text of an event with one of a step; in patterns % and _ stand for other characters, unless a backslash
// comes before them.
func textMatches(text, with, how, without string, anyCase bool) bool {
	if how == "" {
		how = without
	}
	switch how {
	case "exact":
		return text == with
	case "regex":
		return regexp.MustCompile("(?s)" + with).MatchString(text)
	}
	var pattern strings.Builder
	for rest := "%" + with + "%"; rest != ""; rest = rest[1:] {
		switch {
		case rest[0] == '\\' && len(rest) > 1 && strings.IndexByte(`%_\`, rest[1]) >= 0:
			rest = rest[1:]
			pattern.WriteString(regexp.QuoteMeta(rest[:1]))
		case rest[0] == '%':
			pattern.WriteString(".*")
		case rest[0] == '_':
			pattern.WriteString(".")
		default:
			pattern.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	flags := "(?s)"
	if anyCase {
		flags = "(?si)"
	}
	return regexp.MustCompile(flags + "^" + pattern.String() + "$").MatchString(text)
}

// The values that random events and actions are made of. Each pattern is a valid regular expression too.
var (
	actionEvents = []string{"$autocapture", "$autocapture", "$autocapture", "$pageview", "$screen", "a", "a ", "A"}
	actionURLs   = []string{"https://a.b/", "https://a.b/c?x=1", "https://a.b/50%_off", "HTTPS://A.B/C", "/c", `C:\dir_x`, "42"}
	actionURLAsk = []string{"a.b", "https://a.b/", "/c", "50%_off", "a%c", "/_$", "^https", "A.B", `50\%`, `\dir`, "b/c", "42", "c?x", "/"}
	actionTexts  = []string{"Buy now", "buy", "50% off; today", "Cancel", "日本", "a_b"}
	actionAsk    = []string{"buy", "Buy now", "BUY", "50%", "^Buy", "a_b", "now$", "日", "x", "off; to", "a.b"}
	actionHrefs  = []string{"/shop", "/Shop/cart", "https://a.b/?q=1", "/50%"}
	actionHref   = []string{"/shop", "shop", "SHOP", "^/s", "q=1", "a_b", "%", "cart$"}
	actionTags   = []string{"a", "div", "button", "span"}
	actionClass  = []string{"big", "red", "div", "a-b"}
	actionIDs    = []string{"x", "main", "5"}
)

func oneOf[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func randomActionEvents(r *rand.Rand) []actionEvent {
	start := time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)
	var out []actionEvent
	for i := range 300 {
		person := r.IntN(9)
		e := actionEvent{
			Event: oneOf(r, actionEvents), DistinctID: fmt.Sprintf("id%d", person), Timestamp: start.Add(time.Duration(r.IntN(5*24*60)) * time.Minute),
			Properties: map[string]any{}, UUID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i),
			plan: []string{"pro", "free", "Preview", ""}[person%4], member: person%3 == 0,
		}
		if r.IntN(5) > 0 {
			e.Properties["$current_url"] = oneOf(r, actionURLs)
			if r.IntN(12) == 0 {
				e.Properties["$current_url"] = 42 // a number reads as its text
			}
		}
		if r.IntN(4) > 0 {
			e.Properties["n"] = r.IntN(8)
		}
		if e.Event == "$autocapture" || r.IntN(4) == 0 {
			var chain []string
			for range 1 + r.IntN(4) {
				e.elements = append(e.elements, randomElement(r))
				chain = append(chain, e.elements[len(e.elements)-1].String())
			}
			e.Chain = strings.Join(chain, ";")
		}
		out = append(out, e)
	}
	return out
}

func randomElement(r *rand.Rand) clickedElement {
	maybe := func(list []string) string {
		if r.IntN(3) == 0 {
			return oneOf(r, list)
		}
		return ""
	}
	e := clickedElement{tag: oneOf(r, actionTags), id: maybe(actionIDs), data: maybe(actionIDs), href: maybe(actionHrefs), text: maybe(actionTexts), nth: 1 + r.IntN(3)}
	for _, class := range actionClass {
		if r.IntN(3) == 0 {
			e.classes = append(e.classes, class)
		}
	}
	return e
}

func randomAction(r *rand.Rand, id int64) plainAction {
	a := plainAction{id: id}
	if r.IntN(60) == 0 {
		return a // any event
	}
	for range 1 + r.IntN(3) {
		a.steps = append(a.steps, randomActionStep(r))
	}
	return a
}

func randomActionStep(r *rand.Rand) actionStep {
	var s actionStep
	how := func() string { return []string{"", "exact", "contains", "regex"}[r.IntN(4)] }
	maybe := func(of int, list []string) *string {
		if r.IntN(of) > 0 {
			return nil
		}
		text := oneOf(r, list)
		return &text
	}
	if r.IntN(8) > 0 {
		event := oneOf(r, actionEvents)
		s.event = &event
	} else if r.IntN(4) == 0 {
		s.event = new(string) // as good as none
	}
	s.url, s.urlHow = maybe(3, actionURLAsk), how()
	s.text, s.textHow = maybe(4, actionAsk), how()
	s.href, s.hrefHow = maybe(5, actionHref), how()
	s.tag = maybe(6, actionTags)
	if s.urlHow == "regex" && s.url != nil && strings.Contains(*s.url, `\`) {
		s.urlHow = "contains" // no regular expression
	}
	if r.IntN(4) == 0 {
		for i := range 1 + r.IntN(3) {
			s.selector = append(s.selector, randomSelectorWord(r, i > 0))
		}
	}
	for range max(r.IntN(5)-2, 0) {
		s.filters = append(s.filters, oneOf(r, plainFilters))
	}
	return s
}

func randomSelectorWord(r *rand.Rand, inside bool) selectorWord {
	w := selectorWord{child: inside && r.IntN(2) == 0}
	switch r.IntN(7) {
	case 0, 1:
		w.tag = oneOf(r, actionTags)
	case 2:
		w.class = oneOf(r, actionClass)
	case 3:
		w.tag, w.class = oneOf(r, actionTags), oneOf(r, actionClass)
	case 4:
		w.id = oneOf(r, []string{"x", "main"})
	case 5:
		w.tag, w.data = oneOf(r, actionTags), oneOf(r, actionIDs)
	case 6:
		w.tag, w.nth = oneOf(r, actionTags), 1+r.IntN(3)
	}
	return w
}
