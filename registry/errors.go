package registry

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNotFound says that the project, key, endpoint, variable, insight, dashboard or cohort to change does not exist, or was deleted.
	ErrNotFound = errors.New("not found")
	// ErrRevoked says that a key was revoked, and so can't be rolled.
	ErrRevoked = errors.New("the key is revoked")
	// ErrClosed says that the registry was closed.
	ErrClosed = errors.New("the registry is closed")
)

// Code names a family of field mistakes for programs; it is the code of the error body (contract: api.md, section 7).
type Code string

// The codes of field mistakes.
const (
	CodeRequired  Code = "required"
	CodeInvalid   Code = "invalid_input"
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
	Message string // for people, in the contract's words where it has them
}

// Error returns the message, led by the field.
func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// ScopeError says that a key was to give out scopes that it lacks.
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

// ConflictError is how a Store says that a write would break a rule of uniqueness.
type ConflictError struct {
	Field string // which value is taken: one of the Conflict constants
}

// The values that a Store keeps unique.
const (
	ConflictID           = "id"
	ConflictHash         = "hash"
	ConflictUser         = "user"
	ConflictLabel        = "label"     // of the secret keys of a project that are not revoked; an empty label is no label
	ConflictEndpointName = "name"      // of the endpoints of a project that are not deleted
	ConflictVersion      = "version"   // of an endpoint
	ConflictCodeName     = "code_name" // of the variables of a project
	ConflictGroupType    = "group_type"
	ConflictCohortName   = "cohort_name"
	ConflictShortID      = "short_id" // of the insights of a project
	ConflictTile         = "tile"     // an insight stands once on a dashboard
)

// Error names the field.
func (e *ConflictError) Error() string { return e.Field + " is taken" }

func required(field string) *FieldError {
	return &FieldError{Field: field, Code: CodeRequired, Message: "This field is required."}
}

func tooLong(field string, most int) *FieldError {
	return &FieldError{Field: field, Code: CodeTooLong, Message: fmt.Sprintf("Ensure this field has no more than %d characters.", most)}
}

func notChoice(field, given string) *FieldError {
	return &FieldError{Field: field, Code: CodeNotChoice, Message: fmt.Sprintf("%q is not a valid choice.", given)}
}

func invalid(field, format string, args ...any) *FieldError {
	return &FieldError{Field: field, Code: CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

// inRange tells of an integer outside [least, most].
func inRange(field string, n, least, most int) error {
	switch {
	case n < least:
		return &FieldError{Field: field, Code: CodeTooSmall, Message: fmt.Sprintf("Ensure this value is greater than or equal to %d.", least)}
	case n > most:
		return &FieldError{Field: field, Code: CodeTooLarge, Message: fmt.Sprintf("Ensure this value is less than or equal to %d.", most)}
	}
	return nil
}

// taken turns a Store's conflict on a field into the mistake that the caller is told; other errors stay.
func taken(err error, conflict, field, message string) error {
	if c, ok := errors.AsType[*ConflictError](err); ok && c.Field == conflict {
		return &FieldError{Field: field, Code: CodeUnique, Message: message}
	}
	return err
}
