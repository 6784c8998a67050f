package schema

import (
	"iter"
	"maps"
	"strings"
)

// Names is a list of the engine's names for things of one sort, one of which an argument must be. The engine looks for other names among
// files.
type Names struct {
	// Noun is the word for such a thing, and Example one of the names.
	Noun, Example string
	all           map[string]bool // in lower case: these names are case-insensitive
}

func newNames(noun, example, all string) *Names {
	n := &Names{Noun: noun, Example: example, all: map[string]bool{}}
	for name := range strings.FieldsSeq(all) {
		n.all[name] = true
	}
	return n
}

// Lookup finds a name in any case, and returns it in the form for the engine.
func (n *Names) Lookup(name string) (string, bool) {
	if len(name) > longestNear { // the list has none that long
		return "", false
	}
	name = strings.ToLower(name)
	return name, n.all[name]
}

// All yields the names, in no order.
func (n *Names) All() iter.Seq[string] { return maps.Keys(n.all) }

// charsets are the character sets that convertCharset supports.
var charsets = newNames("character set", "windows-1251", `
	utf-8 utf-16 utf-16be utf-16le utf-32 utf-32be utf-32le utf-7 us-ascii ascii latin1
	iso-8859-1 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8 iso-8859-9 iso-8859-10 iso-8859-13
	iso-8859-14 iso-8859-15
	windows-874 windows-1250 windows-1251 windows-1252 windows-1253 windows-1254 windows-1255 windows-1256 windows-1257 windows-1258
	cp437 cp850 cp852 cp855 cp857 cp858 cp860 cp861 cp862 cp863 cp864 cp865 cp866 cp869 cp874 cp1250 cp1251 cp1252 cp1253 cp1254
	cp1255 cp1256 cp1257 cp1258 macintosh x-mac-cyrillic koi8-r koi8-u tis-620
	shift_jis sjis windows-31j euc-jp iso-2022-jp euc-kr iso-2022-kr gb2312 gbk gb18030 hz-gb-2312 iso-2022-cn big5 big5-hkscs euc-tw
	utf8 utf16 utf16be utf16le utf32
`)
