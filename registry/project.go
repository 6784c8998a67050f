package registry

import (
	"context"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a machine without zone files must not refuse the zones that another one stored
	"unicode/utf8"
)

// Project is a tenant: events, keys and endpoints belong to exactly one.
type Project struct {
	ID        int64 // from 1
	Name      string
	Timezone  string // IANA name
	WeekStart int    // 0 Sunday, 1 Monday
	CreatedAt time.Time
}

// NewProject says what a project is to be.
type NewProject struct {
	Name      string // required, at most 200 characters; need not be unique
	Timezone  string // IANA name; empty for UTC
	WeekStart int    // 0 Sunday, 1 Monday
}

const maxProjectName = 200

// CreateProject adds a project. Mistakes are *FieldError.
func (r *Registry) CreateProject(ctx context.Context, n NewProject, now time.Time) (*Project, error) {
	p := Project{Name: strings.TrimSpace(n.Name), Timezone: n.Timezone, WeekStart: n.WeekStart, CreatedAt: moment(now)}
	if p.Timezone == "" {
		p.Timezone = "UTC"
	}
	switch {
	case p.Name == "":
		return nil, required("name")
	case utf8.RuneCountInString(p.Name) > maxProjectName:
		return nil, tooLong("name", maxProjectName)
	}
	if _, err := loadZone(p.Timezone); err != nil {
		return nil, notChoice("timezone", n.Timezone)
	}
	if err := inRange("week_start_day", p.WeekStart, 0, 1); err != nil {
		return nil, err
	}

	err := r.write(ctx, func(tx Tx) (err error) {
		p.ID, err = tx.InsertProject(ctx, p)
		return err
	}, func(d *draft) { d.putProject(p) })
	if err != nil {
		return nil, fmt.Errorf("creating a project: %w", err)
	}
	return &p, nil
}

// loadZone finds an IANA zone. "Local" is a name to Go only: it would mean another zone on each machine.
func loadZone(name string) (*time.Location, error) {
	if name == "Local" || name == "" {
		return nil, fmt.Errorf("unknown time zone %q", name)
	}
	return time.LoadLocation(name)
}

// moment cuts a time to what every store can hold: UTC, microseconds.
func moment(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}
