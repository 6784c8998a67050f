// Package jsontext appends values as JSON to the bodies of answers.
package jsontext

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// Append appends v as JSON. The output is not for use in HTML, so < > and & are not escaped. Encoding can't fail: v holds only what the server put there.
func Append(dst []byte, v any) []byte {
	buf := bytes.NewBuffer(dst)
	encoder := json.NewEncoder(buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic("BUG: encoding part of an answer: " + err.Error())
	}
	return buf.Bytes()[:buf.Len()-1] // without the line feed from Encode
}

// AppendTime appends a time as a JSON string, in UTC with up to six digits of a second.
func AppendTime(dst []byte, t time.Time) []byte {
	dst = append(dst, '"')
	dst = t.UTC().AppendFormat(dst, "2006-01-02T15:04:05.999999Z07:00")
	return append(dst, '"')
}

// AppendInt appends a number.
func AppendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }

// AppendBool appends true or false.
func AppendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}
