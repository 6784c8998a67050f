package insight

import (
	"encoding/json"
	"errors"
	"iter"
)

// MaxResults is the most bytes that the results of an insight may have.
const MaxResults = 64 << 20

// ErrTooLarge is returned for results of more than MaxResults bytes.
var ErrTooLarge = errors.New("the results of the insight are too large")

// Encode returns results as a JSON array. Each is made and encoded when the one before it is, and none once they are too large: each of a thousand may repeat
// a filter of megabytes. The error is ErrTooLarge, or that of an item.
func Encode[T any](results iter.Seq[T]) ([]byte, error) {
	out := []byte{'['}
	for result := range results {
		item, err := json.Marshal(result)
		if err != nil {
			return nil, err
		}
		if len(out)+len(item) >= MaxResults {
			return nil, ErrTooLarge
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return append(out, ']'), nil
}
