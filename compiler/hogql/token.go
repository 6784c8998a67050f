package hogql

// kind is the kind of a token.
type kind uint8

// The kinds of tokens.
const (
	tokEnd    kind = iota // after the last byte of the text
	tokBad                // not a token; the lexer's mistake says why
	tokName               // a plain identifier or keyword
	tokQuoted             // an identifier in backquotes or double quotes
	tokNumber
	tokPathIndex // digits after a dot: t.1
	tokString
	tokTemplate     // f' of a template string
	tokTemplateText // the text of a template between its quotes and braces
	tokTemplateEnd  // the closing quote of a template
	tokTag          // the < of a tag
	tokTagEnd       // the > of a tag
	tokTagClosed    // the /> of a tag
	tokTagText      // text between a tag and its closing one
	tokTagClosing   // the </ of a closing tag
	tokLParen
	tokRParen
	tokLBracket
	tokRBracket
	tokLBrace
	tokRBrace
	tokComma
	tokSemicolon
	tokDot
	tokNullDot // ?.
	tokQuestion
	tokCoalesce // ??
	tokColon
	tokCast  // ::
	tokArrow // ->
	tokPlus
	tokMinus
	tokStar
	tokSlash
	tokPercent
	tokConcat // ||
	tokEquals
	tokNotEquals
	tokLess
	tokLessOrEquals
	tokGreater
	tokGreaterOrEquals
	tokMatch
	tokNotMatch
	tokIMatch
	tokNotIMatch
)

// token is a piece of the text. Escaped reports whether the content of a string, template text or quoted identifier differs from the bytes
// between its quotes.
type token struct {
	kind       kind
	word       word
	escaped    bool
	start, end int32
}

func (t token) span() Span { return Span{Start: int(t.start), End: int(t.end)} }

// word is a keyword, recognized in any case; notWord is any other name.
type word uint8

// The keywords.
const (
	notWord word = iota
	wordAll
	wordAnd
	wordAnti
	wordAny
	wordArray
	wordAs
	wordAsc
	wordAscending
	wordAsof
	wordBetween
	wordBoth
	wordBy
	wordCase
	wordCast
	wordCatch
	wordCohort
	wordCollate
	wordColumns
	wordCross
	wordCube
	wordCurrent
	wordDate
	wordDesc
	wordDescending
	wordDistinct
	wordElse
	wordEnd
	wordExcept
	wordExclude
	wordFalse
	wordFill
	wordFilter
	wordFinal
	wordFinally
	wordFirst
	wordFn
	wordFollowing
	wordFor
	wordFormat
	wordFrom
	wordFull
	wordFun
	wordGroup
	wordGrouping
	wordHaving
	wordILike
	wordIgnore
	wordIn
	wordInf
	wordInner
	wordIntersect
	wordInterpolate
	wordInterval
	wordInto
	wordIs
	wordJoin
	wordLambda
	wordLast
	wordLeading
	wordLeft
	wordLet
	wordLike
	wordLimit
	wordMaterialized
	wordName
	wordNaN
	wordNatural
	wordNot
	wordNull
	wordNulls
	wordOffset
	wordOn
	wordOr
	wordOrder
	wordOuter
	wordOver
	wordPartition
	wordPivot
	wordPositional
	wordPrecision
	wordPreceding
	wordPrewhere
	wordQualify
	wordRange
	wordRecursive
	wordReplace
	wordRespect
	wordRight
	wordRollup
	wordRow
	wordRows
	wordSample
	wordSelect
	wordSemi
	wordSets
	wordSettings
	wordStep
	wordSubstring
	wordThen
	wordThrow
	wordTies
	wordTimestamp
	wordTo
	wordTop
	wordTotals
	wordTrailing
	wordTrim
	wordTrue
	wordTry
	wordTryCast
	wordUnbounded
	wordUnion
	wordUnpivot
	wordUsing
	wordValues
	wordWhen
	wordWhere
	wordWhile
	wordWindow
	wordWith
	wordWithin
)

// standing says where a keyword can be used as an unquoted name. After a dot, every keyword can.
type standing uint8

// The standings of keywords.
const (
	standsFree  standing = iota // everywhere
	standsNamed                 // everywhere except as an alias without AS, where it would continue the query
	standsClose                 // never: it is always part of the grammar
	standsValue                 // never: it is a constant
	standsOther                 // never: it belongs to the program language that shares PostHog's lexer
)

