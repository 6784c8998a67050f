package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"
)

// cohorts returns the cohorts of the demo, given the number of the action "Fixed a bug".
func cohorts(fixed int64) []object {
	cohort := func(name, description string, conditions ...object) object {
		return object{"name": name, "description": description, "filters": object{"properties": object{"type": "AND", "values": conditions}}}
	}
	did := func(key any, of string, times int) object {
		return object{
			"type": "behavioral", "key": key, "event_type": of, "value": "performed_event_multiple",
			"operator": "gte", "operator_value": times, "explicit_datetime": "2012-01-01T00:00:00Z",
		}
	}
	return []object{
		cohort("Regular authors", "People with at least ten commits", did("commit authored", "events", 10)),
		cohort("Bug fixers", "People who fixed at least three bugs, and never tagged a release", did(fixed, "actions", 3), object{
			"type": "behavioral", "key": "release tagged", "event_type": "events", "value": "performed_event",
			"explicit_datetime": "2012-01-01T00:00:00Z", "negation": true,
		}),
	}
}

// saveCohorts saves the cohorts, skipping those that an interrupted run already saved, and waits until their members are computed.
func (d *demo) saveCohorts(ctx context.Context) error {
	actions, err := d.names(ctx, "actions/")
	if err != nil {
		return err
	}
	there, err := d.names(ctx, "cohorts/")
	if err != nil {
		return err
	}
	for _, cohort := range cohorts(actions["Fixed a bug"]) {
		if _, done := there[cohort["name"].(string)]; done {
			continue
		}
		if err := d.post(ctx, "cohorts/", cohort); err != nil {
			return err
		}
	}
	return d.waitComputed(ctx)
}

// waitComputed waits until no cohort is being computed.
func (d *demo) waitComputed(ctx context.Context) error {
	limit := time.NewTimer(3 * time.Minute)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		status, answer, err := d.request(ctx, http.MethodGet, "cohorts/?basic=true", nil)
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			return fmt.Errorf("listing cohorts: %d: %s", status, answer)
		}
		if !bytes.Contains(answer, []byte(`"is_calculating":true`)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return fmt.Errorf("the cohorts were not computed within three minutes: %s", answer)
		case <-tick.C:
		}
	}
}
