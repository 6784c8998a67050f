package module

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Size is a number of bytes, written as 512MiB, 4GB or a plain number.
type Size int64

// ParseSize reads a size such as 512MiB.
func ParseSize(text string) (Size, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > math.MaxInt64 {
		return 0, fmt.Errorf("%q is no size such as 512MiB", text)
	}
	return Size(n), nil
}

// String returns the size with a binary unit.
func (s Size) String() string { return humanize.IBytes(uint64(max(s, 0))) }

// UnmarshalJSON takes a number of bytes or a text with a unit.
func (s *Size) UnmarshalJSON(raw []byte) error {
	var n int64
	if json.Unmarshal(raw, &n) == nil {
		*s = Size(n)
		return nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf("%s is no size such as 512MiB", raw)
	}
	size, err := ParseSize(text)
	if err != nil {
		return err
	}
	*s = size
	return nil
}

// Rate is a number of queries in a period, written as 240/m.
type Rate struct {
	Queries int
	Per     time.Duration
}

var ratePeriods = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// ParseRate reads a rate such as 240/m; the period is s, m or h.
func ParseRate(text string) (Rate, error) {
	number, period, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	per, ok := ratePeriods[period]
	if err != nil || !ok || n <= 0 {
		return Rate{}, fmt.Errorf("%q is no rate such as 240/m", text)
	}
	return Rate{Queries: n, Per: per}, nil
}

// String returns the rate as it is written in a config.
func (r Rate) String() string {
	for name, per := range ratePeriods {
		if per == r.Per {
			return fmt.Sprintf("%d/%s", r.Queries, name)
		}
	}
	return fmt.Sprintf("%d/%s", r.Queries, r.Per)
}

// MarshalText writes the rate as it is read.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a rate.
func (r *Rate) UnmarshalText(text []byte) error {
	rate, err := ParseRate(string(text))
	if err != nil {
		return err
	}
	*r = rate
	return nil
}
