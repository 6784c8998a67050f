package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// StoredMembers says that ClickHouse has members of a cohort.
type StoredMembers struct {
	Project, Cohort int64
	Version         uint64 // of the computed members; 0 for people who were put into a static cohort
}

// ReserveCohorts prepares cohorts for members in ClickHouse that are newer than the registry; stored lists all that are there. New cohorts do not get the
// number of one that has members, although the registry does not know it, and no stored version is used again. A cohort whose members are gone waits for a
// calculation, and so do queries for it.
func (r *Registry) ReserveCohorts(ctx context.Context, stored []StoredMembers) error {
	byProject := map[int64]map[int64][]uint64{} // the versions of each cohort
	for _, m := range stored {
		if m.Cohort < 1 || m.Cohort >= maxCohortID || m.Version > maxReserved { // none of ours
			continue
		}
		if byProject[m.Project] == nil {
			byProject[m.Project] = map[int64][]uint64{}
		}
		byProject[m.Project][m.Cohort] = append(byProject[m.Project][m.Cohort], m.Version)
	}
	last := int64(0) // the greatest number that the registry does not know
	for _, p := range r.Snapshot().Projects() {
		err := r.write(ctx, p.ID, func(t *tx) error {
			state, err := t.state()
			if err != nil {
				return err
			}
			for _, c := range valuesOf(state.cohorts.byID, nil) {
				if err := t.reserveVersions(c, byProject[p.ID][c.ID]); err != nil {
					return err
				}
			}
			for id := range byProject[p.ID] {
				if id > state.lastCohort() {
					last = max(last, id)
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("reserving the versions of cohorts: %w", err)
		}
	}
	err := r.write(ctx, 0, func(t *tx) error {
		if last > t.next.sequences[KindCohort] {
			return t.put(&sequence{KindCohort, last})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reserving the numbers of cohorts: %w", err)
	}
	return nil
}

// reserveVersions prepares a cohort for the versions in ClickHouse.
func (t *tx) reserveVersions(before *Cohort, versions []uint64) error {
	c := *before
	for _, version := range versions {
		c.LastVersion = max(c.LastVersion, version)
	}
	hadMembers := !c.Static && !c.Deleted && c.Version != 0 && (c.Count == nil || *c.Count > 0)
	gone := hadMembers && !slices.Contains(versions, c.Version)
	if gone {
		c.Version, c.Count = 0, nil
		c.await()
	}
	if !gone && c.LastVersion == before.LastVersion {
		return nil
	}
	return t.put(&c)
}

// maxError is how many bytes are kept of the error of a calculation, a fill, a check or a delivery.
const maxError = 1000

// shortened returns as much of an error as is kept.
func shortened(text string) string { return shorten.Cut(text, maxError) }
