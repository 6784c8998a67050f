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

// keywordUse says where a keyword can be used as an unquoted name. After a dot, every keyword can.
type keywordUse uint8

// The uses of keywords, from the freest.
const (
	anyName      keywordUse = iota // everywhere
	noBareAlias                    // everywhere except as an alias without AS, where it would continue the query
	reserved                       // never: it is always part of the grammar
	constantWord                   // never: it is a constant
	programWord                    // never: it belongs to the program language that shares PostHog's lexer
)

// words are the keywords, keyed by their text in lower case.
var words = map[string]struct {
	word word
	use  keywordUse
}{
	"all":          {wordAll, noBareAlias},
	"and":          {wordAnd, reserved},
	"anti":         {wordAnti, noBareAlias},
	"any":          {wordAny, noBareAlias},
	"array":        {wordArray, noBareAlias},
	"as":           {wordAs, reserved},
	"asc":          {wordAsc, noBareAlias},
	"ascending":    {wordAscending, noBareAlias},
	"asof":         {wordAsof, noBareAlias},
	"between":      {wordBetween, reserved},
	"both":         {wordBoth, noBareAlias},
	"by":           {wordBy, noBareAlias},
	"case":         {wordCase, reserved},
	"cast":         {wordCast, anyName},
	"catch":        {wordCatch, programWord},
	"cohort":       {wordCohort, noBareAlias},
	"collate":      {wordCollate, noBareAlias},
	"columns":      {wordColumns, anyName},
	"cross":        {wordCross, noBareAlias},
	"cube":         {wordCube, anyName},
	"current":      {wordCurrent, anyName},
	"date":         {wordDate, anyName},
	"desc":         {wordDesc, noBareAlias},
	"descending":   {wordDescending, noBareAlias},
	"distinct":     {wordDistinct, noBareAlias},
	"else":         {wordElse, reserved},
	"end":          {wordEnd, noBareAlias},
	"except":       {wordExcept, reserved},
	"exclude":      {wordExclude, noBareAlias},
	"false":        {wordFalse, constantWord},
	"fill":         {wordFill, anyName},
	"filter":       {wordFilter, noBareAlias},
	"final":        {wordFinal, noBareAlias},
	"finally":      {wordFinally, programWord},
	"first":        {wordFirst, anyName},
	"fn":           {wordFn, programWord},
	"following":    {wordFollowing, noBareAlias},
	"for":          {wordFor, noBareAlias},
	"format":       {wordFormat, noBareAlias},
	"from":         {wordFrom, reserved},
	"full":         {wordFull, noBareAlias},
	"fun":          {wordFun, programWord},
	"group":        {wordGroup, noBareAlias},
	"grouping":     {wordGrouping, anyName},
	"having":       {wordHaving, reserved},
	"ignore":       {wordIgnore, anyName},
	"ilike":        {wordILike, reserved},
	"in":           {wordIn, reserved},
	"inf":          {wordInf, constantWord},
	"infinity":     {wordInf, constantWord},
	"inner":        {wordInner, noBareAlias},
	"intersect":    {wordIntersect, reserved},
	"interpolate":  {wordInterpolate, noBareAlias},
	"interval":     {wordInterval, noBareAlias},
	"into":         {wordInto, noBareAlias},
	"is":           {wordIs, reserved},
	"join":         {wordJoin, reserved},
	"lambda":       {wordLambda, anyName},
	"last":         {wordLast, anyName},
	"leading":      {wordLeading, noBareAlias},
	"left":         {wordLeft, noBareAlias},
	"let":          {wordLet, programWord},
	"like":         {wordLike, reserved},
	"limit":        {wordLimit, reserved},
	"materialized": {wordMaterialized, noBareAlias},
	"name":         {wordName, anyName},
	"nan":          {wordNaN, constantWord},
	"natural":      {wordNatural, anyName},
	"not":          {wordNot, reserved},
	"null":         {wordNull, constantWord},
	"nulls":        {wordNulls, noBareAlias},
	"offset":       {wordOffset, noBareAlias},
	"on":           {wordOn, reserved},
	"or":           {wordOr, reserved},
	"order":        {wordOrder, noBareAlias},
	"outer":        {wordOuter, noBareAlias},
	"over":         {wordOver, noBareAlias},
	"partition":    {wordPartition, noBareAlias},
	"pivot":        {wordPivot, noBareAlias},
	"positional":   {wordPositional, noBareAlias},
	"precision":    {wordPrecision, anyName},
	"preceding":    {wordPreceding, noBareAlias},
	"prewhere":     {wordPrewhere, reserved},
	"qualify":      {wordQualify, noBareAlias},
	"range":        {wordRange, noBareAlias},
	"recursive":    {wordRecursive, noBareAlias},
	"replace":      {wordReplace, noBareAlias},
	"respect":      {wordRespect, anyName},
	"right":        {wordRight, noBareAlias},
	"rollup":       {wordRollup, anyName},
	"row":          {wordRow, anyName},
	"rows":         {wordRows, noBareAlias},
	"sample":       {wordSample, noBareAlias},
	"select":       {wordSelect, reserved},
	"semi":         {wordSemi, noBareAlias},
	"sets":         {wordSets, anyName},
	"settings":     {wordSettings, noBareAlias},
	"step":         {wordStep, anyName},
	"substring":    {wordSubstring, anyName},
	"then":         {wordThen, reserved},
	"throw":        {wordThrow, programWord},
	"ties":         {wordTies, anyName},
	"timestamp":    {wordTimestamp, anyName},
	"to":           {wordTo, noBareAlias},
	"top":          {wordTop, anyName},
	"totals":       {wordTotals, anyName},
	"trailing":     {wordTrailing, noBareAlias},
	"trim":         {wordTrim, anyName},
	"true":         {wordTrue, constantWord},
	"try":          {wordTry, programWord},
	"try_cast":     {wordTryCast, anyName},
	"unbounded":    {wordUnbounded, noBareAlias},
	"union":        {wordUnion, reserved},
	"unpivot":      {wordUnpivot, noBareAlias},
	"using":        {wordUsing, reserved},
	"values":       {wordValues, anyName},
	"when":         {wordWhen, reserved},
	"where":        {wordWhere, reserved},
	"while":        {wordWhile, programWord},
	"window":       {wordWindow, noBareAlias},
	"with":         {wordWith, reserved},
	"within":       {wordWithin, noBareAlias},
}

// longestWord is the length of the longest keyword; longer names are not looked up.
const longestWord = len("materialized")

// keywordUses holds the use of each keyword, indexed by the keyword.
var keywordUses = func() (out [256]keywordUse) {
	for _, w := range words {
		out[w.word] = w.use
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
