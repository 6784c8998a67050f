package module

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/dustin/go-humanize"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Size is a number of bytes, written as 512MiB, 4GB or a plain number.
type Size int64

// ParseSize reads a size such as 512MiB.
func ParseSize(text string) (Size, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a valid size (want, for example, 512MiB)", text)
	}
	return Size(n), nil
}

// String returns the size with a binary unit.
func (s Size) String() string { return humanize.IBytes(uint64(max(s, 0))) }

// UnmarshalJSON accepts a number of bytes or a text with a unit.
func (s *Size) UnmarshalJSON(raw []byte) error {
	var n int64
	if json.Unmarshal(raw, &n) == nil {
		*s = Size(n)
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf("%s is not a valid size (want, for example, 512MiB)", raw)
	}
	size, err := ParseSize(text)
	if err != nil {
		return err
	}
	*s = size
	return nil
}

// Rate is a number of queries per period, written as 240/m. The zero Rate means no rate.
type Rate = registry.Rate

// ParseRate reads a rate such as 240/m; the period is s, m or h.
func ParseRate(text string) (Rate, error) { return registry.ParseRate(text) }
