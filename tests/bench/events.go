package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
)

// The generated events cover half a year of a product. They are written in order of time, except for an hour of jitter, as they would arrive. They are
// derived from row numbers by hashes, so that every run measures the same rows.
const (
	generatedPeople  = 200_000
	generatedVisit   = 8 // events
	generatedNames   = 60
	generatedMerged  = 2_000 // distinct ids merged into another person after their events
	generatedHistory = 180   // days
	generatedJitter  = 3600  // seconds by which a visit may start later than the next one
)

// generatedNow is the end of the generated history.
var generatedNow = time.Date(2024, 6, 30, 0, 0, 0, 0, time.UTC)

// generatedColumns are the columns of an event, derived from the numbers of the event and of its visit. People and event names
// are skewed, as in any product.
const generatedColumns = `
	WITH intDiv(number, {visit}) AS visit,
		cityHash64(visit, 'person') / 18446744073709551616. AS whose,
		toUInt64({people} * pow(whose, 3)) AS person,
		cityHash64(number, 'name') / 18446744073709551616. AS which,
		toUInt64({names} * pow(which, 2.5)) AS name,
		cityHash64(visit, 'visit') AS v, cityHash64(number, 'event') AS e
	SELECT reinterpretAsUUID(sipHash128(number)) AS uuid,
		if(name = 0, '$pageview', concat('event_', leftPad(toString(name), 2, '0'))) AS event,
		toDateTime64({start} + intDiv(visit * {seconds}, {visits}) + v % {jitter} + number % {visit} * 40 + e % 40, 6, 'UTC') + toIntervalMicrosecond(e % 1000000) AS timestamp,
		1 AS team_id,
		toString(reinterpretAsUUID(sipHash128(visit))) AS session,
		concat('user-', toString(person)) AS distinct_id,
		reinterpretAsUUID(sipHash128(person, 'person')) AS person_id,
		concat('{"email":"user', toString(person), '@example.com","plan":"', ['free', 'team', 'company'][1 + person % 3],
			'","seats":', toString(person % 50), '}') AS person_properties,
		concat('{', arrayStringConcat([
			concat('"$browser":"', ['Chrome', 'Safari', 'Firefox', 'Edge', 'Opera', 'Samsung Internet'][1 + toUInt64(6 * pow((v % 1000) / 1000, 2))], '"'),
			concat('"$os":"', ['Windows', 'Mac OS X', 'iOS', 'Android', 'Linux'][1 + v % 5], '"'),
			concat('"$current_url":"https://app.example.com/', ['home', 'search', 'cart', 'account', 'docs'][1 + e % 5], '/', toString(e % 400), '"'),
			concat('"$pathname":"/', ['home', 'search', 'cart', 'account', 'docs'][1 + e % 5], '/', toString(e % 400), '"'),
			concat('"$session_id":"', session, '"'),
			concat('"$referring_domain":"site', toString(toUInt64(900 * pow((v % 10000) / 10000, 3))), '.example"'),
			concat('"$geoip_country_code":"', ['US', 'DE', 'IN', 'BR', 'GB', 'FR', 'JP', 'ES', 'NL', 'CZ'][1 + person % 10], '"'),
			concat('"amount":', toString(e % 20000 / 100)),
			concat('"paid":', if(e % 7 = 0, 'true', 'false')),
			{plain}], ','), '}') AS properties
	FROM numbers({from}, {count})`

// generatedPlain returns the rest of the thirty properties, which no measured query reads: they show what a query pays
// for columns that it does not need.
func generatedPlain() string {
	parts := make([]string, 0, 21)
	for i := range 14 {
		parts = append(parts, fmt.Sprintf(`concat('"label_%d":"value ', toString(cityHash64(number, %d) %% %d), '"')`, i, i, 10+i*i*20))
	}
	for i := range 7 {
		parts = append(parts, fmt.Sprintf(`concat('"measure_%d":', toString(cityHash64(number, %d) %% 100000))`, i, 100+i))
	}
	return strings.Join(parts, ", ")
}

