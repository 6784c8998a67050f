package main

import (
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// checked returns an error unless a request was answered with the status want. err is the error of sending it.
func checked(doing string, answer harness.Answer, err error, want int) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", doing, err)
	case answer.Status != want:
		return fmt.Errorf("%s: status %d, want %d: %.300s", doing, answer.Status, want, answer.Raw)
	}
	return nil
}
