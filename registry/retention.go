package registry

import "time"

// maxRetention is the most days for which events can be kept, unless they are kept for ever: a hundred years.
const maxRetention = 36_500

// EventsFrom is the time of the earliest events that the project shows at a moment: the start of the day, in the project's zone, that is
// as many days before today as events are kept. Zero: it shows all.
func (s *ProjectSchema) EventsFrom(now time.Time) time.Time {
	if s.Project.Retention == 0 {
		return time.Time{}
	}
	return s.startOfDay(now, -s.Project.Retention)
}

// EventsUntil is the moment at which EventsFrom becomes another time than it is at now. Zero: never.
func (s *ProjectSchema) EventsUntil(now time.Time) time.Time {
	if s.Project.Retention == 0 {
		return time.Time{}
	}
	return s.startOfDay(now, 1)
}

// startOfDay is the start of a day that is some days after that of a moment.
func (s *ProjectSchema) startOfDay(now time.Time, days int) time.Time {
	year, month, day := now.In(s.Location).Date()
	return time.Date(year, month, day+days, 0, 0, 0, 0, s.Location).UTC()
}