// history says how many events to generate, for how many people, and whether to leave out the properties that no measured query reads.
type history struct {
	events, people int
	narrow         bool
}

// wideHistory returns a history of events with thirty properties.
func wideHistory(events int) history { return history{events: events, people: generatedPeople} }

// growingHistory returns a history whose number of people is proportional to that of its events, which have ten properties.
func growingHistory(events int) history {
	return history{events: events, people: events / eventsPerPerson, narrow: true}
}

// histories stores generated events in the folders of engines, so that figures can share them.
type histories struct{ folder string }

// of returns the folder of a history.
func (k histories) of(h history) string {
	name := "events-" + strconv.Itoa(h.events)
	if h.narrow {
		name += "-narrow"
	}
	return filepath.Join(k.folder, name)
}

// start starts an engine with the events of a history. The caller must close it.
func (k histories) start(ctx context.Context, h history) (*embedded.Engine, error) {
	engine, err := startEngine(ctx, k.of(h))
	if err != nil {
		return nil, err
	}
	if err := h.generate(ctx, engine.DSN()); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return engine, nil
}

// generate inserts the events into the tables of the engine at dsn, and merges some distinct ids into other people.
func (h history) generate(ctx context.Context, dsn string) (err error) {
	client, err := clickhouse.Open(clickhouse.Config{DSN: dsn}, zap.NewNop())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := client.Migrate(ctx); err != nil {
		return err
	}
	options, err := driver.ParseDSN(dsn)
	if err != nil {
		return fmt.Errorf("reading the engine's address: %w", err)
	}
	options.ReadTimeout = 10 * time.Minute
	conn, err := driver.Open(options)
	if err != nil {
		return fmt.Errorf("connecting to the engine: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	var there uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM "+embedded.Database+".events").Scan(&there); err != nil {
		return fmt.Errorf("counting the existing events: %w", err)
	}
	switch {
	case there == uint64(h.events):
		return settled(ctx, conn)
	case there > 0:
		return fmt.Errorf("the folder has %d events, want %d: use another folder", there, h.events)
	}
	fmt.Fprintf(os.Stderr, "writing %d events …\n", h.events)
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for _, sql := range h.statements() {
		group.Go(func() error {
			if err := conn.Exec(writing, sql); err != nil {
				return fmt.Errorf("%w\n%s", err, sql)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return settled(ctx, conn)
}

// statements returns the statements that insert the events.
func (h history) statements() []string {
	const seconds = generatedHistory * 24 * 60 * 60
	plain := generatedPlain()
	if h.narrow {
		plain = `'"last":1'`
	}
	fill := func(from, count int) string {
		return strings.NewReplacer(
			"{visit}", fmt.Sprint(generatedVisit), "{people}", fmt.Sprint(h.people), "{names}", fmt.Sprint(generatedNames),
			"{start}", fmt.Sprint(generatedNow.Unix()-seconds), "{seconds}", fmt.Sprint(seconds-generatedJitter-generatedVisit*40),
			"{visits}", fmt.Sprint(max(1, h.events/generatedVisit)), "{jitter}", fmt.Sprint(generatedJitter),
			"{plain}", plain, "{from}", fmt.Sprint(from), "{count}", fmt.Sprint(count),
		).Replace(generatedColumns)
	}
	var out []string
	for from := 0; from < h.events; from += benchBatch {
		out = append(out, "INSERT INTO "+embedded.Database+".events "+
			"(uuid, event, timestamp, team_id, `$session_id`, distinct_id, person_id, person_properties, properties) "+
			fill(from, min(benchBatch, h.events-from)))
	}
	return append(out, fmt.Sprintf("INSERT INTO %s.person_distinct_id_overrides (team_id, distinct_id, person_id, is_deleted, version) "+
		"SELECT 1, concat('user-', toString(number * 3)), reinterpretAsUUID(sipHash128(toUInt64(number * 3 + 1), 'person')), 0, 1 FROM numbers(%d)",
		embedded.Database, generatedMerged))
}
