package record

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/internal/chjson"
)

var (
	errEndsEarly = errors.New("it is not valid JSON: it ends too early")
	errDeep      = &BoundError{"its JSON is nested more than " + strconv.Itoa(maxDepth) + " deep"}
)

// textForm says what a string consists of.
type textForm uint8

const (
	simpleText  textForm = iota // ASCII that stands for itself
	unicodeText                 // it has more than ASCII
	escapedText                 // it has escapes, and maybe more than ASCII
)

// What a byte means in a string.
const (
	plainByte = iota
	quoteByte
	escapeByte
	controlByte
	unicodeByte
)

var byteKinds = func() (kinds [256]uint8) {
	for c := range kinds {
		switch {
		case c == '"':
			kinds[c] = quoteByte
		case c == '\\':
			kinds[c] = escapeByte
		case c < ' ':
			kinds[c] = controlByte
		case c >= utf8.RuneSelf:
			kinds[c] = unicodeByte
		}
	}
	return kinds
}()

// quoted reads a string and returns the bytes between its quotes.
func (r *Reader) quoted() (raw []byte, form textForm, err error) {
	if r.peek() != '"' {
		return nil, form, r.unexpected()
	}
	in := r.in
	start := r.pos + 1
	for i := start; i < len(in); i++ {
		switch byteKinds[in[i]] {
		case plainByte:
		case quoteByte:
			r.pos = i + 1
			return in[start:i], form, nil
		case escapeByte:
			form = escapedText
			i++
		case controlByte:
			r.pos = i
			return nil, form, r.unexpected()
		case unicodeByte:
			form = max(form, unicodeText)
		}
	}
	r.pos = len(in)
	return nil, form, errEndsEarly
}

// text reads a string and appends it as chjson.AppendString does.
func (r *Reader) text() error {
	raw, form, err := r.quoted()
	if err != nil {
		return err
	}
	if form == simpleText || form == unicodeText && utf8.Valid(raw) && !hasLineSeparator(raw) {
		r.out = append(r.out, '"')
		r.out = append(r.out, raw...)
		r.out = append(r.out, '"')
		return nil
	}
	if form == escapedText {
		if r.scratch, err = r.unescape(r.scratch[:0], raw, r.texts); err != nil {
			return err
		}
		raw = r.scratch
	}
	r.out = chjson.AppendString(r.out, string(raw))
	return nil
}

// hasLineSeparator reports whether valid UTF-8 holds U+2028 or U+2029, which are written as escapes.
func hasLineSeparator(text []byte) bool {
	return bytes.Contains(text, []byte("\u2028")) || bytes.Contains(text, []byte("\u2029"))
}

// unescape appends the bytes between the quotes of a string, with its escapes undone. A lone surrogate becomes U+FFFD, and so does NUL if noNUL is set.
func (r *Reader) unescape(dst, raw []byte, noNUL bool) ([]byte, error) {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			dst = append(dst, raw[i])
			continue
		}
		i++
		switch c := raw[i]; c {
		case '"', '\\', '/':
			dst = append(dst, c)
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			char, ok := hexRune(raw[i+1:])
			if !ok {
				return dst, r.badEscape(raw)
			}
			i += 4
			if utf16.IsSurrogate(char) {
				char = utf8.RuneError
				if len(raw) > i+6 && raw[i+1] == '\\' && raw[i+2] == 'u' {
					first, _ := hexRune(raw[i-3:])
					if second, ok := hexRune(raw[i+3:]); ok {
						if pair := utf16.DecodeRune(first, second); pair != utf8.RuneError {
							char = pair
							i += 6
						}
					}
				}
			}
			if char == 0 && noNUL {
				char = utf8.RuneError
			}
			dst = utf8.AppendRune(dst, char)
		default:
			return dst, r.badEscape(raw)
		}
	}
	return dst, nil
}

func (r *Reader) badEscape(raw []byte) error {
	return fmt.Errorf("it is not valid JSON: the string at byte %d has a bad escape", r.pos-len(raw)-1)
}

// hexRune reads four hexadecimal digits.
func hexRune(digits []byte) (rune, bool) {
	if len(digits) < 4 {
		return 0, false
	}
	var n rune
	for _, c := range digits[:4] {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			n = n<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return n, true
}
