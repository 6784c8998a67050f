package registry

import (
	"context"
	"errors"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/shorten"
)

// errSuperseded says that a result is no longer awaited.
var errSuperseded = errors.New("another version is awaited")

// AwaitCohort makes a cohort wait for a calculation, unless it already does. A deleted or unknown cohort is ErrNotFound, a static one a *FieldError.
func (r *Registry) AwaitCohort(ctx context.Context, project, id int64) (*Cohort, error) {
	return r.changeCohort(ctx, project, id, func(_ *tx, c *Cohort) error {
		switch {
		case c.Deleted:
			return ErrNotFound
		case c.PendingVersion != 0:
			return errUnchanged
		case c.Static:
			return invalid("id", "Cohort %d is static: its members are not computed.", id)
		}
		c.await()
		return nil
	})
}

// BeginCohort gives a cohort that waits for a calculation a new pending version, and returns the cohort: earlier attempts may have left members under the old
// version. A cohort that is deleted, unknown, or waits for nothing is ErrNotFound.
func (r *Registry) BeginCohort(ctx context.Context, project, id int64) (*Cohort, error) {
	return r.changeCohort(ctx, project, id, func(_ *tx, c *Cohort) error {
		if c.Deleted || c.PendingVersion == 0 {
			return ErrNotFound
		}
		c.await()
		return nil
	})
}

// SwapCohort makes a computed version the one that queries read, and reports whether it did. It does not if the cohort was changed or deleted in the meantime;
// then nothing changes.
func (r *Registry) SwapCohort(ctx context.Context, project, id int64, version uint64, count int64, now time.Time) (bool, error) {
	return r.settleCohort(ctx, project, id, version, func(c *Cohort) {
		c.Version = version
		c.counted(count, now)
	})
}

// ConfirmCohort records that a computed version has the same members as the one that queries read, which they go on reading. It reports whether the cohort
// waited for it.
func (r *Registry) ConfirmCohort(ctx context.Context, project, id int64, version uint64, count int64, now time.Time) (bool, error) {
	return r.settleCohort(ctx, project, id, version, func(c *Cohort) { c.counted(count, now) })
}

// FailCohort records that the calculation of a version failed, and reports whether the cohort waited for it. The version that queries read stays. The message
// is shown to users; it is cut to 1000 bytes.
func (r *Registry) FailCohort(ctx context.Context, project, id int64, version uint64, message string, now time.Time) (bool, error) {
	return r.settleCohort(ctx, project, id, version, func(c *Cohort) {
		c.Errors++
		c.LastError, c.LastErrorAt = shortened(message), moment(now)
	})
}

// settleCohort ends the wait of a cohort for a version.
func (r *Registry) settleCohort(ctx context.Context, project, id int64, version uint64, settle func(*Cohort)) (bool, error) {
	_, err := r.changeCohort(ctx, project, id, func(_ *tx, c *Cohort) error {
		if version == 0 || c.PendingVersion != version {
			return errSuperseded
		}
		c.PendingVersion = 0
		settle(c)
		return nil
	})
	if errors.Is(err, errSuperseded) || errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// SetCohortMembers records that the members of a static cohort have changed, and how many there are now, so that answers with the earlier members are no longer
// used. A cohort that is deleted or unknown is ErrNotFound, a computed one a *FieldError.
func (r *Registry) SetCohortMembers(ctx context.Context, project, id, count int64, now time.Time) (*Cohort, error) {
	return r.changeCohort(ctx, project, id, func(_ *tx, c *Cohort) error {
		switch {
		case c.Deleted:
			return ErrNotFound
		case !c.Static:
			return invalid("id", "Cohort %d is not static: its members are computed.", id)
		}
		c.LastVersion++
		c.Version = c.LastVersion
		c.counted(count, now)
		return nil
	})
}

// counted records how many members there are at a moment.
func (c *Cohort) counted(count int64, now time.Time) {
	c.Count, c.LastCalculation = &count, moment(now)
	c.Errors, c.LastError, c.LastErrorAt = 0, "", time.Time{}
}

// maxError is how many bytes are kept of the error of a calculation, a fill, a check or a delivery.
const maxError = 1000

// shortened returns as much of an error as is kept.
func shortened(text string) string { return shorten.Cut(text, maxError) }
