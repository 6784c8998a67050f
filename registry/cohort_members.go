package registry

import (
	"context"
	"errors"
	"time"
)

// errSuperseded says that a version is not the one that the cohort waits for any more.
var errSuperseded = errors.New("another version is awaited")

// AwaitCohort has a cohort wait for a calculation, unless it does already. A deleted or unknown cohort is ErrNotFound, and one that is
// static a *FieldError.
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

// BeginCohort gives a cohort that waits for a calculation a new pending version, and returns it: earlier tries may have left members
// under the old one. A cohort that is deleted, unknown, or waits for nothing is ErrNotFound.
func (r *Registry) BeginCohort(ctx context.Context, project, id int64) (*Cohort, error) {
	return r.changeCohort(ctx, project, id, func(_ *tx, c *Cohort) error {
		if c.Deleted || c.PendingVersion == 0 {
			return ErrNotFound
		}
		c.await()
		return nil
	})
}

// SwapCohort makes a version that was computed the one that queries read, and reports whether it is: it is not when the cohort was
// changed or deleted in the meantime, and then nothing changes.
func (r *Registry) SwapCohort(ctx context.Context, project, id int64, version uint64, count int64, now time.Time) (bool, error) {
	return r.settleCohort(ctx, project, id, version, func(c *Cohort) {
		c.Version = version
		c.counted(count, now)
	})
}

// ConfirmCohort records that a version that was computed has the same members as the one that queries read, which they go on reading,
// and reports whether it was awaited.
func (r *Registry) ConfirmCohort(ctx context.Context, project, id int64, version uint64, count int64, now time.Time) (bool, error) {
	return r.settleCohort(ctx, project, id, version, func(c *Cohort) { c.counted(count, now) })
}

// FailCohort records that the calculation of a version failed, and reports whether the cohort waited for it. The version that queries
// read stays. The message is shown to users; what goes beyond 1000 bytes of it is left out.
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

// SetCohortMembers records that the members of a static cohort have changed, and how many there are now, so that answers with the
// members of before are not used any more. A cohort that is deleted or unknown is ErrNotFound, and one that is computed a *FieldError.
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

// maxError is the most bytes that are kept of what was wrong with a calculation, a fill, a check or a delivery.
const maxError = 1000

// shortened returns the beginning of what was wrong, without half a character at the end.
func shortened(text string) string {
	if len(text) <= maxError {
		return text
	}
	most := maxError
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most]
}