// words are the keywords, keyed by their text in lower case.
var words = map[string]struct {
	word     word
	standing standing
}{
	"all":          {wordAll, standsNamed},
	"and":          {wordAnd, standsClose},
	"anti":         {wordAnti, standsNamed},
	"any":          {wordAny, standsNamed},
	"array":        {wordArray, standsNamed},
	"as":           {wordAs, standsClose},
	"asc":          {wordAsc, standsNamed},
	"ascending":    {wordAscending, standsNamed},
	"asof":         {wordAsof, standsNamed},
	"between":      {wordBetween, standsClose},
	"both":         {wordBoth, standsNamed},
	"by":           {wordBy, standsNamed},
	"case":         {wordCase, standsClose},
	"cast":         {wordCast, standsFree},
	"catch":        {wordCatch, standsOther},
	"cohort":       {wordCohort, standsNamed},
	"collate":      {wordCollate, standsNamed},
	"columns":      {wordColumns, standsFree},
	"cross":        {wordCross, standsNamed},
	"cube":         {wordCube, standsFree},
	"current":      {wordCurrent, standsFree},
	"date":         {wordDate, standsFree},
	"desc":         {wordDesc, standsNamed},
	"descending":   {wordDescending, standsNamed},
	"distinct":     {wordDistinct, standsNamed},
	"else":         {wordElse, standsClose},
	"end":          {wordEnd, standsNamed},
	"except":       {wordExcept, standsClose},
	"exclude":      {wordExclude, standsNamed},
	"false":        {wordFalse, standsValue},
	"fill":         {wordFill, standsFree},
	"filter":       {wordFilter, standsNamed},
	"final":        {wordFinal, standsNamed},
	"finally":      {wordFinally, standsOther},
	"first":        {wordFirst, standsFree},
	"fn":           {wordFn, standsOther},
	"following":    {wordFollowing, standsNamed},
	"for":          {wordFor, standsNamed},
	"format":       {wordFormat, standsNamed},
	"from":         {wordFrom, standsClose},
	"full":         {wordFull, standsNamed},
	"fun":          {wordFun, standsOther},
	"group":        {wordGroup, standsNamed},
	"grouping":     {wordGrouping, standsFree},
	"having":       {wordHaving, standsClose},
	"ignore":       {wordIgnore, standsFree},
	"ilike":        {wordILike, standsClose},
	"in":           {wordIn, standsClose},
	"inf":          {wordInf, standsValue},
	"infinity":     {wordInf, standsValue},
	"inner":        {wordInner, standsNamed},
	"intersect":    {wordIntersect, standsClose},
	"interpolate":  {wordInterpolate, standsNamed},
	"interval":     {wordInterval, standsNamed},
	"into":         {wordInto, standsNamed},
	"is":           {wordIs, standsClose},
	"join":         {wordJoin, standsClose},
	"lambda":       {wordLambda, standsFree},
	"last":         {wordLast, standsFree},
	"leading":      {wordLeading, standsNamed},
	"left":         {wordLeft, standsNamed},
	"let":          {wordLet, standsOther},
	"like":         {wordLike, standsClose},
	"limit":        {wordLimit, standsClose},
	"materialized": {wordMaterialized, standsNamed},
	"name":         {wordName, standsFree},
	"nan":          {wordNaN, standsValue},
	"natural":      {wordNatural, standsFree},
	"not":          {wordNot, standsClose},
	"null":         {wordNull, standsValue},
	"nulls":        {wordNulls, standsNamed},
	"offset":       {wordOffset, standsNamed},
	"on":           {wordOn, standsClose},
	"or":           {wordOr, standsClose},
	"order":        {wordOrder, standsNamed},
	"outer":        {wordOuter, standsNamed},
	"over":         {wordOver, standsNamed},
	"partition":    {wordPartition, standsNamed},
	"pivot":        {wordPivot, standsNamed},
	"positional":   {wordPositional, standsNamed},
	"precision":    {wordPrecision, standsFree},
	"preceding":    {wordPreceding, standsNamed},
	"prewhere":     {wordPrewhere, standsClose},
	"qualify":      {wordQualify, standsNamed},
	"range":        {wordRange, standsNamed},
	"recursive":    {wordRecursive, standsNamed},
	"replace":      {wordReplace, standsNamed},
	"respect":      {wordRespect, standsFree},
	"right":        {wordRight, standsNamed},
	"rollup":       {wordRollup, standsFree},
	"row":          {wordRow, standsFree},
	"rows":         {wordRows, standsNamed},
	"sample":       {wordSample, standsNamed},
	"select":       {wordSelect, standsClose},
	"semi":         {wordSemi, standsNamed},
	"sets":         {wordSets, standsFree},
	"settings":     {wordSettings, standsNamed},
	"step":         {wordStep, standsFree},
	"substring":    {wordSubstring, standsFree},
	"then":         {wordThen, standsClose},
	"throw":        {wordThrow, standsOther},
	"ties":         {wordTies, standsFree},
	"timestamp":    {wordTimestamp, standsFree},
	"to":           {wordTo, standsNamed},
	"top":          {wordTop, standsFree},
	"totals":       {wordTotals, standsFree},
	"trailing":     {wordTrailing, standsNamed},
	"trim":         {wordTrim, standsFree},
	"true":         {wordTrue, standsValue},
	"try":          {wordTry, standsOther},
	"try_cast":     {wordTryCast, standsFree},
	"unbounded":    {wordUnbounded, standsNamed},
	"union":        {wordUnion, standsClose},
	"unpivot":      {wordUnpivot, standsNamed},
	"using":        {wordUsing, standsClose},
	"values":       {wordValues, standsFree},
	"when":         {wordWhen, standsClose},
	"where":        {wordWhere, standsClose},
	"while":        {wordWhile, standsOther},
	"window":       {wordWindow, standsNamed},
	"with":         {wordWith, standsClose},
	"within":       {wordWithin, standsNamed},
}

// longestWord is the length of the longest keyword; longer names are not looked up.
const longestWord = len("materialized")

// standings holds the standing of each keyword, indexed by the keyword.
var standings = func() (out [256]standing) {
	for _, w := range words {
		out[w.word] = w.standing
	}
	return out
}()

// lookupWord returns the keyword for a name, in any case.
func lookupWord(name string) word {
	if len(name) < 2 || len(name) > longestWord {
		return notWord
	}
	var buf [longestWord]byte
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		buf[i] = c
	}
	return words[string(buf[:len(name)])].word
}
