package registry

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate is a number of queries in a period, written as 240/m. The zero Rate means no limit.
type Rate struct {
	Queries int
	Per     time.Duration
}

// maxRate is the most queries per period: with more, less than a nanosecond would lie between two.
const maxRate = 1_000_000_000

var ratePeriods = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// ParseRate reads a rate such as 240/m; the period is s, m or h.
func ParseRate(text string) (Rate, error) {
	number, period, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	per, ok := ratePeriods[period]
	if err != nil || !ok || n <= 0 || n > maxRate {
		return Rate{}, fmt.Errorf("%q is not a valid rate (want, for example, 240/m)", text)
	}
	return Rate{Queries: n, Per: per}, nil
}

// IsZero reports whether there is no rate.
func (r Rate) IsZero() bool { return r == Rate{} }

// String returns the rate as it is written in a config; the zero Rate is empty.
func (r Rate) String() string {
	if r.IsZero() {
		return ""
	}
	for name, per := range ratePeriods {
		if per == r.Per {
			return fmt.Sprintf("%d/%s", r.Queries, name)
		}
	}
	return fmt.Sprintf("%d/%s", r.Queries, r.Per)
}

// MarshalText writes the rate in the form that ParseRate reads.
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
