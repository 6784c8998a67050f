package complete

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// hog completes a name in a program, or in an expression of a template.
func (c *completing) hog(text string, end int) {
	found, ok := hogql.LooseAt(text[:end]+filler+text[end:], end)
	if !ok {
		return
	}
	chain := found.Chain[:len(found.Chain)-1]
	if len(chain) > 0 {
		c.globals(chain)
		return
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(found.Variables))) {
		c.add(Suggestion{Label: name, Insert: name, Kind: Variable})
	}
	c.globals(nil)
	if c.Language == Hog || c.Language == Template {
		c.out.Functions = hogFunctions()
	}
}

// template completes an expression in braces; outside of them there is nothing to complete.
func (c *completing) template(text string, end int) {
	from := openBrace(text[:end])
	if from < 0 {
		return
	}
	c.hog(text[from:], end-from)
}

// openBrace finds the start of the expression that is still open at the end of a text; -1 for none. A brace after a backslash is text.
// Braces and quotes inside an expression belong to it.
func openBrace(text string) int {
	depth, from := 0, -1
	var quote byte
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '\\' && (depth == 0 || quote != 0):
			i++
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case depth > 0 && (b == '\'' || b == '"' || b == '`'):
			quote = b
		case b == '{':
			if depth++; depth == 1 {
				from = i + 1
			}
		case b == '}' && depth > 0:
			depth--
		}
	}
	if depth == 0 {
		return -1
	}
	return from
}

// json completes a template in a JSON string. The whole string is on the cursor's line.
func (c *completing) json() {
	first := strings.LastIndexByte(c.Text[:c.end], '\n') + 1
	line := c.Text[first:]
	if n := strings.IndexByte(line, '\n'); n >= 0 {
		line = line[:n]
	}
	end := c.end - first
	if strings.Count(line[:end], `"`)%2 == 0 {
		return
	}
	from := strings.LastIndexByte(line[:end], '"') + 1
	text := line[from:]
	if n := strings.IndexByte(line[end:], '"'); n >= 0 {
		text = line[from : end+n]
	}
	c.template(text, end-from)
}

// maxGlobals is the most keys of one global value that are suggested at once.
const maxGlobals = 1000

// globals suggests the keys of the global value that a chain of names leads to. It reports whether nothing else can be suggested: below the name
// of a global, nothing else can be meant.
func (c *completing) globals(chain []hogql.Name) bool {
	value := any(c.Globals)
	for _, name := range chain {
		object, _ := value.(map[string]any)
		below, ok := object[name.Text]
		if !ok {
			return false
		}
		value = below
	}
	object, _ := value.(map[string]any)
	c.Spend.Work(len(object))
	there := make(map[string]bool, len(c.out.Suggestions))
	for i := range c.out.Suggestions {
		there[c.out.Suggestions[i].Label] = true
	}
	listed := 0
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if there[key] {
			continue
		}
		if listed++; listed > maxGlobals {
			c.out.Incomplete = true
			break
		}
		c.add(Suggestion{Label: key, Insert: key, Kind: Variable, Detail: valueDetail(object[key])})
	}
	return len(chain) > 0
}

// maxDetail is how many characters of a value are shown.
const maxDetail = 20

// valueDetail formats a value, shortened to its start if it is long.
func valueDetail(value any) string {
	switch value.(type) {
	case map[string]any:
		return "Object"
	case []any:
		return "Array"
	}
	raw, err := json.Marshal(value)
	if err != nil { // a number that JSON cannot express
		return unknownType
	}
	text := string(raw)
	if utf8.RuneCountInString(text) <= maxDetail {
		return text
	}
	return text[:offset(text, maxDetail)] + "..."
}

// hogFunctions are the functions of Hog, a language that the server does not run.
var hogFunctions = sync.OnceValue(func() *Functions {
	f := new(Functions)
	for _, name := range slices.Sorted(strings.FieldsSeq(hogNames)) {
		f.List = append(f.List, Suggestion{Label: name, Insert: name + "()", Kind: Function})
	}
	f.json = appendAll(nil, f.List)
	return f
})

// hogNames are the names of the functions that programs in Hog can call.
const hogNames = `
	and or not if multiIf in equals notEquals less lessOrEquals greater greaterOrEquals
	plus minus min2 max2 floor round randomFloat
	assumeNotNull coalesce ifNull isNull isNotNull empty notEmpty typeof
	toString toInt toFloat toUUID generateUUIDv4
	concat length lower upper reverse substring startsWith position positionCaseInsensitive trim trimLeft trimRight splitByString
	replaceOne replaceAll like ilike notLike notILike match extract extractRegex multiSearchAnyCaseInsensitive
	base64Encode base64Decode encodeURLComponent decodeURLComponent tryDecodeURLComponent isIPAddressInRange
	md5 md5Hex sha1 sha1Hex sha1HmacChain sha1HmacChainHex sha256 sha256Hex sha256HmacChain sha256HmacChainHex
	jsonParse jsonStringify isValidJSON JSONHas JSONLength JSONExtract JSONExtractArrayRaw JSONExtractBool JSONExtractFloat JSONExtractInt
	JSONExtractString
	tuple keys values has indexOf range arrayCount arrayExists arrayFilter arrayMap arrayReduce arrayPopBack arrayPopFront arrayPushBack
	arrayPushFront arrayReverse arrayReverseSort arraySort arrayStringConcat
	now today toDate toDateTime toTimeZone toUnixTimestamp toUnixTimestampMilli fromUnixTimestamp fromUnixTimestampMilli formatDateTime
	addDays dateAdd dateDiff dateTrunc toIntervalDay toIntervalHour toIntervalMinute toIntervalMonth toMonth toYear toYYYYMM
	toStartOfDay toStartOfHour toStartOfMonth toStartOfWeek
	print sleep run Error HogError RetryError NotImplementedError
`
