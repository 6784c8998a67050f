package registry

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNotFound says that the project, key, endpoint, variable, insight, dashboard, cohort, action or alert to change does not exist, or was deleted.
	ErrNotFound = errors.New("not found")
	// ErrRevoked says that a key was revoked, and so can't be rolled.
	ErrRevoked = errors.New("the key is revoked")
	// ErrHeld says that another caller has a lock.
	ErrHeld = errors.New("another caller holds the lock")
	// ErrClosed says that the registry was closed.
	ErrClosed = errors.New("the registry is closed")
	// ErrUnavailable says that the store can't be reached now, or takes no writes now. Nothing was changed.
	ErrUnavailable = errors.New("the registry is not available")
	// ErrDiskFull says that the disk of the store is full. Nothing was changed.
	ErrDiskFull = errors.New("the registry's disk is full")
	// ErrInDoubt says that the connection to the store was lost while it finished a write, and that it is not known whether it did.
	ErrInDoubt = errors.New("the connection to the registry was lost during a write, which may or may not have been applied")
)

// Code identifies a kind of field mistake for programs; it is the code of the error body (contract: api.md, section 7).
type Code string

// The codes of field mistakes.
const (
	CodeRequired  Code = "required"
	CodeInvalid   Code = "invalid_input"
	CodeBlank     Code = "blank"
	CodeTooLong   Code = "max_length"
	CodeTooSmall  Code = "min_value"
	CodeTooLarge  Code = "max_value"
	CodeNotChoice Code = "invalid_choice"
	CodeUnique    Code = "unique"
	CodeNoObject  Code = "does_not_exist"
	CodeTooBig    Code = "record_too_large"
	CodeLimit     Code = "limit_reached"
)

// FieldError is a mistake in one field of what the caller gave.
type FieldError struct {
	Field   string // name of the field on the wire, such as data_freshness_seconds; empty for a limit of the whole project
	Code    Code
	Message string // for people, in PostHog's words where it has them
}

// Error returns the message, preceded by the field.
func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// ScopeError says that a key would give out scopes that it lacks.
type ScopeError struct {
	Missing []string // sorted
}

// Error names the scopes.
func (e *ScopeError) Error() string {
	word := "scope"
	if len(e.Missing) > 1 {
		word = "scopes"
	}
	return fmt.Sprintf("API key missing required %s '%s': a key can only give out scopes that it has", word, strings.Join(e.Missing, "', '"))
}

// DeniedError says that a key may not do something to another key.
type DeniedError struct{ Message string }

// Error returns the message.
func (e *DeniedError) Error() string { return e.Message }

func required(field string) *FieldError {
	return &FieldError{Field: field, Code: CodeRequired, Message: "This field is required."}
}

func tooLong(field string, most int) *FieldError {
	return &FieldError{Field: field, Code: CodeTooLong, Message: fmt.Sprintf("Ensure this field has no more than %d characters.", most)}
}

func tooMany(field string, most int) *FieldError {
	return &FieldError{Field: field, Code: CodeTooLong, Message: fmt.Sprintf("Ensure this field has no more than %d elements.", most)}
}

func notChoice(field, given string) *FieldError {
	return &FieldError{Field: field, Code: CodeNotChoice, Message: fmt.Sprintf("%q is not a valid choice.", given)}
}

func invalid(field, format string, args ...any) *FieldError {
	return &FieldError{Field: field, Code: CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

// inRange returns an error for an integer outside [least, most].
func inRange(field string, n, least, most int) error {
	switch {
	case n < least:
		return &FieldError{Field: field, Code: CodeTooSmall, Message: fmt.Sprintf("Ensure this value is greater than or equal to %d.", least)}
	case n > most:
		return &FieldError{Field: field, Code: CodeTooLarge, Message: fmt.Sprintf("Ensure this value is less than or equal to %d.", most)}
	}
	return nil
}
