// Package ingest takes in events, persons, groups and members of cohorts: it reads records, finds the person and the groups of each,
// learns the types of properties, and writes batches to ClickHouse.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

const maxBad = 100 // bad records that are reported one by one

// Options says which project the records belong to, and what is already known about it.
type Options struct {
	Project int64
	// Learn the types of properties that have none yet.
	LearnTypes bool
	// The time of the import: the creation time of persons and groups without events, and the arrival time of events that do not state one.
	Now time.Time
	// Properties whose type is known and stays as it is.
	KnownTypes []LearnedProperty
	// How many properties may have a type, including known ones; 0: any number.
	MaxTypes int
	// Events before this time are left out and change no person; zero for none.
	EventsFrom time.Time
	// Events are stored without the address that they were sent from, the property $ip.
	AnonymizeIPs bool
	// The cohorts of the project that records can put people into.
	Cohorts []int64
	// The cohorts of the project whose members are computed. A person takes the place of those merged into it.
	Computed []int64
	// The project's group types. An import adds types that it finds, up to five.
	GroupTypes []GroupType
	// Keeps group types that were found, where all that write to the project look for them, and returns all of the project's. It is called in the turn of each
	// batch: with none before the batch is looked at and, if the batch brings new ones, with all of them before it is written. Default: the caller keeps them,
	// from the report.
	KeepGroupTypes func(ctx context.Context, found []GroupType) (all []GroupType, err error)
	// Keeps the kinds of values of properties. Default: they are not kept.
	Values Values
	// The records are events that clients have just sent. They follow the rules of capture where these differ from those of imports:
	//
	//   - a person is created at the time of the event that made it, and a group at its first $groupidentify; in an import, each at its earliest event;
	//   - the person gets properties of the event such as $browser and utm_source, and their first values as $initial_browser;
	//   - $exception, $$heatmap and $groupidentify change no person;
	//   - $identify gives an id without person to the person of the other id, even an identified one;
	//   - an event without profile loses $set, $set_once and $unset, names no group by $groups, and is dropped if it is only about people or groups; if the person
	//     is older than a minute, its person_mode is force_upgrade.
	Captured bool
	// What was deleted from the project. It is called in the turn of each batch. Default: nothing.
	Deletions func() Deletions
	// Read, count and look up, but write nothing. What the records say is remembered as if it were written, for as long as people are remembered between batches.
	DryRun bool
	// Called after each batch of an import with the report so far, without types and group types.
	Progress func(Report)
	// Called before each batch, once no other batch of the project is being written here; done is called after the batch is written. Default: batches wait
	// only for each other.
	Turn func(context.Context) (done func(), err error)
	// Waits for a place for each batch, before its turn: waiting for a place does not block other writers. A batch whose turn does not come soon leaves
	// its place, and enters again when the turn has come. Not for Deliver. Default: batches need no place.
	Enter func(context.Context) (leave func(), err error)

	began time.Time // when the call with these options began
}

// Report says what was done with the records.
type Report struct {
	Events     int               // events that are in ClickHouse now, duplicates included
	Duplicates int               // of these, events that were there before
	Persons    int               // records that describe a person
	People     int               // people that were not there before; in a dry run, two million at most
	Merged     int               // people that were there and were merged into another person
	First      time.Time         // earliest time of the events, including those that were there before; zero without events
	Last       time.Time         // latest time of the events
	Line       int               // all records up to this line are taken in
	Groups     int               // records that describe a group
	Cohorts    int               // records that put people into a cohort
	Members    int               // people that are new in a cohort
	Filled     map[int64]bool    // the cohorts of these members
	Dropped    int               // captured events that are not kept: see Options.Captured
	TooOld     int               // events that are left out: see Options.EventsFrom
	LeftOut    int               // properties left out because their person or group had no room: see record.MaxNames
	LeftOutAt  int               // line of the first record with such a property; 0 for none
	Untyped    bool              // more properties than Options.MaxTypes were found; the rest have no type
	Bad        int               // records that were left out
	BadLines   []BadLine         // of an import, the first hundred
	Learned    []LearnedProperty // types that were not known before
	GroupTypes []GroupType       // all group types of the project, in the order of their index
}

// BadLine is a record that was left out. Lines are counted from 1.
type BadLine struct {
	Line   int
	Reason string
}

// LearnedProperty is a property with its type.
type LearnedProperty struct {
	Scope          string // event, person or group
	GroupTypeIndex int    // for groups
	Name           string
	Type           string // String, Numeric, Boolean or DateTime
	// The kinds of values that it has had; 0 if they are not known, and for what is learned.
	Kinds physical.Kinds
}

// GroupType is a kind of groups, such as organization.
type GroupType struct {
	Name  string
	Index int
}

// Reader yields records.
type Reader interface {
	// Read returns the next record, and io.EOF after the last. There is nothing more to read after an error other than a *record.Error. It is called in a
	// goroutine of its own, which ends before Import returns.
	Read() (record.Record, error)
}

// Ingester writes records to ClickHouse. It may be used concurrently.
type Ingester struct {
	// Intents keeps what is being written. Without it, people may come out differently when an interrupted batch is written again. Set it before the first use.
	Intents Intents

	// Alone says that only this process writes events to ClickHouse, apart from writes after which Forget is called. Set it before the first use. By default, each
	// event is looked up before it is written.
	Alone bool

	// Writes is told of all writes; nil for none. Set it before the first use.
	Writes Writes

	client    *clickhouse.Client
	inserting func(block) error // see store
	most      int               // records of a batch of an import; importedRecords by default
	rows      int               // see session; maxBlock by default
	state     int               // see session
	mu        sync.Mutex
	projects  map[int64]*projectState // by project
	layout    atomic.Pointer[layout]
	recent    []*projectState // those with deliveries, the one used last at the end
	gathering gathering
	reading   chan struct{} // see store

	seenBudget atomic.Int64 // see seen
}

// maxReading is how many queries of deliveries run at the same time.
const maxReading = 4

// New returns an ingester that writes with a client. There must be only one for each database.
func New(client *clickhouse.Client) *Ingester {
	i := &Ingester{client: client, projects: map[int64]*projectState{}, reading: make(chan struct{}, maxReading)}
	i.gathering.run = func(ctx context.Context, all []*gathered) error {
		if all[0].asked != nil {
			return askAll(ctx, client, all, true)
		}
		return insertBlocks(ctx, client, all)
	}
	i.seenBudget.Store(seenBytes)
	return i
}

// begin checks the options of a call that begins now.
func (o *Options) begin() error {
	o.began = time.Now()
	if o.Project <= 0 {
		return fmt.Errorf("BUG: records without a project: %d", o.Project)
	}
	if o.Now.IsZero() {
		return errors.New("BUG: records without the time of now")
	}
	return nil
}
