package registry

import "time"

// maxRetention is the most days for which events can be kept, other than forever: a hundred years.
const maxRetention = 36_500

// EventsFrom returns the earliest time of events that the project shows at a moment: the start of a day in the project's zone, as many days before today as
// events are kept. Zero: it shows all.
func (s *ProjectSchema) EventsFrom(now time.Time) time.Time {
	if s.Project.Retention == 0 {
		return time.Time{}
	}
	return s.startOfDay(now, -s.Project.Retention)
}

// EventsUntil returns when the result of EventsFrom changes next. Zero: never.
func (s *ProjectSchema) EventsUntil(now time.Time) time.Time {
	if s.Project.Retention == 0 {
		return time.Time{}
	}
	return s.startOfDay(now, 1)
}

// startOfDay returns the start of the day that is a number of days after that of now.
func (s *ProjectSchema) startOfDay(now time.Time, days int) time.Time {
	year, month, day := now.In(s.Location).Date()
	return time.Date(year, month, day+days, 0, 0, 0, 0, s.Location).UTC()
}
